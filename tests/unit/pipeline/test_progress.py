"""Numbers and the line that shows them."""

from __future__ import annotations

from typing import Any

from tidelog.model.ids import TopicPartition
from tidelog.pipeline.progress import Counts, duration, line, progress_of

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


def test_lag_of_a_batch_planned_by_an_earlier_run_counts_from_where_the_topics_ended_at_the_start() -> None:
    planned = FOUND | {"sources": [{"startOffset": None, "endOffset": {"t": {"0": 30, "1": 5}}, "latestOffset": None}]}
    found = progress_of("rides", planned, {TopicPartition("t", 0): 340_030, TopicPartition("t", 1): 5})
    assert found.lag == {"t": 340_000}
    assert "lag t 340,000" in line(found, 0, 0) and "up to date" not in line(found, 0, 0)
    later = progress_of("rides", FOUND, {TopicPartition("t", 0): 340_030})
    assert later.lag == {"t": 50}


def test_bad_rows_are_counted_by_batch_and_since_the_start() -> None:
    counts = Counts()
    for batch in range(3):
        before = counts.bad
        counts.undecodable += batch
        counts.broken["clean", "positive"] += 10 * batch
        counts.ended(batch, before)
    assert counts.bad == (3, 30)
    assert counts.taken(1) == (1, 10)
    assert list(counts.batches) == [2]
    assert counts.taken(2) == (2, 20)
    assert counts.taken(7) == (0, 0)


def test_without_offsets_there_is_nothing_to_show() -> None:
    found = progress_of("rides", {"batchId": 0, "sources": [{"endOffset": None, "latestOffset": "nonsense"}]})
    assert (found.records, found.lag, found.eta_s) == (0, {}, 0.0)
    assert line(found, 0, 0).endswith("lag -  up to date")


def test_durations_are_for_people() -> None:
    assert [duration(s) for s in (3, 600, 9000, None)] == ["3 s", "10 min", "2.5 h", "never at this rate"]
