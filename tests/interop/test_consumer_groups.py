"""Groups of the consumer protocol (KIP-848) with the clients that people use: members of several clients share, one vanishes, the
rest is taken over; and a group changes from the classic protocol to the new one and back while records flow, with none lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from tests.interop.java import JavaSide
from tests.interop.nodes import Node, running

PROPERTIES = {
    "num.partitions": "3",
    "offsets.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    # Kafka's own least is 45 s: too long to wait for somebody who has vanished.
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.assignment.interval.ms": "100",
}
TIMEOUT_S = 30


@pytest.fixture(scope="module")
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, java: JavaSide) -> Iterator[Node]:
    """A node of the kind that ``--broker`` says, with short sessions."""
    kind = request.config.getoption("--broker")
    with running(Node(kind, tmp_path_factory.mktemp("groups"), java, PROPERTIES)) as started:
        yield started


class JavaMember:
    """A consumer in the JVM."""

    def __init__(self, java: JavaSide, node: Node, name: str, group: str, topic: str, protocol: str) -> None:
        self.java, self.name = java, name
        config = {"group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
        if protocol == "classic":
            config |= {"session.timeout.ms": "6000", "heartbeat.interval.ms": "300"}
        java.ask("member_start", name=name, bootstrap=node.bootstrap, topics=[topic], config=config)

    def look(self) -> tuple[list[int], list[int]]:
        """What it has read, and the partitions that are its."""
        found = self.java.ask("member_look", name=self.name)
        return [int(value) for value in found["values"]], found["partitions"]

    def stop(self, how: str = "close") -> None:
        self.java.ask("member_stop", name=self.name, how=how)


class LibrdkafkaMember:
    """A consumer of confluent-kafka, polled when it is looked at."""

    def __init__(self, node: Node, group: str, topic: str, protocol: str) -> None:
        config: dict[str, Any] = {
            "bootstrap.servers": node.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        if protocol == "classic":
            config |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 300, "partition.assignment.strategy": "range"}
        self.consumer = Consumer(config)
        self.consumer.subscribe([topic])
        self.values: list[int] = []

    def look(self) -> tuple[list[int], list[int]]:
        deadline = time.monotonic() + 0.2
        while time.monotonic() < deadline:
            message = self.consumer.poll(0.05)
            if message is not None and message.error() is None:
                self.values.append(int(message.value()))
                with suppress(KafkaException):  # it may have lost the partition meanwhile: whoever has it reads on
                    self.consumer.commit(message, asynchronous=False)
        return self.values, sorted(each.partition for each in self.consumer.assignment())

    def stop(self) -> None:
        self.consumer.close()


Member = JavaMember | LibrdkafkaMember


def until(members: list[Member], what: str, done: Callable[[list[list[int]], set[int]], bool]) -> set[int]:
    """Looks at the members until their partitions and all values read so far are as wanted; these values."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        looks = [member.look() for member in members]
        values = {value for seen, _ in looks for value in seen}
        parts = [partitions for _, partitions in looks]
        if done(parts, values):
            return values
        assert time.monotonic() < deadline, f"{what}: partitions {parts}, {len(values)} values after {TIMEOUT_S} s"


def shared(count: int) -> Callable[[list[list[int]], set[int]], bool]:
    """Each member has a partition, no partition has two members, and all three are assigned."""
    return lambda parts, _: sorted(chain.from_iterable(parts)) == [0, 1, 2] and all(parts) and len(parts) == count


def produce(node: Node, topic: str, start: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap})
    for number in range(start, start + count):
        producer.produce(topic, value=str(number), partition=number % 3)
    assert producer.flush(TIMEOUT_S) == 0


def group_type(node: Node, group: str) -> str:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    found = admin.list_consumer_groups().result(TIMEOUT_S)
    return next(each.type.name for each in found.valid if each.group_id == group)


@pytest.mark.timeout(120)
def test_java_and_librdkafka_share_a_group_and_what_one_leaves_behind_is_taken_over(node: Node, java: JavaSide) -> None:
    node.create("shared", 3)
    produce(node, "shared", 0, 300)
    java_member = JavaMember(java, node, "a", "mixed", "shared", "consumer")
    other = LibrdkafkaMember(node, "mixed", "shared", "consumer")
    second = JavaMember(java, node, "b", "mixed", "shared", "consumer")
    until([java_member, other, second], "three share", shared(3))
    produce(node, "shared", 300, 300)
    values = until([java_member, other, second], "all is read", lambda _, seen: len(seen) == 600)
    java_member.stop("vanish")
    until([other, second], "two take over", shared(2))
    produce(node, "shared", 600, 300)
    values |= until([other, second], "the rest is read", lambda _, seen: {*range(600, 900)} <= seen)
    assert values == {*range(900)}
    second.stop()
    until([other], "one has all", lambda parts, _: parts == [[0, 1, 2]])
    other.stop()


@pytest.mark.timeout(180)
def test_a_group_changes_to_the_consumer_protocol_and_back_while_records_flow(node: Node, java: JavaSide) -> None:
    node.create("moving", 3)
    produce(node, "moving", 0, 300)
    first: Member = JavaMember(java, node, "old-1", "moving", "moving", "classic")
    second: Member = LibrdkafkaMember(node, "moving", "moving", "classic")
    everybody: list[Member] = [first, second]
    until(everybody, "classic members share", shared(2))
    assert group_type(node, "moving") == "CLASSIC"
    new: Member = JavaMember(java, node, "new-1", "moving", "moving", "consumer")
    everybody.append(new)
    until(everybody, "a member of the consumer protocol gets its share", shared(3))
    assert group_type(node, "moving") == "CONSUMER"
    produce(node, "moving", 300, 300)
    until(everybody, "all is read", lambda _, seen: len(seen) == 600)
    values = {value for member in everybody for value in member.look()[0]}
    first.stop()
    until([second, new], "a classic member leaves", shared(2))
    new.stop()
    until([second], "the last one of the consumer protocol leaves", lambda parts, _: parts == [[0, 1, 2]])
    assert group_type(node, "moving") == "CLASSIC"
    produce(node, "moving", 600, 300)
    values |= until([second], "the rest is read", lambda _, seen: {*range(600, 900)} <= seen)
    assert values == {*range(900)}
    second.stop()
