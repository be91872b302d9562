"""Clusters of tidelog's and Apache Kafka's nodes: an Apache broker under our controllers, our broker under Apache's."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.interop.java import JVM_FLAGS, LOG4J
from tests.interop.nodes import answers
from tests.node.cluster import Cluster
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tools.jars import ensure

pytestmark = pytest.mark.interop


class MixedCluster(Cluster):
    """Some of its nodes are Apache Kafka's; all were formatted by tidelog, with the features that it has."""

    def __init__(self, directory: Path, count: int, apache: Iterable[int], **more: Any) -> None:
        self.apache = frozenset(apache)
        super().__init__(directory, count, roles="broker", **more)

    def command(self, node_id: int, properties: Path) -> list[str]:
        if node_id not in self.apache:
            return super().command(node_id, properties)
        flags = [*JVM_FLAGS, f"-Dlog4j2.configurationFile={LOG4J}", "-Dlog.level=info"]
        return ["java", *flags, "-cp", str(ensure() / "*"), "kafka.Kafka", str(properties)]

    def is_ready(self, node_id: int, said: str) -> bool:
        if node_id not in self.apache:
            return super().is_ready(node_id, said)
        return "Kafka Server started" in said

    def clean_status(self, node_id: int) -> int:
        return 143 if node_id in self.apache else 0

    def create(self, via: int, name: str, *replicas: list[int]) -> int:
        """A topic with these replicas of its partitions, the first of each preferred; the error code."""
        assignments = [CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in enumerate(replicas)]
        topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=assignments)
        return int(self.ask(via, CreateTopicsRequest(topics=[topic], timeout_ms=30_000)).topics[0].error_code)

    def partitions(self, via: int, name: str) -> list[tuple[int, set[int]]]:
        """(leader, ISR) of each partition, as one broker sees it."""
        topic = self.ask(via, MetadataRequest(topics=[MetadataRequestTopic(name=name)])).topics[0]
        found = sorted(topic.partitions, key=lambda each: each.partition_index)
        return [(each.leader_id, set(each.isr_nodes)) for each in found]

    def alive(self, via: int) -> set[int]:
        return {broker.broker_id for broker in self.ask(via, DescribeClusterRequest()).brokers}


def leaders_move(cluster: MixedCluster, ours: int, theirs: int) -> None:
    """Replicas on both; each of them leads when the other is stopped, and catches up when it is back."""
    both = {ours, theirs}
    for via in (ours, theirs):
        name = f"t{via}"
        cluster.until(lambda via=via: cluster.alive(via) == both, "both are unfenced")  # type: ignore[misc]
        assert cluster.create(via, name, [ours, theirs], [theirs, ours]) == ErrorCode.NONE
        for seen_by in (ours, theirs):
            cluster.until(
                lambda name=name, by=seen_by: cluster.partitions(by, name) == [(ours, both), (theirs, both)],  # type: ignore[misc]
                "each leads its own, and both are in sync",
            )
    for stopped, other in ((ours, theirs), (theirs, ours)):
        cluster.stop(stopped)
        cluster.until(lambda other=other: {each[0] for each in cluster.partitions(other, f"t{ours}")} == {other}, "it leads")  # type: ignore[misc]
        cluster.start(stopped)
        cluster.until(
            lambda other=other: [each[1] for each in cluster.partitions(other, f"t{ours}")] == [both, both],  # type: ignore[misc]
            "it is in sync again",
        )


def test_an_apache_broker_serves_under_our_controllers(tmp_path: Path) -> None:
    with MixedCluster(tmp_path, 2, apache=[2]) as cluster:
        leaders_move(cluster, 1, 2)
        cluster.kill(cluster.active_controller())
        cluster.until(lambda: cluster.create(2, "after", [1, 2]) in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS))


def test_our_broker_serves_under_an_apache_controller(tmp_path: Path) -> None:
    with MixedCluster(tmp_path, 2, apache=[2, 101], controllers=1) as cluster:
        leaders_move(cluster, 1, 2)
        assert answers(cluster.ports[1])
