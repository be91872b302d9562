"""Three real nodes: what was acknowledged by all replicas in sync outlives its leader, and each record is there once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.node.cluster import Cluster

RECORDS = 600
TOPIC = "replicated"


def create(cluster: Cluster, topic: str, partitions: int = 1, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    new = NewTopic(topic, partitions, 3, config={"min.insync.replicas": "2", **config})
    admin.create_topics([new], operation_timeout=30)[topic].result(30)


def leader_of(cluster: Cluster, topic: str) -> int:
    found = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(topic, timeout=30).topics[topic]
    return int(found.partitions[0].leader)


def isr_of(cluster: Cluster, topic: str) -> set[int]:
    found = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(topic, timeout=30).topics[topic]
    return set(found.partitions[0].isrs)


def read_all(cluster: Cluster, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    try:
        while len(values) < count:
            message = consumer.poll(30)
            assert message is not None, f"only {len(values)} of {count} records came"
            assert not message.error(), message.error()
            values.append(message.value())
    finally:
        consumer.close()
    return values


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(Path(tmp_path_factory.mktemp("replication")), 3) as cluster:
        yield cluster


def test_what_was_acknowledged_outlives_the_leader_and_a_killed_one_catches_up(cluster: Cluster) -> None:
    create(cluster, TOPIC)
    acknowledged: list[bytes] = []

    def delivered(error: KafkaError | None, message: object) -> None:
        assert error is None, error
        acknowledged.append(message.value())  # type: ignore[attr-defined]

    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "linger.ms": 0})
    for number in range(RECORDS):
        producer.produce(TOPIC, str(number).encode(), partition=0, on_delivery=delivered)
        producer.poll(0)
        if number == RECORDS // 2:
            cluster.until(lambda: len(acknowledged) > RECORDS // 4 or producer.poll(0.05), "records are acknowledged")
            killed = leader_of(cluster, TOPIC)
            cluster.kill(killed)
    assert producer.flush(60) == 0
    assert len(acknowledged) == RECORDS
    assert Counter(read_all(cluster, TOPIC, RECORDS)) == Counter(str(number).encode() for number in range(RECORDS))
    assert leader_of(cluster, TOPIC) != killed
    cluster.start(killed)
    cluster.until(lambda: isr_of(cluster, TOPIC) == {1, 2, 3}, "the killed broker is in sync again")


def log_of(cluster: Cluster, node_id: int, topic: str) -> bytes:
    return (cluster.path(node_id) / f"{topic}-0" / f"{0:020d}.log").read_bytes()


def test_what_only_a_dead_leader_had_is_cut_when_it_comes_back(cluster: Cluster) -> None:
    topic = "cut"
    create(cluster, topic)
    first = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "linger.ms": 0})
    first.produce(topic, b"kept", partition=0)
    assert first.flush(30) == 0
    leader = leader_of(cluster, topic)
    others = [each for each in cluster.brokers if each != leader]
    alone = Producer({"bootstrap.servers": cluster.address(leader), "acks": 1, "linger.ms": 0})
    alone.list_topics(topic, timeout=30)
    cluster.pause(*others)
    # The first one answers the polls that wait, and may be read when the followers go on; nobody asks for the second one.
    for value in (b"answers the polls", b"lost"):
        alone.produce(topic, value, partition=0)
        assert alone.flush(30) == 0, "the leader alone took it"
    cluster.kill(leader)
    cluster.resume(*others)
    after = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "linger.ms": 0})
    after.produce(topic, b"after", partition=0)
    assert after.flush(60) == 0
    cluster.start(leader)
    cluster.until(lambda: isr_of(cluster, topic) == {1, 2, 3}, "the old leader is in sync again")
    logs = {log_of(cluster, each, topic) for each in cluster.brokers}
    assert len(logs) == 1
    (whole,) = logs
    assert b"kept" in whole and b"after" in whole and b"lost" not in whole
    assert cluster.complaints() == []
