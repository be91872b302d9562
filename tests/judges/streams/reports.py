"""What JUnit's XML reports say of the cases of a class."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

BY_STREAMS = re.compile(r"protocol\w* *= *\"?(?:true|streams)\b|\bstreams protocol\b", re.IGNORECASE)
"""In the parameters that a case shows, such as ``[3] useNewProtocol=true``: it uses a streams group."""
SHOWN = re.compile(r"^display-name: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Case:
    """One case; ``why`` is empty when it passed."""

    name: str
    """``Class.method(Types)[number]``, without blanks."""
    verdict: str
    """passed, failed or skipped"""
    by_streams: bool
    """Whether it used the streams protocol."""
    why: str = ""


def read(folder: Path, only_streams: bool) -> list[Case]:
    """All cases of all reports in a folder."""
    return [case for file in sorted(folder.glob("TEST-*.xml")) for case in parse(file.read_text(), only_streams)]


def parse(text: str, only_streams: bool) -> Iterator[Case]:
    """The cases of one report."""
    for each in ElementTree.fromstring(text).iter("testcase"):
        name = re.sub(r"\s", "", f"{each.get('classname', '').rpartition('.')[2]}.{each.get('name', '')}")
        said = "\n".join(output.text or "" for output in each.iter("system-out"))
        shown = SHOWN.search(said)
        by_streams = only_streams or bool(shown and BY_STREAMS.search(shown[1]))
        for mark, verdict in (("skipped", "skipped"), ("failure", "failed"), ("error", "failed")):
            if (found := each.find(mark)) is not None:
                yield Case(name, verdict, by_streams, _first_line(found))
                break
        else:
            yield Case(name, "passed", by_streams)


def _first_line(found: ElementTree.Element) -> str:
    lines = (found.get("message") or found.text or "").strip().splitlines()
    return lines[0][:300] if lines else "no reason given"


def named(cases: Sequence[Case], verdict: str) -> list[str]:
    """The names of the cases with this verdict, sorted."""
    return sorted(case.name for case in cases if case.verdict == verdict)
