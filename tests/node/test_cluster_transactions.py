"""Transactions and groups on three real nodes, three replicas each: coordinators and leaders are killed in the middle.

The clients are those of ``tests/transactions`` (librdkafka); their histories are judged by ``tidelog.testing.checker``.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.node.cluster import Cluster
from tests.transactions.worker import INPUT, OUTPUT, PARTITIONS, QUICK
from tests.transactions.workload import PROPERTIES, Run, clients
from tidelog.coordinator.placement import partition_of
from tidelog.model.ids import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.testing.checker import check

pytestmark = [pytest.mark.timeout(240)]

COMMITS_BETWEEN = 40


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    quick = {name: value for name, value in PROPERTIES.items() if not name.startswith("broker.")}
    with Cluster(tmp_path_factory.mktemp("transactions"), 3, properties=quick) as cluster:
        yield cluster


def leader(cluster: Cluster, topic: str, partition: int) -> int | None:
    """Who leads, as a node that runs says; None while nobody does."""
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    described = cluster.ask(next(iter(cluster.running)), asked).topics[0].partitions
    found = [each.leader_id for each in described if each.partition_index == partition]
    return found[0] if found and found[0] in cluster.running else None


def coordinator(cluster: Cluster, topic: str, key: str) -> int:
    """The broker that leads the partition where ``key`` lives."""

    def found() -> int | None:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        count = len(cluster.ask(next(iter(cluster.running)), asked).topics[0].partitions)
        return leader(cluster, topic, partition_of(key, count)) if count else None

    return cluster.until(found, f"a coordinator of {key}")


def create(cluster: Cluster, *topics: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    new = [NewTopic(topic, partitions, 3, config={"min.insync.replicas": "2"}) for topic in topics]
    for made in admin.create_topics(new).values():
        made.result(30)


class ClusterRun(Run):
    """The transactional workload against a cluster; the test is its nemesis."""

    def __init__(self, home: Path, cluster: Cluster) -> None:
        self.home, self.seed, self.kind = home, 7, "cluster"
        self.rng = random.Random(self.seed)
        self.histories = home / "histories"
        self.histories.mkdir(parents=True)
        self.cluster = cluster
        self.counts = {"commit": 0, "abort": 0}
        self._counted: dict[Path, int] = {}
        self.node = cluster  # type: ignore[assignment]
        wanted = clients(cluster.bootstrap, self.histories, self.seed, consumer_protocol=True, pace=0.005)
        self.clients = [each for each in wanted if each.name != "java"]

    def __enter__(self) -> ClusterRun:
        for client in self.clients:
            client.start()
        return self

    def __exit__(self, *_: object) -> None:
        for client in self.clients:
            client.kill()

    def more_commits(self, count: int) -> None:
        """Until so many more were acknowledged: whatever happened, transactions go on."""
        self.count()
        wanted = self.counts["commit"] + count

        def enough() -> bool:
            self.count()
            return self.counts["commit"] >= wanted

        self.cluster.until(enough, f"{count} more commits")

    def finish(self) -> None:
        """Clients end, open transactions too, everything is read."""
        for client in self.clients:
            if client.process is not None:
                client.process.terminate()
        for client in self.clients:
            if client.process is not None:
                client.finish()
        self._read_all()


def test_transactions_stay_whole_when_coordinators_and_leaders_are_killed_in_the_middle(tmp_path: Path, cluster: Cluster) -> None:
    create(cluster, INPUT, OUTPUT, partitions=PARTITIONS)
    with ClusterRun(tmp_path / "run", cluster) as run:
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
