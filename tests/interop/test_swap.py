"""One data directory, served in turn by tidelog and by a real Apache Kafka node: each finds and continues the other's work."""

from __future__ import annotations

import random
import re
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from tests.dynamic_configs import NEW_IN_4_4
from tests.interop.clients import Client, until
from tests.interop.dump import dump
from tests.interop.java import JavaSide
from tests.interop.ledger import Ledger
from tests.interop.nodes import Node
from tests.interop.samples import CODECS, Delivery, Sample, some_of_everything

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
SAFE = Delivery("all", True)
SEGMENT_BYTES = 1 << 20  # the least that Kafka 4 takes
PROPERTIES = {
    "broker.session.timeout.ms": "1500",  # a Kafka node that comes back after kill -9 waits until its former self is given up
    "broker.heartbeat.interval.ms": "300",
    "log.retention.ms": "-1",  # the samples carry old timestamps
    "log.segment.bytes": str(SEGMENT_BYTES),
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.min.cleanable.ratio": "0.01",
}
NOW = 1_700_000_000_000
# What Kafka may say when it takes over a directory that was left in order. Anything else at WARN or ERROR is a finding.
HARMLESS = re.compile(
    r"No meta.properties|Performing controller activation|appears to be empty|deprecated|SSL|jmx|CheckpointFile.*delete"
    # tidelog renames a deleted topic without writing the indexes that it has in memory; Kafka makes them, then removes all
    r"|Could not find offset index file .*-delete/"
)


class Lasting:
    """An idempotent producer that lives on while brokers come and go: its sequences must continue on whatever serves."""

    TOPIC = "lasting"

    def __init__(self, bootstrap: str) -> None:
        self.producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "reconnect.backoff.max.ms": 200,
                "delivery.timeout.ms": 30_000,
                "log_level": 0,
            }
        )

    def write(self, ledger: Ledger, count: int) -> None:
        samples = [Sample(0, b"%d" % i, random.Random(i).randbytes(50), (), NOW + i) for i in range(count)]
        told: list[int] = []

        def delivered(error: object, message: confluent_kafka.Message) -> None:
            assert error is None, f"the lasting producer was refused: {error}"
            offset = message.offset()
            assert offset is not None
            told.append(offset)

        for one in samples:
            self.producer.produce(self.TOPIC, one.value, one.key, partition=0, timestamp=one.timestamp, on_delivery=delivered)
        for _ in until(lambda: len(told) == count, "the lasting producer"):
            self.producer.poll(0.05)
        ledger.note(self.TOPIC, samples, told, "the lasting producer")


def described(node: Node, topic: str) -> dict[str, Any]:
    """A topic, without the settings that Kafka 4.3 does not have."""
    found = node.describe(topic)
    return found | {"configs": {name: value for name, value in found["configs"].items() if name not in NEW_IN_4_4}}


def create_topics(node: Node, ledger: Ledger) -> None:
    """Topics of all kinds."""
    node.create("mixed", 2)
    node.create("segments", index_interval_bytes="4096")
    node.create("compacted", cleanup_policy="compact", delete_retention_ms="86400000")
    node.create("cut")
    node.create("append-time", message_timestamp_type="LogAppendTime")
    node.create("recompressed", compression_type="zstd")
    node.create(Lasting.TOPIC)
    ledger.compacted.add("compacted")
    ledger.broker_time.add("append-time")


def fill(node: Node, ledger: Ledger, lasting: Lasting, clients: list[Client], turn: int) -> None:
    """A turn's writing: every codec and client, several segments, new values and tombstones for old keys, records deleted."""
    java, librdkafka, aiokafka, _ = clients
    for number, codec in enumerate(CODECS):
        by = clients[(turn + number) % len(clients)]
        for partition in (0, 1):
            samples = some_of_everything(partition, f"{turn} {codec}")
            ledger.write(node, by, "mixed", samples, codec, Delivery("all", partition == 0))
    rng = random.Random(turn)
    stream = [Sample(0, b"%d" % i, rng.randbytes(4000), (), NOW + turn * 1_000_000 + i) for i in range(700)]
    ledger.write(node, java, "segments", stream, "none", SAFE)
    keyed = [Sample(0, b"key %d" % (i % 50), None if i % 7 == 3 else rng.randbytes(2500), (), NOW + i) for i in range(600)]
    ledger.write(node, librdkafka, "compacted", keyed, "lz4", SAFE)
    ledger.write(node, aiokafka, "cut", [Sample(0, b"k", rng.randbytes(700), (), NOW + i) for i in range(20)], "none", SAFE)
    for topic, codec in (("append-time", "gzip"), ("recompressed", "snappy")):
        ledger.write(node, java, topic, [Sample(0, b"k%d" % i, b"v", (), NOW + i) for i in range(30)], codec, SAFE)
    lasting.write(ledger, 500)
    assert node.java is not None
    node.create(f"gone-{turn}")
    java.write(node.bootstrap, f"gone-{turn}", [Sample(0, b"k", b"v", (), NOW)], "none", SAFE)
    node.java.ask("delete", bootstrap=node.bootstrap, topic=f"gone-{turn}")


def cut(node: Node, ledger: Ledger, java: JavaSide) -> None:
    """DeleteRecords. Only before a clean stop: Kafka notes the new start once a minute, so kill -9 may bring records back."""
    before = ledger.ends["cut", 0] - 7
    java.ask("delete_records", bootstrap=node.bootstrap, topic="cut", partition=0, before=before)
    ledger.deleted_before("cut", 0, before)


def wait_until_cleaned(node: Node, ledger: Ledger, reader: Client) -> None:
    """The cleaner has been through the closed segments: a third of what was written is gone."""
    written = len(ledger.written["compacted"])
    for _ in until(lambda: len(reader.read(node.bootstrap, "compacted", [0])) < written * 2 // 3, f"the cleaner of {node.kind}"):
        pass


def unexpected(node: Node) -> list[str]:
    """What Kafka's log says above INFO."""
    lines = node.log_file.read_text(errors="replace").splitlines()
    return [line for line in lines if re.search(r" (WARN|ERROR|FATAL) ", line) and not HARMLESS.search(line)]


def assert_clean_dump(java: JavaSide, node: Node, ledger: Ledger) -> None:
    found = dump(java, node.data, ledger.compacted)
    assert not found.trouble, f"after {node.kind}, DumpLogSegments says:\n" + "\n".join(found.trouble[:20])
    assert found.batches > 150, f"only {found.batches} batches seen"
    assert found.metadata_records > 20, f"only {found.metadata_records} metadata records seen"


@pytest.fixture
def node(home: Path, java: JavaSide) -> Iterator[Node]:
    """A node to be started as either kind, killed in the end."""
    home.mkdir()
    made = Node("tidelog", home, java, PROPERTIES)
    yield made
    made.kill()


@pytest.fixture(params=["tidelog", "apache"])
def turns(request: pytest.FixtureRequest) -> list[str]:
    """Who serves, one after another. With ``--broker=apache`` only Apache Kafka: are the tests right?"""
    first = request.param
    if request.config.getoption("--broker") == "apache":
        return ["apache"] * 3
    return [first, "apache" if first == "tidelog" else "tidelog", first]


def test_a_directory_left_in_order_is_continued_by_the_other(
    turns: list[str], node: Node, java: JavaSide, clients: list[Client]
) -> None:
    ledger, lasting = Ledger(), Lasting(node.bootstrap)
    before: dict[str, object] = {}
    for turn, kind in enumerate(turns):
        node.start(kind)
        if turn == 0:
            create_topics(node, ledger)
            before = {topic: described(node, topic) for topic in ("mixed", "compacted")}
        else:
            ledger.verify(node, clients[:2])
            assert before == {topic: described(node, topic) for topic in ("mixed", "compacted")}
        fill(node, ledger, lasting, clients, turn)
        cut(node, ledger, java)
        wait_until_cleaned(node, ledger, clients[2])
        ledger.verify(node, clients[turn : turn + 2])
        ledger.verify_times(node, clients[0], "segments", 0)
        node.stop()
        assert_clean_dump(java, node, ledger)
        if kind == "apache":
            assert unexpected(node) == []
    assert len(list((node.data / "segments-0").glob("*.log"))) >= 8


def test_a_directory_left_by_kill_9_is_continued_by_the_other(
    turns: list[str], node: Node, java: JavaSide, clients: list[Client]
) -> None:
    ledger, lasting = Ledger(), Lasting(node.bootstrap)
    for turn, kind in enumerate(turns):
        node.start(kind)
        if turn == 0:
            create_topics(node, ledger)
        else:
            ledger.verify(node, clients[:2])
        fill(node, ledger, lasting, clients, turn)
        if turn < 2:
            node.kill()
    ledger.verify(node, clients[1:3])
    node.stop()
    assert_clean_dump(java, node, ledger)


def test_the_check_of_dumps_finds_damage_of_each_kind(node: Node, java: JavaSide, clients: list[Client], tmp_path: Path) -> None:
    """The check itself: one flipped byte in each kind of file, written by Apache Kafka, is seen."""
    ledger = Ledger()
    node.start("apache")
    node.create("t", index_interval_bytes="1000")
    stream = [Sample(0, b"%d" % i, random.Random(i).randbytes(4000), (), NOW + i) for i in range(700)]
    ledger.write(node, clients[0], "t", stream, "none", SAFE)
    node.stop()
    assert dump(java, node.data).trouble == ()
    first = "00000000000000000000"
    log = (node.data / "t-0" / f"{first}.log").read_bytes()
    snapshot = next((node.data / "t-0").glob("*.snapshot")).name
    for name, position in (
        (f"{first}.log", 1000),
        (f"{first}.log", struct.unpack_from(">i", log, 8)[0] + 12 + 7),  # the second batch's base offset
        (f"{first}.index", 7),
        (f"{first}.timeindex", 7),
        (f"{first}.timeindex", 11),
        (snapshot, 20),
    ):
        damaged = tmp_path / "damaged"
        shutil.copytree(node.data, damaged)
        path = damaged / "t-0" / name
        content = bytearray(path.read_bytes())
        content[position] ^= 1
        path.write_bytes(content)
        assert dump(java, damaged).trouble, f"{name}, byte {position}: not seen"
        shutil.rmtree(damaged)
