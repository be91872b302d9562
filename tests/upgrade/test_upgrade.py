"""What an upgrade needs to know, and its reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.matrix.report import append
from tests.upgrade.report import BEGIN, END, load, table, write
from tests.upgrade.rolling import Result
from tests.upgrade.versions import Version, levels_to_lower
from tidelog.metadata.supported_features import supported_ranges

ROOT = Path(__file__).resolve().parent.parent.parent


def result(older: str, *wrong: str) -> Result:
    found = {"records": 2000, "commits": 300, "aborts": 100, "longest_wait_s": 4.2, "replaced": 1, "wrong": list(wrong)}
    return Result(older, "new", "combined", raised={"a.version": [0, 1]}, date="2026-11-21", seconds=90.0, **found)


def test_only_what_the_older_version_cannot_do_is_lowered() -> None:
    finalized = {"metadata.version": 30, "group.version": 1, "share.version": 1, "new.version": 3}
    supported = {"metadata.version": (7, 30), "group.version": (0, 1), "share.version": (0, 0)}
    assert levels_to_lower(finalized, supported) == {"new.version": 0, "share.version": 0}
    assert levels_to_lower({"metadata.version": 29}, supported) == {}


def test_a_version_is_asked_itself_what_it_supports() -> None:
    assert Version("this one", ROOT / "src").supported() == supported_ranges()


def test_the_latest_run_of_two_versions_counts(tmp_path: Path) -> None:
    note = tmp_path / "cache" / "note.jsonl"
    assert load(note) == []
    for each in (result("v1", "it was lost"), result("v2"), result("v1")):
        append(note, each)
    assert load(note) == [result("v2"), result("v1")]


def test_what_was_raised_lowered_and_wrong_stands_in_the_table() -> None:
    text = table([result("v1"), result("v2", "lost write: 3\n  more")])
    assert (
        "| v1 | new | combined | a.version 0 to 1 | none | 2,000 | 300 committed, 100 aborted | 4.2 s | nothing "
        "| 2026-11-21, 90 s |"
    ) in text
    assert "| lost write: 3 |" in text and "more" not in text


def test_a_page_keeps_what_stands_around_the_upgrades(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write(page, [result("v1")])
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text and "| v1 |" in text
    page.write_text("no marks")
    with pytest.raises(ValueError, match="no place"):
        write(page, [result("v1")])
