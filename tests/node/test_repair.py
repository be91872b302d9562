"""Three real nodes, and bits that turn in flushed segments of a follower and of the leader: the replicas mend each other."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from tests.node.cluster import Cluster
from tests.node.test_replication import create, isr_of, leader_of
from tidelog.records.batch import iter_headers

TOPIC = "bits"
BATCHES = 6
PER_BATCH = 100


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path, properties={"tidelog.scrub.interval.ms": "1000"}) as made:
        yield made


def write(cluster: Cluster, first: int = 0) -> None:
    """Batches of an idempotent producer."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "linger.ms": 200})
    for batch in range(first, first + BATCHES):
        for number in range(PER_BATCH):
            producer.produce(TOPIC, b"%05d" % (batch * PER_BATCH + number) * 20, partition=0)
        assert producer.flush(30) == 0


def segments(cluster: Cluster, node_id: int) -> list[Path]:
    return sorted((cluster.path(node_id) / f"{TOPIC}-0").glob("*.log"))


def content(cluster: Cluster, node_id: int) -> bytes:
    return b"".join(path.read_bytes() for path in segments(cluster, node_id))


def flip(path: Path) -> None:
    """Turns one bit in the last record of the file's second batch, in place."""
    header = list(iter_headers(path.read_bytes()))[1]
    with path.open("r+b") as file:
        file.seek(header.end_position - 3)
        byte = file.read(1)[0]
        file.seek(header.end_position - 3)
        file.write(bytes([byte ^ 16]))


def consumed(cluster: Cluster, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "g", "auto.offset.reset": "earliest", "check.crcs": True}
    )
    consumer.subscribe([TOPIC])
    values: list[bytes] = []
    try:
        while len(values) < count:
            message = consumer.poll(20)
            assert message is not None and message.error() is None, message
            values.append(message.value())
    finally:
        consumer.close()
    return values


def wait_for_repair(cluster: Cluster, node_id: int) -> None:
    cluster.until(lambda: "are replaced by those of broker" in cluster.log(node_id) or None, "mended")


def test_a_follower_and_then_the_leader_are_mended_where_they_stand(cluster: Cluster) -> None:
    create(cluster, TOPIC, **{"flush.messages": "1", "segment.bytes": "1048576"})
    write(cluster)
    leader = leader_of(cluster, TOPIC)
    follower = next(each for each in (1, 2, 3) if each != leader)
    cluster.until(lambda: len({content(cluster, each) for each in (1, 2, 3)}) == 1 or None, "equal replicas")
    right = content(cluster, leader)
    for damaged in (follower, leader):
        flip(segments(cluster, damaged)[0])
        assert content(cluster, damaged) != right
        wait_for_repair(cluster, damaged)
        assert content(cluster, damaged) == right
        assert "the scrub found" in cluster.log(damaged)
        assert list(segments(cluster, damaged)[0].parent.glob("*.cut"))
        assert leader_of(cluster, TOPIC) == leader and len(isr_of(cluster, TOPIC)) == 3
    write(cluster, BATCHES)
    assert consumed(cluster, 2 * BATCHES * PER_BATCH) == [b"%05d" % number * 20 for number in range(2 * BATCHES * PER_BATCH)]
    cluster.until(lambda: len({content(cluster, each) for each in (1, 2, 3)}) == 1 or None, "equal replicas")
    dumps = [_dump(segments(cluster, each)) for each in (1, 2, 3)]
    assert "isvalid: true" in dumps[0] and "isvalid: false" not in "".join(dumps)


def _dump(paths: list[Path]) -> str:
    files = ",".join(map(str, paths))
    command = [sys.executable, "-m", "tidelog.cli.main", "dump-log", "--files", files]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_damage_that_a_start_after_a_kill_finds_is_mended(cluster: Cluster) -> None:
    create(cluster, TOPIC, **{"flush.messages": "1"})
    write(cluster)
    leader = leader_of(cluster, TOPIC)
    damaged = next(each for each in (1, 2, 3) if each != leader)
    cluster.until(lambda: len({content(cluster, each) for each in (1, 2, 3)}) == 1 or None, "equal replicas")
    cluster.stop(damaged)
    cluster.start(damaged)
    cluster.kill(damaged)
    flip(segments(cluster, damaged)[0])
    cluster.start(damaged)
    assert "are damaged" in cluster.log(damaged)
    cluster.until(lambda: content(cluster, damaged) == content(cluster, leader) or None, "mended")
    cluster.until(lambda: len(isr_of(cluster, TOPIC)) == 3 or None, "all replicas in sync")
    assert "are replaced by those of broker" in cluster.log(damaged)
    cluster.kill(damaged)
    cluster.start(damaged)
    cluster.until(lambda: len(isr_of(cluster, TOPIC)) == 3 or None, "all replicas in sync")
    assert "are damaged" not in cluster.log(damaged)[cluster._started[damaged] :]
