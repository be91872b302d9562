"""Results of upgrades: a file with one a line, and a page for people."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tests.matrix.report import put_between
from tests.upgrade.rolling import Result

BEGIN, END = "<!-- upgrade: begin -->", "<!-- upgrade: end -->"


def load(path: Path) -> list[Result]:
    """In the order in which they were run; the latest run of two versions in a layout counts."""
    if not path.exists():
        return []
    found: dict[tuple[str, str, str], Result] = {}
    for line in path.read_text().splitlines():
        each = Result(**json.loads(line))
        found.pop((each.older, each.newer, each.layout), None)
        found[each.older, each.newer, each.layout] = each
    return list(found.values())


def table(results: Iterable[Result]) -> str:
    """For the page."""
    lines = [
        "| from | to, and back | nodes | features raised | lowered before going back | records | transactions "
        "| longest wait for an acknowledgement | wrong | run |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for each in results:
        raised = ", ".join(f"{name} {old} to {new}" for name, (old, new) in each.raised.items()) or "none"
        lowered = ", ".join(f"{name} to {level}" for name, level in each.lowered.items()) or "none"
        lines.append(
            f"| {each.older} | {each.newer} | {each.layout} | {raised} | {lowered} | {each.records:,} "
            f"| {each.commits:,} committed, {each.aborts:,} aborted | {each.longest_wait_s:.1f} s | {each.first_wrong} "
            f"| {each.date}, {each.seconds:.0f} s |"
        )
    return "\n".join(lines)


def write(page: Path, results: Iterable[Result]) -> None:
    """Into the page, between the marks."""
    put_between(page, BEGIN, END, table(results))
