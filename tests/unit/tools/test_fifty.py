"""What the comparison of test suites makes of its numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import fifty

ROUND = {"wall_s": 20.0, "start_s": 1.0, "broker_peak_mib": 0.0, "test_peak_mib": 70.0, "peak_mib": 70.0}


def test_medians_stand_with_their_ranges_and_nothing_is_a_dash() -> None:
    rounds = [{**ROUND, "wall_s": wall} for wall in (20.0, 30.0, 22.0)]
    lines = fifty.table({"tidelog": rounds}).splitlines()
    assert len(lines) == 3
    assert "| 22 (20-30) | 1 (1-1) | - | 70 (70-70) |" in lines[2]


def test_the_page_is_written_between_its_marks_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{fifty.MARKS[0]}\nold\n{fifty.MARKS[1]}\nafter\n")
    monkeypatch.setattr(fifty, "PAGE", page)
    fifty.write_page("new")
    assert page.read_text() == f"before\n{fifty.MARKS[0]}\n\nnew\n\n{fifty.MARKS[1]}\nafter\n"
    page.write_text("no marks\n")
    with pytest.raises(SystemExit, match="no section"):
        fifty.write_page("new")
