"""Three real nodes, and one flipped bit in the metadata log of one of them: the others mend it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.node.cluster import Cluster
from tests.node.test_replication import create, isr_of

TOPIC = "bits"
BATCHES = 3
SEGMENT = "00000000000000000000.log"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path) as made:
        yield made


def write(cluster: Cluster) -> None:
    create(cluster, TOPIC)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "linger.ms": 200})
    for batch in range(BATCHES):
        for number in range(100):
            producer.produce(TOPIC, b"%d" % (batch * 100 + number), partition=0)
        assert producer.flush(30) == 0


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 8
    path.write_bytes(data)


def test_a_controller_copies_damaged_metadata_from_the_others(cluster: Cluster) -> None:
    write(cluster)
    active = cluster.active_controller()
    damaged = next(each for each in (1, 2, 3) if each != active)
    cluster.stop(damaged)
    path = cluster.path(damaged) / "__cluster_metadata-0" / SEGMENT
    flip(path, path.read_bytes().index(TOPIC.encode()))
    cluster.start(damaged)
    cluster.until(lambda: len(isr_of(cluster, TOPIC)) == 3 or None, "all replicas in sync")
    log = cluster.log(damaged)
    assert "until it has them, this voter does not lead" in log
    assert "unclean" not in log
    assert not list(cluster.path(damaged).glob("*-stray"))
    assert list(path.parent.glob("*.cut"))
