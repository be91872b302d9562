"""The tasks between two offsets, and what is said of records that are gone."""

from __future__ import annotations

from typing import Any, cast

import pytest

pytest.importorskip("pyarrow")

from tidelog.client.metadata import Leader
from tidelog.model.ids import ZERO_UUID, TopicPartition
from tidelog.spark import tasks
from tidelog.spark.cluster import Cluster
from tidelog.spark.options import SourceOptions, parse_options
from tidelog.spark.planning import SourceOffset
from tidelog.spark.reader import DataLost

A, B = TopicPartition("a", 0), TopicPartition("a", 1)


class StandIn:
    """A cluster whose partitions begin at 5, and which has found out their leaders when it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.metadata = self

    def leader(self, topic: str, partition: int) -> Leader | None:
        return Leader(1, 0) if ("topics", (topic,)) in self.asked else None

    def topics(self, names: tuple[str, ...]) -> None:
        self.asked.append(("topics", names))

    def offsets(self, wanted: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        return dict.fromkeys(wanted, 5)

    def hint(self, at: TopicPartition) -> tuple[Leader, str, int]:
        return Leader(1, 0), "host", 1


def options(**more: str) -> SourceOptions:
    return parse_options({"kafka.bootstrap.servers": "host:1", "subscribe": "a", **more}, streaming=True)


def spans(found: list[Any]) -> list[tuple[TopicPartition, int, int]]:
    return [(task.at, task.start, task.end) for task in found]


def test_each_partition_that_moved_is_a_task_with_its_leader() -> None:
    cluster = StandIn()
    found = tasks.between(cast(Cluster, cluster), options(), SourceOffset({A: 1, B: 2}), SourceOffset({A: 1, B: 9}))
    assert spans(found) == [(B, 2, 9)]
    assert (found[0].hint, found[0].topic_id) == ((Leader(1, 0), "host", 1), ZERO_UUID)
    assert cluster.asked == [("topics", ("a",))]


def test_ranges_are_cut_as_the_options_say() -> None:
    cut = options(maxRecordsPerPartition="4")
    found = tasks.between(cast(Cluster, StandIn()), cut, SourceOffset({A: 0}), SourceOffset({A: 8}))
    assert spans(found) == [(A, 0, 4), (A, 4, 8)]


def test_a_new_partition_begins_where_it_does_and_that_is_a_loss() -> None:
    begin, stop = SourceOffset({A: 8}), SourceOffset({A: 8, B: 9})
    with pytest.raises(DataLost, match="a-1 is new to this query, and its offsets before 5 were deleted"):
        tasks.between(cast(Cluster, StandIn()), options(), begin, stop)
    found = tasks.between(cast(Cluster, StandIn()), options(failOnDataLoss="false"), begin, stop)
    assert spans(found) == [(B, 5, 9)]


def test_nothing_is_asked_of_a_cluster_for_an_empty_batch() -> None:
    cluster = StandIn()
    assert tasks.between(cast(Cluster, cluster), options(), SourceOffset({A: 8}), SourceOffset({A: 8})) == []
    assert cluster.asked == []
