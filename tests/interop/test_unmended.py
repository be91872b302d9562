"""Clients of a leader whose batch is damaged, while the only other replica is down: they wait, and read on once it is back."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.java import JavaSide
from tests.node.cluster import Cluster
from tests.node.test_repair import content, flip, segments
from tests.node.test_replication import isr_of, leader_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]
TOPIC, BATCHES, PER_BATCH = "bits", 4, 50
VALUES = [b"%05d" % number * 20 for number in range(BATCHES * PER_BATCH)]


def write(cluster: Cluster) -> None:
    new = NewTopic(TOPIC, 1, replica_assignment=[[1, 2]], config={"min.insync.replicas": "1", "flush.messages": "1"})
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([new], operation_timeout=30)[TOPIC].result(30)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 200})
    for first in range(0, len(VALUES), PER_BATCH):
        for value in VALUES[first : first + PER_BATCH]:
            producer.produce(TOPIC, value, partition=0)
        assert producer.flush(30) == 0
    cluster.until(lambda: len({content(cluster, each) for each in (1, 2)}) == 1 or None, "equal replicas")


def by_java(cluster: Cluster, java: JavaSide) -> int:
    what = {"bootstrap": cluster.bootstrap, "topic": TOPIC, "partitions": [0], "from": 0, "count": len(VALUES)}
    found = java.ask("consume", **what, timeout_ms=90_000, config={"auto.offset.reset": "none"})
    return len(found["records"])


def by_librdkafka(cluster: Cluster, _java: JavaSide) -> int:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g", "check.crcs": True})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    count = 0
    while count < len(VALUES):
        message = consumer.poll(60)
        assert message is not None and message.error() is None, message and message.error()
        assert message.value() == VALUES[count]
        count += 1
    consumer.close()
    return count


@pytest.mark.parametrize("consumed", [by_java, by_librdkafka])
def test_a_consumer_waits_for_a_batch_that_another_replica_has(
    tmp_path: Path, java: JavaSide, consumed: Callable[[Cluster, JavaSide], int]
) -> None:
    with Cluster(tmp_path) as cluster, ThreadPoolExecutor(1) as beside:
        write(cluster)
        cluster.stop(2)
        cluster.until(lambda: isr_of(cluster, TOPIC) == {1} or None, "only the leader in sync")
        cluster.kill(1)
        flip(segments(cluster, 1)[0])
        cluster.start(1)
        assert "are damaged" in cluster.log(1)
        cluster.until(lambda: leader_of(cluster, TOPIC) == 1 or None, "the damaged replica leads")
        reading = beside.submit(consumed, cluster, java)
        cluster.until(lambda: "cannot be mended from another replica now" in cluster.log(1) or None, "asked in vain")
        assert not reading.done(), reading.result()
        cluster.start(2)
        assert reading.result(90) == len(VALUES)
        assert "are replaced by those of broker 2" in cluster.log(1)
