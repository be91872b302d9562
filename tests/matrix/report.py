"""Results of the matrix: a file that a run goes on from, and a page for people."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from tests.matrix.running import Outcome, Result

BEGIN, END = "<!-- matrix: begin -->", "<!-- matrix: end -->"


def load(path: Path) -> dict[tuple[str, str], Result]:
    """By layout and scenario; nothing when there is no such file. The latest run of each counts."""
    if not path.exists():
        return {}
    found = (Result(**json.loads(line)) for line in path.read_text().splitlines() if line.strip())
    return {(each.layout, each.scenario): each for each in found}


def append(path: Path, result: Outcome) -> None:
    """One more."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(asdict(result)) + "\n")


def table(results: Iterable[Result]) -> str:
    """For the page."""
    lines = [
        "| scenario | nodes | records | transactions | clients replaced | longest wait for an acknowledgement | wrong | run |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in results:
        wrong = f"found, as it must be: {', '.join(each.found)}" if each.found else each.first_wrong
        lines.append(
            f"| {each.scenario} | {each.layout} | {each.records:,} | {each.commits:,} committed, {each.aborts:,} aborted "
            f"| {each.replaced} | {each.longest_wait_s:.1f} s | {wrong} | {each.date}, {each.seconds:.0f} s |"
        )
    return "\n".join(lines)


def write(page: Path, results: Iterable[Result]) -> None:
    """Into the page, between the marks."""
    put_between(page, BEGIN, END, table(results))


def put_between(page: Path, begin: str, end: str, text: str) -> None:
    """``text`` in the place of what stands between two marks of a page. ValueError for a page without them."""
    before, mark, rest = page.read_text().partition(begin)
    _, last, after = rest.partition(end)
    if not mark or not last:
        raise ValueError(f"{page} has no place for it: {begin} and {end} are missing")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")
