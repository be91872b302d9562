"""Where a query begins: what the user says, and what the topics have."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tidelog.model.errors import ConfigError
from tidelog.model.ids import TopicPartition
from tidelog.spark.bounds import resolve
from tidelog.spark.options import Bound

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


class Logs:
    """Two partitions from 10 to 50, whose records have their offset as timestamp."""

    def offsets(self, wanted: Mapping[TopicPartition, int], isolation_level: int = 0) -> dict[TopicPartition, int]:
        return {at: {-1: 50, -2: 10}.get(time, max(10, time) if time < 50 else -1) for at, time in wanted.items()}


def resolved(bound: Bound) -> list[int]:
    found = resolve(Logs(), [A1, A0], bound, isolation_level=0, option="starting")
    return [found[A0], found[A1]]


@pytest.mark.parametrize(
    ("bound", "offsets"),
    [
        (Bound(word="earliest"), [10, 10]),
        (Bound(word="latest"), [50, 50]),
        (Bound(offsets={A0: -2, A1: 30}), [10, 30]),
        (Bound(offsets={A0: -1, A1: 50}), [50, 50]),
        (Bound(timestamp=20), [20, 20]),
        (Bound(timestamp=90, or_latest=True), [50, 50]),
        (Bound(timestamps={A0: 15, A1: 90}, or_latest=True), [15, 50]),
    ],
)
def test_a_bound_becomes_an_offset_for_each_partition(bound: Bound, offsets: list[int]) -> None:
    assert resolved(bound) == offsets


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        (Bound(offsets={A0: 20}), "startingOffsets does not name a-1"),
        (Bound(offsets={A0: 20, A1: 20, TopicPartition("a", 2): 0}), "names a-2, which is not read"),
        (Bound(offsets={A0: 20, A1: 51}), "says 51 for a-1, and that partition ends at offset 50"),
        (Bound(timestamps={A0: 20}), "startingOffsetsByTimestamp does not name a-1"),
        (Bound(timestamp=90), "startingOffsetsByTimestampStrategy=latest"),
    ],
)
def test_a_bound_that_does_not_fit_the_topics_is_refused(bound: Bound, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        resolved(bound)
