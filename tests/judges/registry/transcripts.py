"""Golden transcripts of the registry's HTTP API in ``tests/golden/registry``: read, sent to a server, answers compared.

``=== title`` begins a transcript, which needs an empty registry; ``% name=value`` says how that registry is set up. ``> METHOD
TARGET`` begins an exchange; further ``>`` lines are headers, and the body last. ``<`` lines are the status and the body of the
answer, ``@`` is where the answer is known from. In bodies and targets ``$1`` stands for an id, the same throughout a transcript,
and another one than ``$2``; ``"..."`` for a text of any content. Errors have any message.
"""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "registry"
V1 = "application/vnd.schemaregistry.v1+json"
RUNNING, DOCUMENTS = "from a running implementation", "from documents"
TIMEOUT_S = 60
_HEADER = re.compile(r"([A-Za-z][A-Za-z-]*): (.*)")
_ID = re.compile(r'"?\$(\d)"?')


@dataclass(frozen=True, slots=True)
class Answer:
    """``body``: as it was sent."""

    status: int
    body: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """``line`` of the file, from 1 on. ``source``: RUNNING or DOCUMENTS."""

    line: int
    method: str
    target: str
    headers: dict[str, str]
    body: str
    answer: Answer
    source: str = ""

    @property
    def error_code(self) -> int | None:
        """The code of an error; None for another answer."""
        found = parsed(self.answer.body)
        return found.get("error_code") if isinstance(found, dict) else None


@dataclass(frozen=True, slots=True)
class Transcript:
    """``setup``: how the registry is set up that answers so."""

    file: str
    title: str
    setup: dict[str, str] = field(default_factory=dict)
    exchanges: list[Exchange] = field(default_factory=list)


def read_all(folder: Path = FOLDER) -> list[Transcript]:
    """All transcripts, by file and place."""
    return [each for path in sorted(folder.glob("*.txt")) for each in read(path)]


def read(path: Path) -> list[Transcript]:
    """The transcripts of a file. ValueError names a line that means nothing."""
    found: list[Transcript] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        mark, _, text = line.partition(" ")
        exchanges = found[-1].exchanges if found else []
        if mark == "===":
            found.append(Transcript(path.name, text))
        elif mark == "%":
            name, _, value = text.partition("=")
            found[-1].setup[name] = value
        elif mark == ">" and (not exchanges or exchanges[-1].answer.status):
            method, _, target = text.partition(" ")
            exchanges.append(Exchange(number, method, target, {}, "", Answer(0, "")))
        elif mark == ">":
            exchanges[-1] = _requested(exchanges[-1], text)
        elif mark == "<":
            last = exchanges[-1]
            exchanges[-1] = replace(last, answer=replace(last.answer, body=text) if last.answer.status else Answer(int(text), ""))
        elif mark == "@":
            exchanges[-1] = replace(exchanges[-1], source=text)
        elif line.strip():
            raise ValueError(f"{path.name}:{number}: {line!r} begins with none of === % > < @")
    return found


def _requested(exchange: Exchange, text: str) -> Exchange:
    header = _HEADER.fullmatch(text)
    if header is not None:
        return replace(exchange, headers=exchange.headers | {header[1]: header[2]})
    return replace(exchange, body=text)


def write_sources(path: Path, sources: dict[int, str]) -> None:
    """Mark the exchanges that begin in these lines with where their answers are known from."""
    kept: list[str] = []
    source, open_answer = "", False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("@ "):
            continue
        if open_answer and not line.startswith("< "):
            kept.append(f"@ {source}")
            open_answer = False
        source = sources.get(number, source)
        kept.append(line)
        open_answer = open_answer or line.startswith("< ")
    path.write_text("\n".join([*kept, f"@ {source}"] if open_answer else kept) + "\n")


class Session:
    """Sends exchanges to the registry at ``url`` over one connection. ``ids``: the id that each ``$`` stands for, which answers
    add to; ``base``: in front of all paths."""

    def __init__(self, url: str, ids: dict[str, int] | None = None) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
        self._base = parts.path.rstrip("/")
        self.ids = {} if ids is None else ids

    def close(self) -> None:
        self._connection.close()

    def send(self, exchange: Exchange) -> Answer:
        """The server's answer."""
        headers = {"Content-Type": V1} if exchange.body else {}
        target, body = (_ID.sub(self._id, text) for text in (exchange.target, exchange.body))
        self._connection.request(exchange.method, self._base + target, body.encode() or None, headers | exchange.headers)
        answer = self._connection.getresponse()
        return Answer(answer.status, answer.read().decode())

    def _id(self, match: re.Match[str]) -> str:
        return str(self.ids.get(match[1], -1))

    def differences(self, exchange: Exchange, answer: Answer) -> list[str]:
        """What is otherwise in an answer than in the transcript; ids that are met first are kept."""
        found: list[str] = []
        if answer.status != exchange.answer.status:
            found.append(f"status {answer.status} instead of {exchange.answer.status}")
        wanted, given = parsed(exchange.answer.body), parsed(answer.body)
        if isinstance(wanted, dict) and "error_code" in wanted:
            wanted = {"message": "..."} | wanted
        return found + list(self._compared(wanted, given, ""))

    def _compared(self, wanted: Any, given: Any, place: str) -> Iterator[str]:
        if isinstance(wanted, dict) and isinstance(given, dict):
            for name in sorted(wanted.keys() | given.keys()):
                inner = f"{place}.{name}".lstrip(".")
                if name not in given:
                    yield f"no {inner}"
                elif name not in wanted:
                    yield f"{inner} besides"
                else:
                    yield from self._compared(wanted[name], given[name], inner)
        elif isinstance(wanted, list) and isinstance(given, list) and len(wanted) == len(given):
            for number, (one, other) in enumerate(zip(wanted, given, strict=True)):
                yield from self._compared(one, other, f"{place}[{number}]")
        elif isinstance(wanted, str) and (match := re.fullmatch(r"\$(\d)", wanted)) and type(given) is int:
            if self.ids.setdefault(match[1], given) != given:
                yield f"{place or 'body'} is {given}, another id than before"
            elif list(self.ids.values()).count(given) > 1:
                yield f"{place or 'body'} is {given}, the id of another schema"
        elif wanted == "..." and isinstance(given, str) and given:
            return
        elif type(wanted) is not type(given) or wanted != given:
            yield f"{place or 'body'} is {short(given)} instead of {short(wanted)}"


def parsed(text: str) -> Any:
    """The values of JSON, or the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def short(value: Any) -> str:
    """For a line of a table."""
    text = json.dumps(value)
    return text if len(text) <= 70 else text[:67] + "..."
