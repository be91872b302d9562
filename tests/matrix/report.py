"""Results of the matrix: a file that a run goes on from, and a page for people."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tests.matrix.running import Result

BEGIN, END = "<!-- matrix: begin -->", "<!-- matrix: end -->"


def load(path: Path) -> dict[tuple[str, str], Result]:
    """By layout and scenario; nothing when there is no such file. The latest run of each counts."""
    if not path.exists():
        return {}
    found = (Result(**json.loads(line)) for line in path.read_text().splitlines() if line.strip())
    return {(each.layout, each.scenario): each for each in found}


def append(path: Path, result: Result) -> None:
    """One more."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(result.as_json()) + "\n")


def table(results: Iterable[Result]) -> str:
    """For the page."""
    lines = [
        "| scenario | nodes | records | transactions | clients replaced | longest wait for an acknowledgement | wrong | run |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in results:
        wrong = each.wrong[0].splitlines()[0][:120].replace("|", "/") if each.wrong else "nothing"
        if each.found:
            wrong = f"found, as it must be: {', '.join(each.found)}"
        lines.append(
            f"| {each.scenario} | {each.layout} | {each.records:,} | {each.commits:,} committed, {each.aborts:,} aborted "
            f"| {each.replaced} | {each.longest_wait_s:.1f} s | {wrong} | {each.date}, {each.seconds:.0f} s |"
        )
    return "\n".join(lines)


def write(page: Path, results: Iterable[Result]) -> None:
    """Into the page, between the marks."""
    text = page.read_text()
    before, mark, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise ValueError(f"{page} has no place for the matrix: {BEGIN} and {END} are missing")
    page.write_text(f"{before}{BEGIN}\n{table(results)}\n{END}{after}")
