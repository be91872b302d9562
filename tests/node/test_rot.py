"""Three real nodes, and a damaged metadata log on one of them: the others mend it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.node.cluster import Cluster
from tests.node.test_replication import create, isr_of
from tidelog.records.batch import iter_headers

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


def in_a_record(path: Path) -> None:
    flip(path, path.read_bytes().index(TOPIC.encode()))


def in_the_epoch_of_the_last_batch(path: Path) -> None:
    last = list(iter_headers(path.read_bytes()))[-1]
    flip(path, last.position + 15)


def whole_file(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("damage", [in_a_record, in_the_epoch_of_the_last_batch, whole_file])
def test_a_controller_copies_damaged_metadata_from_the_others(cluster: Cluster, damage: Callable[[Path], None]) -> None:
    write(cluster)
    active = cluster.active_controller()
    damaged = next(each for each in (1, 2, 3) if each != active)
    cluster.stop(damaged)
    path = cluster.path(damaged) / "__cluster_metadata-0" / SEGMENT
    damage(path)
    cluster.start(damaged)
    cluster.until(lambda: len(isr_of(cluster, TOPIC)) == 3 or None, "all replicas in sync")
    log = cluster.log(damaged)
    assert "until it has them, this voter does not lead" in log
    assert "unclean" not in log
    assert not list(cluster.path(damaged).glob("*-stray"))
    assert list(path.parent.glob("*.cut")) or damage is whole_file
