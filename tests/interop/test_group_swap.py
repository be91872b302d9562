"""Groups outlive a change of broker: Kafka reads our ``__consumer_offsets``, and we read its, offsets, metadata and all."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.java import JavaSide
from tests.interop.nodes import Node, running

PROPERTIES = {"num.partitions": "2", "offsets.topic.num.partitions": "3", "group.initial.rebalance.delay.ms": "0"}
TIMEOUT_S = 30
MODERN = {"modern": {}, "lasting": {"group.instance.id": "one"}}
"""Groups of the consumer protocol: a static member only goes for a while, so it is still in the records that the other reads."""


def consumer(node: Node, group: str, **more: str) -> Consumer:
    config = {
        "bootstrap.servers": node.bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        **({} if "group.protocol" in more else {"session.timeout.ms": 6000}),
        **more,
    }
    return Consumer(config)


def produce(node: Node, count: int, start: int) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap})
    for number in range(start, start + count):
        producer.produce("t", value=str(number), partition=number % 2)
    assert producer.flush(TIMEOUT_S) == 0


def read_on(node: Node, group: str, count: int, **more: str) -> list[int]:
    """What the group's only member reads next, committed when read."""
    member = consumer(node, group, **more)
    member.subscribe(["t"])
    got: list[int] = []
    while len(got) < count:
        message = member.poll(TIMEOUT_S)
        assert message is not None and message.error() is None, f"{len(got)} of {count} after {TIMEOUT_S} s"
        got.append(int(message.value()))
    member.commit(asynchronous=False)
    member.close()
    return sorted(got)


def committed(node: Node, group: str) -> dict[int, tuple[int, str | None]]:
    """Offsets and metadata by partition."""
    reader = consumer(node, group)
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            found = reader.committed([TopicPartition("t", 0), TopicPartition("t", 1)], timeout=TIMEOUT_S)
            break
        except KafkaException:  # a node that has just started does not lead its groups yet
            assert time.monotonic() < deadline
    reader.close()
    return {each.partition: (each.offset, each.metadata or None) for each in found}


def kinds(node: Node) -> dict[str, str]:
    """Which protocol each group has."""
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    return {each.group_id: each.type.name for each in admin.list_consumer_groups().result(TIMEOUT_S).valid}


def note(node: Node, group: str) -> None:
    """A commit from outside of the group's members, with a note."""
    writer = consumer(node, group)
    writer.commit(offsets=[TopicPartition("t", 0, 3, "a note")], asynchronous=False)
    writer.close()


@pytest.mark.parametrize("order", [("tidelog", "apache", "tidelog"), ("apache", "tidelog", "apache")], ids="-".join)
@pytest.mark.timeout(240)
def test_groups_read_on_where_they_were_on_the_other_broker(order: tuple[str, str, str], home: Path, java: JavaSide) -> None:
    node = Node(order[0], home, java, PROPERTIES)
    with running(node):
        node.create("t", 2)
        for turn, kind in enumerate(order):
            if turn:
                node.start(kind)
                assert committed(node, "noted") == {0: (3, "a note"), 1: (-1001, None)}
                for group in ("readers", *MODERN):
                    assert committed(node, group) == {0: (5 * turn, None), 1: (5 * turn, None)}
                assert kinds(node) == {"noted": "CLASSIC", "readers": "CLASSIC"} | dict.fromkeys(MODERN, "CONSUMER")
            else:
                note(node, "noted")
            produce(node, 10, 10 * turn)
            fresh = list(range(10 * turn, 10 * turn + 10))
            assert read_on(node, "readers", 10) == fresh
            for group, more in MODERN.items():
                assert read_on(node, group, 10, **{"group.protocol": "consumer"} | more) == fresh, group
            node.stop()
