"""kill -9 under load, again and again: what was acknowledged stays at its offset with its content; nothing twice where promised.

``--kills 100`` for the long form. kill -9 takes the process but leaves the operating system's page cache, so this must hold
whatever the flush settings are.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.clients import LIMIT_S, until
from tests.interop.dump import dump
from tests.interop.java import JavaSide
from tests.interop.nodes import Node

pytestmark = [pytest.mark.interop, pytest.mark.timeout(3600)]
TOPIC = "load"
# One partition per producer, so that each partition's content is that producer's.
PRODUCERS = (
    {"acks": "1", "compression.type": "none"},
    {"acks": "all", "compression.type": "lz4"},
    {"enable.idempotence": True, "compression.type": "none"},
)
IDEMPOTENT = 2
PROPERTIES = {"log.segment.bytes": str(1 << 20), "broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "300"}
STEP_S = 0.005
RECORDS_PER_STEP = 8
BURST = 400
COMES_YET = (
    confluent_kafka.KafkaError.NOT_LEADER_FOR_PARTITION,
    confluent_kafka.KafkaError.LEADER_NOT_AVAILABLE,
    confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART,
    # What librdkafka makes of metadata without any broker: the listener is open, and the broker is not unfenced yet.
    confluent_kafka.KafkaError._UNKNOWN_PARTITION,
)


def value_of(partition: int, number: int) -> bytes:
    """The content of a producer's record with this number; differs from that of every other record."""
    return b"%d:%d:" % (partition, number) + b"%08x" % (number * 2654435761 & 0xFFFFFFFF) * (3 + number % 11)


@dataclass
class Load:
    """The producers and their acknowledgements: for each partition, the content acknowledged or seen at each offset."""

    bootstrap: str
    known: list[dict[int, bytes]] = field(default_factory=lambda: [{} for _ in PRODUCERS])
    acknowledged: list[int] = field(default_factory=lambda: [0] * len(PRODUCERS))
    sent: list[int] = field(default_factory=lambda: [0] * len(PRODUCERS))
    refused: list[str] = field(default_factory=list)
    producers: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        patient = {"bootstrap.servers": self.bootstrap, "linger.ms": 2, "delivery.timeout.ms": 300_000, "log_level": 0}
        quick = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100, "retry.backoff.ms": 20}
        self.producers = [confluent_kafka.Producer({**patient, **quick, **config}) for config in PRODUCERS]

    def note(self, partition: int, offset: int, content: bytes, how: str) -> None:
        """Enter what an offset holds: for ever."""
        before = self.known[partition].setdefault(offset, content)
        assert before == content, f"{TOPIC}-{partition}@{offset} was {before[:40]!r}, and is {how} as {content[:40]!r}"

    def delivered(self, error: Any, message: Any) -> None:
        """A delivery report."""
        if error is not None:
            self.refused.append(f"partition {message.partition()}: {error}")
            return
        self.acknowledged[message.partition()] += 1
        self.note(message.partition(), message.offset(), message.value(), "acknowledged")

    def pump(self, seconds: float) -> None:
        """Keep the producers busy for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for partition, producer in enumerate(self.producers):
                for _ in range(RECORDS_PER_STEP):
                    value = value_of(partition, self.sent[partition])
                    producer.produce(TOPIC, value, partition=partition, on_delivery=self.delivered)
                    self.sent[partition] += 1
                producer.poll(0)
            time.sleep(STEP_S)

    def burst(self, seconds: float) -> None:
        """Many records at once, so that a kill this long afterwards finds some half written and some on their way."""
        for _ in range(BURST):
            for partition, producer in enumerate(self.producers):
                producer.produce(
                    TOPIC, value_of(partition, self.sent[partition]), partition=partition, on_delivery=self.delivered
                )
                self.sent[partition] += 1
        time.sleep(seconds)

    def pump_until_all_get_through(self) -> None:
        """Until each producer has been acknowledged something new: librdkafka takes up to a second to connect again."""
        before = list(self.acknowledged)
        for _ in until(
            lambda: all(new > old for new, old in zip(self.acknowledged, before, strict=True)), "reach the node again"
        ):
            self.pump(STEP_S)

    def finish(self) -> None:
        """Let everything that was sent arrive."""
        for _ in until(lambda: self.acknowledged == self.sent or bool(self.refused), "the last acknowledgements"):
            for producer in self.producers:
                producer.poll(0.05)


class Reader:
    """Reads a partition's records from an offset to the end."""

    def __init__(self, bootstrap: str) -> None:
        self.config = {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }

    @staticmethod
    def end(consumer: Any, partition: int) -> int:
        """The end offset. A broker that has just come back may first have to learn that it leads."""
        for _ in until(lambda: False, f"the end of {TOPIC}-{partition}"):
            try:
                return int(consumer.get_watermark_offsets(confluent_kafka.TopicPartition(TOPIC, partition), timeout=LIMIT_S)[1])
            except confluent_kafka.KafkaException as failed:
                if failed.args[0].code() not in COMES_YET:
                    raise
                time.sleep(0.02)
        raise AssertionError("not reached")

    def read(self, partition: int, start: int) -> list[tuple[int, bytes]]:
        """Offsets and values from ``start`` up to where the partition ends now."""
        consumer = confluent_kafka.Consumer({**self.config, "fetch.wait.max.ms": 20})
        try:
            end = self.end(consumer, partition)
            found: list[tuple[int, bytes]] = []
            consumer.assign([confluent_kafka.TopicPartition(TOPIC, partition, start)])
            for _ in until(
                lambda: end <= start or bool(found and found[-1][0] >= end - 1), f"read {TOPIC}-{partition} up to {end}"
            ):
                for message in consumer.consume(2000, timeout=0.05):
                    assert message.error() is None, f"{TOPIC}-{partition} from {start} (end {end}): {message.error()}"
                    found.append((message.offset(), message.value()))
            return found
        finally:
            consumer.close()


def admin(node: Node) -> AdminClient:
    """A new one for each question: the connections of an old one end with the node."""
    return AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})


def create(node: Node, topic: str, partitions: int = 1) -> None:
    """Create a topic, acknowledged."""
    asked = admin(node)
    asked.create_topics([NewTopic(topic, partitions, 1)])[topic].result(LIMIT_S)


def check(load: Load, reader: Reader, floors: list[int]) -> None:
    """From each floor on: everything known is there and the same, without gaps. What is seen is known from now on."""
    for partition, floor in enumerate(floors):
        due = {offset for offset in list(load.known[partition]) if offset >= floor}
        found = reader.read(partition, floor)
        offsets = [offset for offset, _ in found]
        assert offsets == list(range(floor, floor + len(found))), f"gaps in {TOPIC}-{partition} from {floor} on"
        lost = sorted(due.difference(offsets))
        assert not lost, (
            f"{TOPIC}-{partition}: {len(lost)} known records are gone, offsets {lost[0]} to {lost[-1]}; it ends at {offsets[-1:]}"
        )
        for offset, content in found:
            load.note(partition, offset, content, "read")


@pytest.fixture
def node(home: Path, request: pytest.FixtureRequest, java: JavaSide) -> Iterator[Node]:
    """The node to be killed."""
    made = Node(request.config.getoption("--broker"), home, java, PROPERTIES)
    yield made
    made.kill()


def test_kill_9_under_load_loses_and_changes_nothing(node: Node, java: JavaSide, request: pytest.FixtureRequest) -> None:
    seed = time.time_ns()
    print(f"seed {seed}")
    rng = random.Random(seed)
    node.start()
    create(node, TOPIC, len(PRODUCERS))
    load, reader = Load(node.bootstrap), Reader(node.bootstrap)
    created, floors = {TOPIC}, [0] * len(PRODUCERS)
    for number in range(request.config.getoption("--kills")):
        load.pump_until_all_get_through()
        load.pump(rng.uniform(0, 0.4))
        load.burst(rng.uniform(0, 0.02))
        node.kill()
        if rng.random() < 0.2:  # once more, while it starts
            node.launch()
            load.pump(rng.uniform(0, 0.4))
            node.kill()
        node.start()
        check(load, reader, floors)
        floors = [max(known, default=-1) + 1 for known in load.known]
        gone = created.difference(admin(node).list_topics(timeout=LIMIT_S).topics)
        assert not gone, f"topics that were created are gone: {gone}"
        create(node, f"made-{number}")
        created.add(f"made-{number}")
        assert not load.refused, load.refused[:5]
    load.finish()
    assert not load.refused, load.refused[:5]
    check(load, reader, [0] * len(PRODUCERS))
    once = [value_of(IDEMPOTENT, number) for number in range(load.sent[IDEMPOTENT])]
    assert [load.known[IDEMPOTENT][offset] for offset in sorted(load.known[IDEMPOTENT])] == once, (
        "the idempotent producer's records"
    )
    node.stop()
    found = dump(java, node.data)
    assert not found.trouble, "\n".join(found.trouble[:20])
    print(f"{load.acknowledged} acknowledged in {node.starts} starts; {found.files} files looked at, {found.batches} batches")
