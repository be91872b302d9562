"""Numbers and the line that shows them."""

from __future__ import annotations

from typing import Any

from tidelog.pipeline.progress import duration, line, progress_of

FOUND: dict[str, Any] = {
    "batchId": 4,
    "durationMs": {"triggerExecution": 2000},
    "sources": [
        {"startOffset": '{"t": {"0": 10}}', "endOffset": {"t": {"0": 30, "1": 5}}, "latestOffset": '{"t": {"0": 80, "1": 5}}'}
    ],
}


def test_records_rate_and_lag_come_from_offsets() -> None:
    found = progress_of("rides", FOUND)
    assert (found.batch_id, found.records, found.rate, found.lag, found.eta_s) == (4, 25, 12.5, {"t": 50}, 4.0)
    assert line(found, 2, 1) == "rides: batch 4  25 records  12/s  lag t 50  ETA 4 s  2 undecodable  1 broke a rule"


def test_without_offsets_there_is_nothing_to_show() -> None:
    found = progress_of("rides", {"batchId": 0, "sources": [{"endOffset": None, "latestOffset": "nonsense"}]})
    assert (found.records, found.lag, found.eta_s) == (0, {}, 0.0)
    assert line(found, 0, 0).endswith("lag -  up to date")


def test_durations_are_for_people() -> None:
    assert [duration(s) for s in (3, 600, 9000, None)] == ["3 s", "10 min", "2.5 h", "never at this rate"]
