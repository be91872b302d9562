"""The transactional workload of ``tests/transactions`` on a cluster of real nodes; the caller injects the faults."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from tests.node.cluster import Cluster
from tests.transactions.workload import PROPERTIES, Client, Run, clients
from tidelog.coordinator.partition_for_key import partition_of
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

QUICK_NODES = {name: value for name, value in PROPERTIES.items() if not name.startswith("broker.")}
"""Settings of nodes for this: short sessions, few partitions of internal topics."""


def leader(cluster: Cluster, topic: str, partition: int) -> int | None:
    """The leader, according to a running node; None while there is none."""
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
    admin = AdminClient({**cluster.client_settings, "bootstrap.servers": cluster.bootstrap, "log_level": 0})
    new = [NewTopic(topic, partitions, 3, config={"min.insync.replicas": "2"}) for topic in topics]
    for made in admin.create_topics(new).values():
        made.result(30)


class ClusterRun(Run):
    """The transactional workload against a cluster; the test is its nemesis."""

    def __init__(self, home: Path, cluster: Cluster, chosen: Callable[[Client], bool]) -> None:
        self.home, self.seed, self.kind = home, 7, "cluster"
        self.rng = random.Random(self.seed)
        self.histories = home / "histories"
        self.histories.mkdir(parents=True)
        self.cluster = cluster
        self.counts = {"commit": 0, "abort": 0}
        self._counted: dict[Path, int] = {}
        self.node = cluster  # type: ignore[assignment]
        wanted = clients(cluster.bootstrap, self.histories, self.seed, consumer_protocol=True, pace=0.005)
        self.clients = [each for each in wanted if chosen(each)]

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
