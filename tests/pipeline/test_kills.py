"""The short form of ``make pipeline-kills``: broker and driver killed, with both engines in the driver; each record once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra pipeline is not installed")
pytest.importorskip("yaml", reason="the extra pipeline is not installed")
pytest.importorskip("deltalake", reason="the extra delta is not installed")

from tests.pipeline import landed
from tests.pipeline.kills import BULK, SINKS, Run
from tests.pipeline.kills_note import Note


@pytest.mark.timeout(600)
def test_every_record_is_in_every_sink_once_after_kills_of_broker_and_driver(tmp_path: Path) -> None:
    run = Run(tmp_path, ["broker", "driver"], SINKS + BULK, 1, print)
    assert run.go() == dict.fromkeys(SINKS + BULK, "")
    assert run.rows > 0
    assert run.kills == {"broker": 1, "driver": 1}


def test_rows_that_are_lost_doubled_or_strange_are_told() -> None:
    assert landed.judged({"a", "b"}, ["b", "a"]) == ""
    assert landed.judged({"a", "b"}, ["b", "b", "c"]) == "1 lost (a); 1 twice (b); 1 strange (c)"


def test_kills_are_counted_from_run_to_run_and_told_on_a_page(tmp_path: Path) -> None:
    path = tmp_path / "note"
    first, beside = Note.read(path), Note.read(path)
    verdicts = {"topic": "", "delta": "1 lost (0:7)"}
    for note in (first, beside):
        note.add(verdicts, Counter(broker=3, executor=2), Counter(broker=1), 1000, 0, "2026-11-21")
    note = Note.read(path)
    assert note.kills("broker", "topic") == 6
    assert note.left("broker", ("topic", "iceberg"), 50) == 50
    assert note.left("executor", ("topic", "delta"), 50) == 46
    assert note.left("driver", ("topic",), 50) == 50
    assert "| broker | topic | 6 | 2 | 2 | 2,000 | none | 2026-11-21 |" in note.page()
    assert "| executor | delta | 4 | 0 | 2 | 2,000 | 2026-11-21: 1 lost (0:7); 2026-11-21: 1 lost (0:7) |" in note.page()
