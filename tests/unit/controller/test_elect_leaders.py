from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controller.conftest import Cluster
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import ControllerResult
from tidelog.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord

PREFERRED, UNCLEAN = 0, 1


def create(cluster: Cluster, name: str, *replicas: list[int]) -> None:
    assignments = [CreatableReplicaAssignment(partition_index=n, broker_ids=each) for n, each in enumerate(replicas)]
    topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=assignments)
    (result,) = cluster.ask(QuorumController.create_topics, CreateTopicsRequest(topics=[topic])).topics
    assert result.error_code == 0, result.error_message


def elect(cluster: Cluster, kind: int, *asked: tuple[str, list[int]]) -> list[tuple[str, int, int]]:
    topics = [TopicPartitions(topic=name, partitions=numbers) for name, numbers in asked] or None
    return rows(cluster.ask(QuorumController.elect_leaders, ElectLeadersRequest(election_type=kind, topic_partitions=topics)))


def rows(response: Any) -> list[tuple[str, int, int]]:
    return [
        (topic.topic, each.partition_id, each.error_code)
        for topic in response.replica_election_results
        for each in topic.partition_result
    ]


@pytest.fixture
def pair(make_cluster: Any) -> Cluster:
    """Brokers 1 and 2; partition 0 of t prefers broker 1, which was away, so that broker 2 leads both."""
    cluster: Cluster = make_cluster(1, 2)
    create(cluster, "t", [1, 2], [2, 1])
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(1)
    assert [leader for leader, _ in cluster.leaders("t")] == [2, 2]
    return cluster


def test_what_needs_no_election_and_what_does_not_exist(cluster: Cluster) -> None:
    create(cluster, "t", [1])
    assert elect(cluster, PREFERRED, ("t", [0, 9, -1]), ("u", [0])) == [("t", 0, 84), ("t", 9, 3), ("t", -1, 3), ("u", 0, 3)]
    assert elect(cluster, UNCLEAN, ("t", [0])) == [("t", 0, 84)]
    assert cluster.records == []


def test_a_preferred_leader_that_is_not_in_sync_cannot_lead(pair: Cluster) -> None:
    assert elect(pair, PREFERRED, ("t", [0, 1])) == [("t", 0, 80), ("t", 1, 84)]


def test_the_preferred_leader_leads_again_with_a_new_epoch(make_cluster: Any) -> None:
    cluster: Cluster = make_cluster(1, 2)
    create(cluster, "t", [1, 2])
    # The leadership moves away and the first replica stays in sync, as after a reassignment of the order.
    ((_, epoch),) = cluster.leaders("t")
    moved = PartitionChangeRecord(partition_id=0, topic_id=cluster.image.topics.by_name["t"].id, leader=2)
    cluster._commit(ControllerResult.of(None, [moved]))
    assert elect(cluster, PREFERRED) == [("t", 0, 0)]
    assert cluster.leaders("t") == [(1, epoch + 2)]


def test_a_request_for_all_is_told_of_every_topic_and_of_no_partition_that_needed_nothing(cluster: Cluster) -> None:
    create(cluster, "t", [1], [1])
    response = cluster.ask(QuorumController.elect_leaders, ElectLeadersRequest(topic_partitions=None))
    assert [each.topic for each in response.replica_election_results] == ["t"]
    assert rows(response) == []


def test_a_partition_without_leader_gets_one_uncleanly_only_when_asked_for(make_cluster: Any) -> None:
    cluster: Cluster = make_cluster(1, 2)
    create(cluster, "t", [1, 2])
    cluster.heartbeat(2, want_fence=True)
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(2)
    assert cluster.leaders("t")[0][0] == -1
    assert elect(cluster, PREFERRED, ("t", [0])) == [("t", 0, 80)]
    assert elect(cluster, UNCLEAN, ("t", [0])) == [("t", 0, 0)]
    (partition,) = cluster.image.topics.by_name["t"].partitions
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (2, (2,), 1)


def test_nobody_left_is_nobody_to_elect(cluster: Cluster) -> None:
    create(cluster, "t", [1])
    cluster.heartbeat(1, want_fence=True)
    assert elect(cluster, UNCLEAN, ("t", [0])) == [("t", 0, 83)]


@pytest.mark.parametrize(("asked", "expected"), [([("t", [0])], [("t", 0, 42)]), ([], [])])
def test_a_kind_of_election_that_there_is_none_of(cluster: Cluster, asked: list[tuple[str, list[int]]], expected: Any) -> None:
    create(cluster, "t", [1])
    assert elect(cluster, 2, *asked) == expected
