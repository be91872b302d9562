"""Transactions and groups on three real nodes, three replicas each: coordinators and leaders are killed in the middle.

The clients are those of ``tests/transactions`` (librdkafka); their histories are judged by ``tidelog.testing.checker``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from tests.node.cluster import Cluster
from tests.node.transactional_run import QUICK_NODES, ClusterRun, coordinator, create, leader
from tests.transactions.worker import INPUT, OUTPUT, PARTITIONS, QUICK
from tidelog.model.ids import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from tidelog.testing.checker import check

pytestmark = [pytest.mark.timeout(240)]

COMMITS_BETWEEN = 20


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("transactions"), 3, properties=QUICK_NODES) as cluster:
        yield cluster


def test_transactions_stay_whole_when_coordinators_and_leaders_are_killed_in_the_middle(tmp_path: Path, cluster: Cluster) -> None:
    create(cluster, INPUT, OUTPUT, partitions=PARTITIONS)
    with ClusterRun(tmp_path / "run", cluster, lambda client: client.name != "java") as run:
        run.more_commits(COMMITS_BETWEEN)
        for victim in (
            lambda: coordinator(cluster, TRANSACTION_STATE_TOPIC, "producer-a"),
            lambda: coordinator(cluster, OFFSETS_TOPIC, "group-classic"),
            lambda: cluster.until(lambda: leader(cluster, INPUT, 0), "a leader"),
        ):
            killed = victim()
            cluster.kill(killed)
            run.more_commits(COMMITS_BETWEEN)
            cluster.start(killed)
            run.more_commits(COMMITS_BETWEEN)
        run.finish()
        verdict = check(*sorted(run.histories.glob("*.jsonl")))
    assert verdict.valid, verdict.text()
    told = verdict.counts
    assert told is not None and min(told.commits, told.aborts) >= COMMITS_BETWEEN, verdict.text()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_survives_the_death_of_its_coordinator(cluster: Cluster, protocol: str) -> None:
    topic = f"read-by-{protocol}"
    create(cluster, topic, partitions=1)
    producer = Producer({**QUICK, "bootstrap.servers": cluster.bootstrap, "acks": "all"})
    consumer = Consumer(
        {
            **QUICK,
            "bootstrap.servers": cluster.bootstrap,
            "group.id": protocol,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])

    def read(wanted: bytes) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None and not message.error() and message.value() == wanted:
                consumer.commit(message, asynchronous=False)
                return
        raise AssertionError(f"{wanted!r} did not come within 60 s")

    try:
        for number in range(2):
            value = str(number).encode()
            producer.produce(topic, value)
            assert producer.flush(60) == 0
            read(value)
            killed = coordinator(cluster, OFFSETS_TOPIC, protocol)
            cluster.kill(killed)
            producer.produce(topic, value + b" after")
            assert producer.flush(60) == 0
            read(value + b" after")
            cluster.start(killed)
    finally:
        consumer.close()
