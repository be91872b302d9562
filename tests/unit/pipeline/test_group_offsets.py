"""Progress as a group's offsets, on a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import Mock

import pytest
from confluent_kafka import Consumer, TopicPartition

from tidelog.client.connection import UnsupportedByBroker
from tidelog.client.failures import NotAuthenticated
from tidelog.client.settings import parse_settings
from tidelog.pipeline.group_offsets import GroupOffsets, least
from tidelog.pipeline.sinks.base import OffsetRange
from tidelog.spark.cluster import Cluster
from tidelog.testing import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as found:
        yield found


def test_offsets_are_committed_and_seen_by_another_client(broker: Broker) -> None:
    broker.create_topic("t", 2)
    cluster = Cluster(parse_settings({"bootstrap.servers": broker.bootstrap_servers}))
    assert GroupOffsets(cluster, "g").commit([OffsetRange("t", "", 0, 0, 5), OffsetRange("t", "", 1, 2, 2)]) == ""
    cluster.close()
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
    found = consumer.committed([TopicPartition("t", 0), TopicPartition("t", 1)], timeout=10)
    consumer.close()
    assert [partition.offset for partition in found] == [5, 2]


def test_what_the_cluster_refuses_is_told(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelog.pipeline.group_offsets.PATIENCE_MS", 100)
    cluster = Cluster(parse_settings({"bootstrap.servers": broker.bootstrap_servers}))
    problem = GroupOffsets(cluster, "g").commit([OffsetRange("t", "", 0, 0, 5)])
    cluster.close()
    assert problem == "t-0: UNKNOWN_TOPIC_OR_PARTITION"


@pytest.mark.parametrize("error", [NotAuthenticated("not this password"), UnsupportedByBroker("too old")])
def test_a_cluster_that_never_takes_them_is_no_reason_to_stop(broker: Broker, error: Exception) -> None:
    cluster = Cluster(parse_settings({"bootstrap.servers": broker.bootstrap_servers}))
    cluster.ask = Mock(side_effect=error)  # type: ignore[method-assign]
    assert GroupOffsets(cluster, "g").commit([OffsetRange("t", "", 0, 0, 5)]) == str(error)
    assert cluster.ask.call_count == 1
    cluster.close()


@pytest.mark.parametrize("api", ["FIND_COORDINATOR", "OFFSET_COMMIT"])
def test_a_connection_that_breaks_is_opened_again(broker: Broker, api: str) -> None:
    broker.create_topic("t", 1)
    cluster = Cluster(parse_settings({"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": "1"}))
    broker.faults.drop(api)
    assert GroupOffsets(cluster, "g").commit([OffsetRange("t", "", 0, 0, 5)]) == ""
    cluster.close()


def test_of_two_queries_that_read_one_topic_the_slower_one_is_told() -> None:
    ahead = (OffsetRange("t", "id", 0, 0, 9), OffsetRange("t", "id", 1, 3, 3))
    behind = (OffsetRange("t", "id", 0, 0, 5), OffsetRange("u", "id2", 0, 0, 1))
    assert least([ahead, behind]) == least([behind, ahead])
    found = [(piece.topic, piece.partition, piece.end) for piece in least([ahead, behind])]
    assert found == [("t", 0, 5), ("t", 1, 3), ("u", 0, 1)]
    assert least([]) == ()
