"""The form of a history."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelog.testing.checker.events import HistoryError, Recorder, load, save


def test_what_was_recorded_is_read_again_in_the_order_in_which_it_happened(tmp_path: Path) -> None:
    moments = iter([1, 2, 3, 4])
    with Recorder(tmp_path / "a", lambda: next(moments)) as one, Recorder(tmp_path / "b", lambda: next(moments)) as other:
        one.note("p", "invoke", "commit", txn="t")
        other.note("q", "ok", "poll", records=[["out-0", 3, "v"]])
        one.note("p", "ok", "commit", txn="t")
    events = list(load(tmp_path / "a", tmp_path / "b"))
    assert [(event["time"], event["process"]) for event in events] == [(1, "p"), (2, "q"), (3, "p")]
    assert events[1]["records"] == [["out-0", 3, "v"]]
    save(events, tmp_path / "c")
    assert list(load(tmp_path / "c")) == events


def test_an_event_is_in_the_file_before_note_returns_so_that_kill_9_leaves_it(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "a")
    recorder.note("p", "ok", "begin", txn="t")
    assert (tmp_path / "a").read_text().endswith("}\n")
    recorder.close()


def test_a_last_line_that_was_not_finished_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"time":1,"process":"p","type":"ok","op":"begin","txn":"t"}\n{"time":2,"pro')
    assert [event["txn"] for event in load(tmp_path / "a")] == ["t"]


@pytest.mark.parametrize("line", ["not json", '{"time":1,"process":"p"}', "[1]"])
def test_what_is_no_event_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "a").write_text(f'{{"time":1,"process":"p","type":"ok","op":"begin","txn":"t"}}\n{line}\n')
    with pytest.raises(HistoryError, match="line 2"):
        list(load(tmp_path / "a"))
