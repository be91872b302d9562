"""Three nodes as processes: what one of them does when another is killed, stopped or comes back."""

from __future__ import annotations

import time
from pathlib import Path

from tests.node.cluster import BOUND_S, Cluster
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest
from tidelog.protocol.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

QUORUM = DescribeQuorumRequest(topics=[RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])])


def create(cluster: Cluster, via: int, name: str, partitions: int = 3, replicas: int = 3) -> int:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
    return int(cluster.ask(via, CreateTopicsRequest(topics=[topic], timeout_ms=30_000)).topics[0].error_code)


def leaders(cluster: Cluster, via: int, name: str) -> dict[int, int]:
    """Leader by partition, as one broker sees it."""
    topic = cluster.ask(via, MetadataRequest(topics=[MetadataRequestTopic(name=name)])).topics[0]
    return {partition.partition_index: partition.leader_id for partition in topic.partitions}


def alive(cluster: Cluster, via: int) -> set[int]:
    return {broker.broker_id for broker in cluster.ask(via, DescribeClusterRequest()).brokers}


def quorum(cluster: Cluster, via: int) -> tuple[int, set[int], set[int]]:
    """(leader, voters, observers) as the leader reports them, through any node."""
    found = cluster.ask(via, QUORUM).topics[0].partitions[0]
    voters, observers = ({each.replica_id for each in several} for several in (found.current_voters, found.observers))
    return found.leader_id, voters, observers


def led_by_others(cluster: Cluster, via: int, gone: int, names: tuple[str, ...]) -> bool:
    found = [leader for name in names for leader in leaders(cluster, via, name).values()]
    return bool(found) and not {gone, -1} & set(found)


def test_a_cluster_goes_on_without_any_one_of_its_nodes(tmp_path: Path) -> None:
    with Cluster(tmp_path, 3) as cluster:
        for via in cluster.brokers:
            assert create(cluster, via, f"t{via}") == ErrorCode.NONE
            assert alive(cluster, via) == {1, 2, 3}
            assert quorum(cluster, via) == (cluster.active_controller(), {1, 2, 3}, set())
        names = ("t1", "t2", "t3")

        killed = cluster.active_controller()
        cluster.kill(killed)
        other = next(iter(cluster.running))
        cluster.until(lambda: alive(cluster, other) == {1, 2, 3} - {killed}, f"{killed} is fenced")
        cluster.until(lambda: led_by_others(cluster, other, killed, names), "others lead")
        assert create(cluster, other, "meanwhile", replicas=2) == ErrorCode.NONE
        assert cluster.active_controller() != killed
        cluster.start(killed)
        cluster.until(lambda: alive(cluster, killed) == {1, 2, 3}, f"{killed} is back")
        cluster.until(lambda: "meanwhile" in {t.name for t in cluster.ask(killed, MetadataRequest(topics=None)).topics})

        stopped = next(each for each in cluster.brokers if each != cluster.active_controller())
        began = time.monotonic()
        cluster.stop(stopped)
        assert time.monotonic() - began < BOUND_S
        other = next(iter(cluster.running))
        assert alive(cluster, other) == {1, 2, 3} - {stopped}, "it said so before it went"
        assert led_by_others(cluster, other, stopped, names)
        cluster.start(stopped)
        assert not [line for line in cluster.complaints() if "Traceback" in line]


def test_brokers_beside_controllers_start_in_any_order_and_stop_without_a_quorum(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 2, roles="broker")
    try:
        cluster.launch(*cluster.brokers)
        cluster.until(lambda: "no leader of the metadata quorum is known" in cluster.log(1), "it says what it waits for")
        cluster.stop(2)
        assert "tidelog is ready" not in cluster.log(2), "stopped while it waited"
        cluster.launch(2)
        cluster.start(*cluster.controllers)
        cluster.ready(*cluster.brokers)
        assert create(cluster, 1, "t", replicas=2) == ErrorCode.NONE
        assert quorum(cluster, 2)[1:] == (set(cluster.controllers), {1, 2})
        cluster.kill(*cluster.controllers)
        cluster.stop(1, 2)
        assert "stopping without the controller's consent" in cluster.log(1)
    finally:
        cluster.close()
