"""What a backfill leaves to the live run."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

from tidelog.model.ids import TopicPartition
from tidelog.pipeline.backfilling import come_to
from tidelog.pipeline.sinks.base import OffsetRange
from tidelog.spark.planning import SourceOffset

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_records_that_the_run_has_not_come_to_are_left_to_it() -> None:
    ranges = (OffsetRange("t", "id", 0, 2, 9), OffsetRange("t", "id", 1, 2, 9))
    assert come_to(ranges, []) == ranges
    ahead, behind = SourceOffset({T0: 20, T1: 20}, {"t": "id"}), SourceOffset({T0: 5}, {"t": "id"})
    assert come_to(ranges, [ahead]) == ranges
    # The second partition is new to one of the sinks.
    assert come_to(ranges, [ahead, behind]) == (OffsetRange("t", "id", 0, 2, 5), OffsetRange("t", "id", 1, 2, 2))
    assert come_to(ranges, [SourceOffset({T0: 0, T1: 1}, {"t": "id"})]) == tuple(
        OffsetRange("t", "id", partition, 2, 2) for partition in (0, 1)
    )


def test_offsets_of_a_topic_that_was_made_again_say_nothing() -> None:
    (left,) = come_to((OffsetRange("t", "new", 0, 0, 9),), [SourceOffset({T0: 9}, {"t": "old"})])
    assert left == OffsetRange("t", "new", 0, 0, 0)
