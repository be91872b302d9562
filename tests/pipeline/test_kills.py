"""The short form of ``make pipeline-kills``: one run, the broker and the driver killed, every record once in every sink."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra pipeline is not installed")
pytest.importorskip("yaml", reason="the extra pipeline is not installed")

from tests.pipeline import landed
from tests.pipeline.kills import BULK, MIXED, SINKS, Note, Run


@pytest.mark.timeout(600)
def test_every_record_is_in_every_sink_once_after_kills_of_broker_and_driver(tmp_path: Path) -> None:
    run = Run(tmp_path, MIXED, SINKS, 1, print)
    assert run.go(2) == dict.fromkeys(SINKS, "")
    assert run.rows > 0


@pytest.mark.timeout(600)
def test_every_record_is_in_every_table_of_the_bulk_lane_once_after_a_kill_of_the_driver(tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="the extra delta is not installed")
    run = Run(tmp_path, "driver", BULK, 1, print)
    assert run.go(1) == dict.fromkeys(BULK, "")
    assert run.rows > 0


def test_rows_that_are_lost_doubled_or_strange_are_told() -> None:
    assert landed.judged({"a", "b"}, ["b", "a"]) == ""
    assert landed.judged({"a", "b"}, ["b", "b", "c"]) == "1 lost (a); 1 twice (b); 1 strange (c)"


def test_kills_are_counted_from_run_to_run_and_told_on_a_page(tmp_path: Path) -> None:
    run = Run(tmp_path, "broker", ("topic",), 1, print)
    run.kills, run.rows = 3, 1000
    for _ in range(2):
        Note.read(tmp_path / "note").add(run, "broker", {"topic": "", "delta": "1 lost (0:7)"}, "2026-11-21")
    note = Note.read(tmp_path / "note")
    assert note.kills("broker", "topic") == 6
    assert note.kills("driver", "topic") == 0
    assert "| broker | topic | 6 | 2 | 2,000 | none | 2026-11-21 |" in note.page()
    assert "| broker | delta | 6 | 2 | 2,000 | 2026-11-21: 1 lost (0:7); 2026-11-21: 1 lost (0:7) |" in note.page()
