"""Three nodes of each kind on this machine: broker and controller in each, with Kafka's own defaults and times."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.sides import KAFKA_FLAGS, resident_mb
from tests.interop.java import LOG4J
from tests.node.cluster import Cluster, ClusterFailed
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from tidelog.protocol.messages.elect_leaders import ElectLeadersRequest
from tidelog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tools.jars import ensure

NODES = 3
DEFAULTS = {
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "2000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
    "controller.quorum.election.backoff.max.ms": "1000",
    "min.insync.replicas": "2",
}
"""Kafka's times, where clusters of tests are quicker; and the OpenMessaging benchmark's min.insync.replicas."""
LATEST = -1
PREFERRED = 0


class BenchCluster(Cluster):
    """All nodes of one ``kind``: tidelog or apache."""

    def __init__(self, kind: str, name: str, directory: Path) -> None:
        self.kind = kind
        self.name = name
        super().__init__(directory, NODES, properties=DEFAULTS)

    def command(self, node_id: int, properties: Path) -> list[str]:
        if self.kind != "apache":
            return super().command(node_id, properties)
        flags = [*KAFKA_FLAGS, f"-Dlog4j2.configurationFile={LOG4J}", "-Dlog.level=info"]
        return ["java", *flags, "-cp", str(ensure() / "*"), "kafka.Kafka", str(properties)]

    def is_ready(self, node_id: int, said: str) -> bool:
        return "Kafka Server started" in said if self.kind == "apache" else super().is_ready(node_id, said)

    def clean_status(self, node_id: int) -> int:
        return 143 if self.kind == "apache" else 0

    # What it uses

    def memory(self) -> float:
        """MiB of the largest."""
        return max(resident_mb(process.pid) for process in self.running.values())

    # What it holds

    def any_node(self) -> int:
        return min(self.running)

    def create(self, topic: str, partitions: int, **configs: str) -> None:
        """With three replicas of each partition; returns when every node tells of a leader for each, and all are in sync."""
        wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=NODES)
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=60_000)

        def made() -> bool:
            code = self.ask(self.any_node(), request).topics[0].error_code
            # Brokers that the controller does not count yet: three replicas have no place.
            retry = (ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)
            assert code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS, *retry), ErrorCode(code).name
            return code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)

        self.until(made, f"{topic} is made")
        self.until(lambda: self.in_sync(topic, partitions), f"{topic} has leaders and its replicas are in sync", 120)

    def partitions(self, topic: str, seen_by: int) -> list[tuple[int, int, int]]:
        """(partition, leader, size of the ISR), as one node tells."""
        try:
            answer = self.ask(seen_by, MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
        except OSError:
            return []
        return [(each.partition_index, each.leader_id, len(each.isr_nodes)) for each in answer.topics[0].partitions]

    def in_sync(self, topic: str, partitions: int) -> bool:
        """Do all nodes that run tell the same: leaders for all partitions, everybody in sync?"""
        for node_id in self.running:
            told = self.partitions(topic, node_id)
            if len(told) != partitions or any(leader not in self.running or isr != NODES for _, leader, isr in told):
                return False
        return True

    def prefer(self, topic: str, partitions: int) -> None:
        """Every partition is led by its preferred replica again."""

        def balanced() -> bool:
            counts = [0] * (NODES + 1)
            for _, leader, _ in self.partitions(topic, self.any_node()):
                counts[max(leader, 0)] += 1
            if max(counts) - min(counts[1:]) <= 1:
                return True
            self.ask(self.any_node(), ElectLeadersRequest(election_type=PREFERRED, topic_partitions=None, timeout_ms=60_000))
            return False

        self.until(balanced, f"{topic}'s preferred replicas lead", 120)
        self.until(lambda: self.in_sync(topic, partitions), f"{topic} has leaders and its replicas are in sync", 120)

    def controller(self) -> int:
        """The active controller."""
        request = DescribeQuorumRequest(
            topics=[RequestTopicData(topic_name="__cluster_metadata", partitions=[RequestPartitionData(partition_index=0)])]
        )

        def found() -> int | None:
            answer = self.ask(self.any_node(), request)
            if answer.error_code or answer.topics[0].partitions[0].error_code:
                return None
            leader = int(answer.topics[0].partitions[0].leader_id)
            return leader if leader in self.running else None

        return self.until(found, "an active controller")

    def ends(self, topic: str) -> int:
        """How many records the topic's partitions hold."""
        total = 0
        for node_id in self.running:
            mine = [index for index, leader, _ in self.partitions(topic, node_id) if leader == node_id]
            wanted = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in mine]
            answer = self.ask(
                node_id, ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)])
            )
            total += sum(each.offset for each in answer.topics[0].partitions)
        return total


@contextmanager
def fresh_cluster(name: str, kind: str, root: Path) -> Iterator[BenchCluster]:
    """Formatted and started; killed and its data removed in the end."""
    home = root / f"{name}-{time.monotonic_ns()}"
    try:
        with BenchCluster(kind, name, home) as cluster:
            yield cluster
    finally:
        shutil.rmtree(home, ignore_errors=True)


__all__ = ["NODES", "BenchCluster", "ClusterFailed", "fresh_cluster"]
