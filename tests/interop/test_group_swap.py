"""Groups outlive a change of broker: Kafka reads our ``__consumer_offsets``, and we read its, offsets, metadata and all."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.interop.java import JavaSide
from tests.interop.nodes import Node, running

PROPERTIES = {"num.partitions": "2", "offsets.topic.num.partitions": "3", "group.initial.rebalance.delay.ms": "0"}
TIMEOUT_S = 30


def consumer(node: Node, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
        }
    )


def produce(node: Node, count: int, start: int) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap})
    for number in range(start, start + count):
        producer.produce("t", value=str(number), partition=number % 2)
    assert producer.flush(TIMEOUT_S) == 0


def read_on(node: Node, group: str, count: int) -> list[int]:
    """What the group's only member reads next, committed when read."""
    member = consumer(node, group)
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
    found = reader.committed([TopicPartition("t", 0), TopicPartition("t", 1)], timeout=TIMEOUT_S)
    reader.close()
    return {each.partition: (each.offset, each.metadata or None) for each in found}


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
                assert committed(node, "readers") == {0: (5 * turn, None), 1: (5 * turn, None)}
            else:
                note(node, "noted")
            produce(node, 10, 10 * turn)
            assert read_on(node, "readers", 10) == list(range(10 * turn, 10 * turn + 10))
            node.stop()
