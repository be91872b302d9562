"""Results that a run goes on from, and their page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.matrix.report import BEGIN, END, append, load, table, write
from tests.matrix.running import Result


def result(scenario: str, *wrong: str) -> Result:
    times = {"date": "2026-11-21", "seconds": 30.0, "longest_wait_s": 4.2}
    return Result(scenario, "combined", **times, records=2000, commits=300, aborts=100, replaced=1, wrong=list(wrong))


def test_the_latest_run_of_a_scenario_counts(tmp_path: Path) -> None:
    note = tmp_path / "cache" / "note.jsonl"
    assert load(note) == {}
    for each in (result("pause", "it was lost"), result("stop"), result("pause")):
        append(note, each)
    assert load(note) == {("combined", "stop"): result("stop"), ("combined", "pause"): result("pause")}


def test_what_is_wrong_stands_in_the_table_and_what_was_planted_too() -> None:
    planted = result("planted")
    planted.found = ["lost write"]
    text = table([result("stop"), result("pause", "lost write: 3\n  more"), planted])
    assert "| stop | combined | 2,000 | 300 committed, 100 aborted | 1 | 4.2 s | nothing | 2026-11-21, 30 s |" in text
    assert "| lost write: 3 |" in text and "more" not in text
    assert "found, as it must be: lost write" in text


def test_a_page_keeps_what_stands_around_the_matrix(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write(page, [result("stop")])
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text and "| stop |" in text
    page.write_text("no marks")
    with pytest.raises(ValueError, match="no place"):
        write(page, [result("stop")])
