"""Batches that wait in a topic: found again as they were, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

from tidelog.client.producer_settings import parse_producer_settings
from tidelog.client.settings import ClientSettings, parse_settings
from tidelog.model.ids import TopicPartition
from tidelog.records.builder import RecordData, build_batch
from tidelog.spark.appending import WriteFailed
from tidelog.spark.cluster import Cluster
from tidelog.spark.staging import PARTITIONS, Staged, Stager, ensure_topic, staged_batches
from tidelog.testing import Broker

AT = TopicPartition("t", 0)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as found:
        yield found


def client(broker: Broker) -> ClientSettings:
    return parse_settings({"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": "1"})


def stage(broker: Broker, sizes: list[int], spread: int = 0, **kafka: str) -> tuple[list[bytearray], list[Staged]]:
    settings, _ = parse_producer_settings({name.replace("_", "."): text for name, text in kafka.items()})
    batches = [build_batch([RecordData(None, bytes([i]) * size, 1)]) for i, size in enumerate(sizes)]
    stager = Stager(Cluster(client(broker)), settings, 5000, "waiting", spread, 1_700_000_000_000)
    return batches, stager.stage([(AT, 1, batch) for batch in batches])


def read(broker: Broker, staged: list[Staged]) -> list[bytearray]:
    return [batch for _, batch in staged_batches(Cluster(client(broker)), client(broker), staged)]


def test_what_is_staged_is_found_in_its_order_among_what_others_stage(broker: Broker) -> None:
    first, where = stage(broker, [10, 3000, 20, 900], max_request_size="4000")
    _, others = stage(broker, [5, 6])
    second, more = stage(broker, [7], spread=1)
    assert read(broker, [*where, *more]) == [*first, *second]
    assert {s.source for s in others} == {where[0].source} != {more[0].source}
    assert sorted(s.offset for s in [*where, *others]) == list(range(6))


def test_the_topic_is_made_once_and_one_that_is_there_is_used(broker: Broker) -> None:
    cluster = Cluster(client(broker))
    ensure_topic(cluster, "waiting")
    ensure_topic(cluster, "waiting")
    assert len(cluster.topics(("waiting",))["waiting"].leaders) == PARTITIONS
    broker.create_topic("small", 1)
    ensure_topic(cluster, "small")
    assert len(cluster.topics(("small",))["small"].leaders) == 1


def test_a_topic_that_may_not_be_made_is_told_with_how_to_make_it(broker: Broker) -> None:
    broker.faults.refuse("CREATE_TOPICS", "TOPIC_AUTHORIZATION_FAILED")
    with pytest.raises(WriteFailed, match=r"Create it \(8 partitions, cleanup.policy=delete.*the option stagingTopic"):
        ensure_topic(Cluster(client(broker)), "waiting")


def test_what_passes_is_waited_out(broker: Broker) -> None:
    broker.faults.drop("CREATE_TOPICS")
    broker.faults.drop("PRODUCE")
    batches, where = stage(broker, [10])
    assert read(broker, where) == batches


def test_what_is_not_what_was_staged_is_never_given_out(broker: Broker) -> None:
    _, where = stage(broker, [10, 20])
    with pytest.raises(WriteFailed, match="is not what a task has staged"):
        read(broker, [replace(where[0], crc=where[0].crc ^ 1)])
    with pytest.raises(WriteFailed, match="is not what a task has staged"):
        read(broker, [replace(where[0], offset=1)])
    with pytest.raises(WriteFailed, match="are gone"):
        read(broker, [replace(where[0], topic_id=b"another topic id")])
    with pytest.raises(WriteFailed, match="are gone"):
        read(broker, [replace(where[0], offset=99)])
