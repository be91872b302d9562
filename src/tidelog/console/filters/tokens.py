"""The words of a filter's text, with their columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

MAX_CHARACTERS: Final = 2000
MAX_TOKENS: Final = 400
MAX_DIGITS: Final = 40
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "/": "/"}
_DURATION_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_TOKEN: Final = re.compile(
    r"""[ \t\r\n]*(?:
      (?P<end>\Z)
    | "(?P<text>(?:[^"\\]|\\.)*)"
    | (?P<duration>\d+(?:ms|s|m|h|d))(?![A-Za-z0-9_.])
    | (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![A-Za-z0-9_.])
    | (?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
    | (?P<mark>==|!=|<=|>=|[<>()\[\].,+-])
    )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)


class FilterError(Exception):
    """A filter that cannot be used; ``at`` is the column, from 0, of what is wrong."""

    def __init__(self, detail: str, at: int) -> None:
        super().__init__(detail)
        self.detail = detail
        self.at = at


class Kind(Enum):
    """What a token is."""

    TEXT = "text"
    NUMBER = "number"
    DURATION = "duration"
    NAME = "name"
    MARK = "mark"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """One word. ``value`` is the unescaped text, the number, the milliseconds of a duration, the name or the mark."""

    kind: Kind
    value: str | int | float
    at: int

    @property
    def shown(self) -> str:
        """As an error names it."""
        return "the end" if self.kind is Kind.END else repr(self.value)


def tokens(text: str) -> list[Token]:
    """The tokens of a filter; the last one is END. FilterError."""
    if len(text) > MAX_CHARACTERS:
        raise FilterError(f"a filter has at most {MAX_CHARACTERS} characters, this one has {len(text)}", MAX_CHARACTERS)
    found = list(_walk(text))
    if len(found) > MAX_TOKENS:
        raise FilterError(f"a filter has at most {MAX_TOKENS} words", found[MAX_TOKENS].at)
    return found


def _walk(text: str) -> Iterator[Token]:
    position = 0
    while True:
        match = _TOKEN.match(text, position)
        if match is None:
            at = position + len(text[position:]) - len(text[position:].lstrip(" \t\r\n"))
            raise FilterError(_problem(text, at), at)
        kind = Kind(match.lastgroup or "end")
        at = match.start(kind.value) - (kind is Kind.TEXT)
        yield Token(kind, _value(kind, match[kind.value], at), at)
        if kind is Kind.END:
            return
        position = match.end()


def _value(kind: Kind, raw: str, at: int) -> str | int | float:
    if kind is Kind.TEXT:
        return _unescaped(raw, at)
    if kind is Kind.DURATION:
        digits = raw.rstrip("mshd")
        _check_digits(digits, at)
        return int(digits) * _DURATION_MS[raw[len(digits) :]]
    if kind is Kind.NUMBER:
        _check_digits(raw, at)
        return float(raw) if any(mark in raw for mark in ".eE") else int(raw)
    return raw


def _check_digits(raw: str, at: int) -> None:
    if len(raw) > MAX_DIGITS:
        raise FilterError(f"a number has at most {MAX_DIGITS} characters", at)


def _unescaped(raw: str, at: int) -> str:
    if "\\" not in raw:
        return raw
    out: list[str] = []
    position = 0
    while position < len(raw):
        if raw[position] != "\\":
            out.append(raw[position])
            position += 1
            continue
        letter = raw[position + 1]
        if letter == "u":
            digits = raw[position + 2 : position + 6]
            if not re.fullmatch(r"[0-9A-Fa-f]{4}", digits):
                raise FilterError("\\u takes four hexadecimal digits", at + 1 + position)
            out.append(chr(int(digits, 16)))
            position += 6
            continue
        if letter not in _ESCAPES:
            raise FilterError(f"\\{letter} is no escape; a backslash itself is \\\\", at + 1 + position)
        out.append(_ESCAPES[letter])
        position += 2
    return "".join(out)


def _problem(text: str, at: int) -> str:
    letter = text[at]
    if letter == '"':
        return "this text has no closing quote"
    if letter == "'":
        return 'texts stand in double quotes: "abc"'
    if letter == "=":
        return "equality is written =="
    if letter in "&|!":
        return "operators are words: and, or, not"
    if letter.isdigit() or letter == "-":
        return "this is neither a number nor a duration such as 15m"
    return f"{letter!r} means nothing here"
