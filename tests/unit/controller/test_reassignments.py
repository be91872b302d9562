from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.controller.conftest import Cluster
from tests.unit.controller.test_elect_leaders import create
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.reassignments import list_partition_reassignments
from tidelog.controller.result import ControllerResult
from tidelog.metadata.image import RECOVERING, PartitionImage
from tidelog.metadata.supported_features import ELR_VERSION
from tidelog.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tidelog.protocol.messages.feature_level_record import FeatureLevelRecord
from tidelog.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord


def reassign(cluster: Cluster, name: str, number: int, replicas: list[int] | None, *, resize: bool = True) -> int:
    wanted = ReassignableTopic(name=name, partitions=[ReassignablePartition(number, replicas)])
    request = AlterPartitionReassignmentsRequest(topics=[wanted], allow_replication_factor_change=resize)
    response = cluster.ask(QuorumController.alter_partition_reassignments, request)
    assert (response.error_code, response.allow_replication_factor_change) == (0, resize)
    code: int = response.responses[0].partitions[0].error_code
    return code


def partition(cluster: Cluster, number: int = 0) -> PartitionImage:
    return cluster.image.topics.by_name["t"].partitions[number]


@pytest.fixture
def pair(make_cluster: Any) -> Cluster:
    cluster: Cluster = make_cluster(1, 2, 3)
    create(cluster, "t", [1, 2])
    return cluster


@pytest.mark.parametrize(
    ("name", "number", "replicas", "code"),
    [
        ("u", 0, [1], 3),
        ("t", 9, [1], 3),
        ("t", 0, None, 85),
        ("t", 0, [], 39),
        ("t", 0, [1, 1], 39),
        ("t", 0, [1, 7], 39),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_moves(
    pair: Cluster, name: str, number: int, replicas: list[int] | None, code: int
) -> None:
    assert reassign(pair, name, number, replicas) == code
    assert pair.records == []


def test_where_a_partition_is_already_it_stays_without_a_record(pair: Cluster) -> None:
    assert reassign(pair, "t", 0, [1, 2]) == 0
    assert pair.records == []


def test_another_order_moves_directories_along_and_no_leader(pair: Cluster) -> None:
    before = partition(pair)
    assert reassign(pair, "t", 0, [2, 1]) == 0
    after = partition(pair)
    assert (after.replicas, after.leader, after.leader_epoch) == ((2, 1), before.leader, before.leader_epoch)
    assert [after.directory(broker) for broker in (1, 2)] == [before.directory(broker) for broker in (1, 2)]


def test_fewer_replicas_and_a_leader_that_goes_hands_over(pair: Cluster) -> None:
    assert reassign(pair, "t", 0, [2], resize=False) == 38
    assert reassign(pair, "t", 0, [2]) == 0
    after = partition(pair)
    assert (after.replicas, after.isr, after.leader, after.leader_epoch) == ((2,), (2,), 2, 1)


def test_the_last_replica_in_sync_stays_until_another_one_is(pair: Cluster) -> None:
    pair.heartbeat(2, want_fence=True)
    assert partition(pair).isr == (1,)
    assert reassign(pair, "t", 0, [2]) == 0
    waiting = partition(pair)
    assert (waiting.replicas, waiting.isr, waiting.removing_replicas, waiting.leader) == ((2, 1), (1,), (1,), 1)


def moving(cluster: Cluster) -> None:
    """As if another controller had begun to move the partition from 1, 2 to 2, 3."""
    record = PartitionChangeRecord(
        partition_id=0,
        topic_id=cluster.image.topics.by_name["t"].id,
        replicas=[2, 3, 1],
        adding_replicas=[3],
        removing_replicas=[1],
        directories=[b"a" * 16, b"b" * 16, b"c" * 16],
    )
    cluster._commit(ControllerResult.of(None, [record]))


def test_a_move_that_was_begun_is_listed_and_can_be_cancelled(pair: Cluster) -> None:
    assert listed(pair) == []
    moving(pair)
    assert listed(pair) == [("t", 0, [2, 3, 1], [3], [1])]
    assert listed(pair, ("t", [0, 5]), ("u", [0])) == [("t", 0, [2, 3, 1], [3], [1])]
    assert listed(pair, ("t", [1])) == []
    assert reassign(pair, "t", 0, None) == 0
    assert (partition(pair).replicas, partition(pair).adding_replicas, partition(pair).removing_replicas) == ((2, 1), (), ())
    assert listed(pair) == []


def test_a_replica_that_was_to_go_and_is_wanted_again_stays(pair: Cluster) -> None:
    moving(pair)
    assert reassign(pair, "t", 0, [1, 2, 3]) == 0
    assert listed(pair) == [("t", 0, [1, 2, 3], [3], [])]
    topic = pair.image.topics.by_name["t"]
    caught_up = PartitionChangeRecord(partition_id=0, topic_id=topic.id, isr=[1, 2, 3])
    pair._commit(ControllerResult.of(None, [caught_up]))
    assert reassign(pair, "t", 0, [1, 2, 3]) == 0, "whatever comes next finds the move at its end"
    assert (partition(pair).replicas, partition(pair).isr, listed(pair)) == ((1, 2, 3), (1, 2, 3), [])


def test_a_replica_that_one_move_began_to_add_and_the_next_wants_too_is_still_waited_for(make_cluster: Any) -> None:
    cluster: Cluster = make_cluster(1, 2, 3, 4)
    create(cluster, "t", [1, 2])
    moving(cluster)
    assert reassign(cluster, "t", 0, [2, 3, 4]) == 0
    assert listed(cluster) == [("t", 0, [2, 3, 4, 1], [3, 4], [1])]
    assert reassign(cluster, "t", 0, None) == 0
    assert partition(cluster).replicas == (2, 1)


def listed(cluster: Cluster, *asked: tuple[str, list[int]]) -> list[tuple[str, int, list[int], list[int], list[int]]]:
    topics = [ListPartitionReassignmentsTopics(name, numbers) for name, numbers in asked] or None
    response = list_partition_reassignments(cluster.image, ListPartitionReassignmentsRequest(topics=topics))
    response.encode(0)
    return [
        (topic.name, each.partition_index, each.replicas, each.adding_replicas, each.removing_replicas)
        for topic in response.topics
        for each in topic.partitions
    ]


def test_a_move_cannot_be_cancelled_while_the_old_replicas_are_behind(pair: Cluster) -> None:
    moving(pair)
    topic = pair.image.topics.by_name["t"]
    behind = PartitionChangeRecord(partition_id=0, topic_id=topic.id, isr=[3], leader=3)
    pair._commit(ControllerResult.of(None, [behind]))
    assert reassign(pair, "t", 0, None) == 39
    assert replace(partition(pair)).replicas == (2, 3, 1)


def cancelled(cluster: Cluster, elr: bool, **partition: Any) -> None:
    """A move from 1, 2 to 2, 3 that is cancelled while its partition is so."""
    if elr:
        cluster._commit(ControllerResult.of(None, [FeatureLevelRecord(name=ELR_VERSION, feature_level=1)]))
    create(cluster, "t", [1, 2])
    assert reassign(cluster, "t", 0, [2, 3]) == 0
    cluster.heartbeat(2, want_fence=True)
    cluster.heartbeat(1, want_fence=True)
    so = PartitionChangeRecord(partition_id=0, topic_id=cluster.image.topics.by_name["t"].id, **partition)
    cluster._commit(ControllerResult.of(None, [so]))
    assert reassign(cluster, "t", 0, None) == 0


def test_who_is_eligible_has_precedence_when_a_move_is_cancelled_while_nobody_is_in_sync(make_cluster: Any) -> None:
    """Also where unclean elections are allowed: the first replica is down, and may lack what the other has."""
    cluster: Cluster = make_cluster(1, 2, 3, unclean_leader_election_enable=True)
    cancelled(cluster, True, isr=[], leader=-1, eligible_leader_replicas=[1], leader_recovery_state=0)
    found = partition(cluster)
    assert (found.replicas, found.isr, found.elr, found.leader) == ((2, 1), (), (1,), -1)
    cluster.heartbeat(1)
    assert (partition(cluster).leader, partition(cluster).leader_recovery_state) == (1, 0)


@pytest.mark.parametrize("elr", [False, True])
def test_where_nobody_is_the_first_replica_leads_and_has_to_recover(make_cluster: Any, elr: bool) -> None:
    cluster: Cluster = make_cluster(1, 2, 3, unclean_leader_election_enable=True)
    cancelled(cluster, elr, isr=[3], leader=3)
    assert (partition(cluster).replicas, partition(cluster).isr, partition(cluster).leader) == ((2, 1), (2,), -1)
    assert partition(cluster).last_known_elr == ((2,) if elr else ()), "who led is no replica any more"
    cluster.heartbeat(2)
    assert (partition(cluster).leader, partition(cluster).leader_recovery_state) == (2, RECOVERING)
