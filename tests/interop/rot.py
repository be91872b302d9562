"""What a node makes of one flipped bit: written by librdkafka, stopped, flipped, started, read."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.nodes import Node, NodeFailed
from tidelog.records.batch import iter_headers

RECORDS = 300
BATCHES = 3
TOPIC, OTHER = "bits", "other"
SETTINGS = {"log.segment.bytes": str(1 << 20), "log.retention.ms": "-1", "log.index.interval.bytes": "1024"}


@dataclass
class Seen:
    """After the start: topics, offsets that were read, errors of the consumer, and what the log says at WARN or above."""

    started: bool
    topics: list[str] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    behind: list[int] = field(default_factory=list)
    end: int = -1
    said: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        text = f"started={self.started} topics={self.topics} read={len(self.offsets)} behind={len(self.behind)} end={self.end}"
        return text + f" errors={self.errors[:2]}" + "".join(f"\n      {line[:260]}" for line in self.said[:6])


def write(node: Node) -> None:
    """Two topics; the first one in three batches."""
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    for made in admin.create_topics([NewTopic(TOPIC, 1, 1), NewTopic(OTHER, 1, 1)]).values():
        made.result(20)
    producer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap, "enable.idempotence": True, "linger.ms": 200})
    for batch in range(BATCHES):
        for number in range(RECORDS):
            producer.produce(TOPIC, b"%d" % (batch * RECORDS + number), partition=0)
        assert producer.flush(20) == 0
    producer.produce(OTHER, b"x", partition=0)
    assert producer.flush(20) == 0


def read(node: Node, start: int) -> tuple[list[int], list[str]]:
    """Offsets from ``start`` up to the end, or to the first error that stays."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": node.bootstrap, "group.id": "none", "enable.auto.commit": False, "check.crcs": True,
         "enable.partition.eof": True, "auto.offset.reset": "error"}
    )  # fmt: skip
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, start)])
    found: list[int] = []
    errors: list[str] = []
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline and len(errors) < 3:
        message = consumer.poll(1.0)
        if message is None:
            continue
        error = message.error()
        if error is None:
            found.append(message.offset())
        elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
            break
        else:
            errors.append(f"{error.name()}")
    consumer.close()
    return found, errors


def batch_places(path: Path) -> list[tuple[int, int]]:
    """(position, size) of the batches of a file."""
    return [(header.position, header.size) for header in iter_headers(path.read_bytes())]


def flip(path: Path, position: int, bit: int = 3) -> None:
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


def observe(node: Node, kind: str) -> Seen:
    """Starts the node and looks."""
    try:
        node.start(kind)
    except NodeFailed:
        return Seen(False, said=_said(node))
    topics = AdminClient({"bootstrap.servers": node.bootstrap}).list_topics(timeout=20).topics
    seen = Seen(True, sorted(topics))
    if TOPIC in topics:
        seen.offsets, seen.errors = read(node, 0)
        consumer = confluent_kafka.Consumer({"bootstrap.servers": node.bootstrap, "group.id": "none"})
        seen.end = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(TOPIC, 0), timeout=20)[1]
        consumer.close()
        if seen.end > RECORDS * (BATCHES - 1):
            seen.behind, _ = read(node, RECORDS * (BATCHES - 1))
    seen.said = _said(node)
    return seen


def _said(node: Node) -> list[str]:
    lines = node.log_file.read_text(errors="replace").splitlines()
    return [
        re.sub(r"^\S+ \S+ ", "", line) for line in lines if re.search(r" (WARN|WARNING|ERROR|FATAL)\b|^Error|Exception", line)
    ]


def run(kind: str, home: Path, java: object, damage: Callable[[Path], None], *, clean: bool) -> Seen:
    """Written and stopped in order; then, unless ``clean``, started and killed; then damaged."""
    node = Node(kind, home, java, SETTINGS)  # type: ignore[arg-type]
    try:
        node.start()
        write(node)
        node.stop()
        if not clean:
            node.start()
            time.sleep(1)
            node.kill()
        damage(node.data)
        return observe(node, kind)
    finally:
        node.kill()


def in_batch(number: int, at: int, directory: str = f"{TOPIC}-0") -> Callable[[Path], None]:
    """A bit ``at`` bytes into batch ``number`` of a partition's first segment."""

    def damage(data: Path) -> None:
        path = data / directory / "00000000000000000000.log"
        flip(path, batch_places(path)[number][0] + at)

    return damage


def in_metadata_of(topic: str) -> Callable[[Path], None]:
    """A bit in the name of the topic, in the metadata log."""

    def damage(data: Path) -> None:
        path = data / "__cluster_metadata-0" / "00000000000000000000.log"
        flip(path, path.read_bytes().index(topic.encode()))

    return damage


def in_file(pattern: str, at: int = -3, directory: str = f"{TOPIC}-0") -> Callable[[Path], None]:
    """A bit in a small file; ``at`` from its beginning, or its end."""

    def damage(data: Path) -> None:
        path = sorted((data / directory).glob(pattern))[-1]
        size = path.stat().st_size
        assert size, path
        flip(path, at % size)

    return damage


DAMAGES = {
    "segment, records": in_batch(1, 100),
    "segment, length": in_batch(1, 10),
    "segment, base offset": in_batch(1, 6),
    "index": in_file("*.index", 6),
    "timeindex": in_file("*.timeindex", 9),
    "producer snapshot": in_file("*.snapshot"),
    "metadata log": in_metadata_of(TOPIC),
    "leader-epoch-checkpoint": in_file("leader-epoch-checkpoint", -2),
    "partition.metadata": in_file("partition.metadata"),
    "recovery-point-offset-checkpoint": in_file("recovery-point-offset-checkpoint", -2, "."),
    "log-start-offset-checkpoint": in_file("log-start-offset-checkpoint", -2, "."),
    "replication-offset-checkpoint": in_file("replication-offset-checkpoint", -2, "."),
    "quorum-state": in_file("quorum-state", 30, "__cluster_metadata-0"),
    "meta.properties": in_file("meta.properties", -4, "."),
}
