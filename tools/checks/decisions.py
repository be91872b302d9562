"""Each page in ``docs/adr`` has a number of its own, and says below its heading whether it holds: ``Status: accepted, DATE.``"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tools.checks.tree import ROOT, Report

STATUS = re.compile(r"^Status: (proposed|accepted|rejected|superseded by \[\d+\]\([^)]+\)), \d{4}-\d\d-\d\d\.")


def judge(pages: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with these pages (text by file name)."""
    numbers: dict[str, str] = {}
    for name, text in sorted(pages.items()):
        number = name.partition("-")[0]
        if number in numbers:
            yield f"{name} has the number of {numbers[number]}: take the next free one"
        numbers[number] = name
        lines = text.split("\n")
        if not lines[0].startswith(f"# {int(number)}. "):
            yield f"{name}: the heading does not begin with its number, # {int(number)}."
        if not STATUS.match("\n".join(lines[2:3])):
            yield f"{name}: the third line is no status, as in: Status: accepted, 2026-11-23."


def check() -> Report:
    pages = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "adr").glob("*.md")}
    return Report(list(judge(pages)), [f"{len(pages)} decisions"])


def write() -> str:
    return "nothing is listed: every decision has a status"
