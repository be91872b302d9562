from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controller.conftest import Cluster
from tests.unit.controller.test_elect_leaders import create
from tests.unit.controller.test_reassignments import reassign
from tidelog.controller.quorum_controller import QuorumController
from tidelog.metadata.image import PartitionImage
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)
from tidelog.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from tidelog.protocol.messages.assign_replicas_to_dirs import RequestDirectoryData as DirectoryData
from tidelog.protocol.messages.assign_replicas_to_dirs import RequestPartitionData as PartitionData
from tidelog.protocol.messages.assign_replicas_to_dirs import RequestTopicData as TopicData


@pytest.fixture
def trio(make_cluster: Any) -> Cluster:
    """Topic t on 1, 2 and 3; 1 leads, 3 was fenced once and is not in sync."""
    cluster: Cluster = make_cluster(1, 2, 3, 4)
    create(cluster, "t", [1, 2, 3])
    cluster.heartbeat(3, want_fence=True)
    cluster.heartbeat(3)
    return cluster


def partition(cluster: Cluster) -> PartitionImage:
    return cluster.image.topics.by_name["t"].partitions[0]


def alter(cluster: Cluster, isr: list[int], *, broker_id: int = 1, plain: bool = False, **changes: Any) -> ResponsePartitionData:
    """The leader asks for an ISR, with what it may know unless told otherwise."""
    present = partition(cluster)
    epochs = {each: broker.epoch for each, broker in cluster.image.brokers.items()} | changes.pop("epochs", {})
    asked = {
        "partition_index": 0,
        "leader_epoch": present.leader_epoch,
        "partition_epoch": present.partition_epoch,
        "leader_recovery_state": present.leader_recovery_state,
        **changes,
    }
    if plain:
        asked["new_isr"] = isr
    else:
        asked["new_isr_with_epochs"] = [BrokerState(each, epochs.get(each, 0)) for each in isr]
    topic = RequestTopicData(cluster.image.topics.by_name["t"].id, [RequestPartitionData(**asked)])
    request = AlterPartitionRequest(broker_id=broker_id, broker_epoch=cluster.image.brokers[broker_id].epoch, topics=[topic])
    (answer,) = cluster.ask(QuorumController.alter_partition, request).topics[0].partitions
    return answer


@pytest.mark.parametrize("plain", [True, False])
def test_a_replica_that_caught_up_joins_the_isr_in_a_new_partition_epoch(trio: Cluster, plain: bool) -> None:
    before = partition(trio)
    answer = alter(trio, [1, 2, 3], plain=plain)
    after = partition(trio)
    assert (after.isr, after.leader_epoch, after.partition_epoch) == ((1, 2, 3), before.leader_epoch, before.partition_epoch + 1)
    assert (answer.error_code, answer.isr, answer.leader_id) == (0, [1, 2, 3], 1)
    assert (answer.leader_epoch, answer.partition_epoch) == (after.leader_epoch, after.partition_epoch)


def test_what_is_already_so_is_answered_without_a_record(trio: Cluster) -> None:
    answer = alter(trio, [1, 2])
    assert (answer.error_code, answer.isr, trio.records) == (0, [1, 2], [])


@pytest.mark.parametrize(
    ("isr", "changes", "code"),
    [
        ([1], {"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ([1], {"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ([1], {"partition_epoch": 0}, ErrorCode.INVALID_UPDATE_VERSION),
        ([2], {"broker_id": 2}, ErrorCode.INVALID_REQUEST),
        ([2, 3], {}, ErrorCode.INVALID_REQUEST),
        ([1, 4], {}, ErrorCode.INVALID_REQUEST),
        ([1, 2, 2], {}, ErrorCode.INVALID_REQUEST),
        ([1, 2], {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ([1], {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ([1], {"leader_recovery_state": 7}, ErrorCode.INVALID_REQUEST),
        ([1, 2, 3], {"epochs": {3: 1}}, ErrorCode.INELIGIBLE_REPLICA),
        ([1], {"partition_index": 3}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ([1], {"partition_index": -1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_request_that_does_not_fit_is_refused_and_nothing_changes(
    trio: Cluster, isr: list[int], changes: dict[str, Any], code: ErrorCode
) -> None:
    assert alter(trio, isr, **changes).error_code == code
    assert trio.records == []


def test_an_old_leader_epoch_is_fenced(trio: Cluster) -> None:
    old = partition(trio)
    trio.heartbeat(1, want_fence=True)
    trio.heartbeat(1)
    assert partition(trio).leader == 2
    assert alter(trio, [1, 2], leader_epoch=old.leader_epoch).error_code == ErrorCode.FENCED_LEADER_EPOCH


@pytest.mark.parametrize("how", [{"want_fence": True}, {"want_shut_down": True}])
def test_a_broker_out_of_service_does_not_join(trio: Cluster, how: dict[str, bool]) -> None:
    trio.heartbeat(3, **how)
    assert alter(trio, [1, 2, 3]).error_code == ErrorCode.INELIGIBLE_REPLICA


def test_any_epoch_of_a_member_will_do_when_the_leader_knows_none(trio: Cluster) -> None:
    assert alter(trio, [1, 2, 3], epochs={3: -1}).error_code == 0


def test_an_old_process_and_an_unknown_topic_are_told(trio: Cluster) -> None:
    request = AlterPartitionRequest(broker_id=1, broker_epoch=trio.image.brokers[1].epoch - 1)
    with pytest.raises(KafkaError) as caught:
        trio.ask(QuorumController.alter_partition, request)
    assert caught.value.code == ErrorCode.STALE_BROKER_EPOCH
    request = AlterPartitionRequest(
        broker_id=1,
        broker_epoch=trio.image.brokers[1].epoch,
        topics=[RequestTopicData(b"u" * 16, [RequestPartitionData(partition_index=0)])],
    )
    (answer,) = trio.ask(QuorumController.alter_partition, request).topics[0].partitions
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_partition_named_twice_changes_once(trio: Cluster) -> None:
    present = partition(trio)
    each = RequestPartitionData(0, present.leader_epoch, [1], [], 0, present.partition_epoch)
    topic = RequestTopicData(trio.image.topics.by_name["t"].id, [each, each])
    request = AlterPartitionRequest(broker_id=1, broker_epoch=trio.image.brokers[1].epoch, topics=[topic])
    answers = trio.ask(QuorumController.alter_partition, request).topics[0].partitions
    assert [answer.error_code for answer in answers] == [0, ErrorCode.INVALID_REQUEST]
    assert len(trio.records) == 1


def test_a_leader_that_has_recovered_says_so(make_cluster: Any) -> None:
    cluster: Cluster = make_cluster(1, 2, unclean_leader_election_enable=True)
    create(cluster, "t", [1, 2])
    cluster.heartbeat(2, want_fence=True)
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(2)
    cluster.heartbeat(1)
    assert (partition(cluster).leader, partition(cluster).isr, partition(cluster).leader_recovery_state) == (2, (2,), 1)
    assert alter(cluster, [2, 1], broker_id=2).error_code == ErrorCode.INVALID_REQUEST, "alone until it has recovered"
    assert alter(cluster, [2], broker_id=2, leader_recovery_state=0).error_code == 0
    assert partition(cluster).leader_recovery_state == 0
    assert alter(cluster, [2, 1], broker_id=2).error_code == 0


def test_the_isr_that_ends_a_reassignment_may_cost_the_leader_its_place(trio: Cluster) -> None:
    assert reassign(trio, "t", 0, [4, 2]) == 0
    moving = partition(trio)
    assert (moving.replicas, moving.adding_replicas, moving.removing_replicas) == ((4, 2, 1, 3), (4,), (1, 3))
    answer = alter(trio, [1, 2, 4])
    assert answer.error_code == ErrorCode.NEW_LEADER_ELECTED
    after = partition(trio)
    assert (after.replicas, after.isr, after.leader, after.adding_replicas, after.removing_replicas) == (
        (4, 2),
        (2, 4),
        4,
        (),
        (),
    )
    assert after.leader_epoch == moving.leader_epoch + 1


def test_a_replica_in_a_log_dir_that_failed_does_not_join_while_its_broker_is_in_service(make_cluster: Any) -> None:
    """Its leader may hear of the failure after it has asked."""
    cluster: Cluster = make_cluster(1, 2)
    cluster.register(3, directories=2)
    cluster.heartbeat(3)
    create(cluster, "t", [1, 2, 3])
    good, failed = cluster.image.brokers[3].directories
    for directory, code in ((failed, ErrorCode.NONE), (good, ErrorCode.NONE)):
        request = AssignReplicasToDirsRequest(3, cluster.image.brokers[3].epoch, [placed(cluster, directory)])
        assert cluster.ask(QuorumController.assign_replicas_to_dirs, request).error_code == code
        assert alter(cluster, [1, 2]).error_code == ErrorCode.NONE
        assert alter(cluster, [1, 2, 3]).error_code == ErrorCode.NONE
    request = AssignReplicasToDirsRequest(3, cluster.image.brokers[3].epoch, [placed(cluster, failed)])
    cluster.ask(QuorumController.assign_replicas_to_dirs, request)
    cluster.heartbeat(3, offline_log_dirs=[failed])
    assert partition(cluster).isr == (1, 2)
    assert alter(cluster, [1, 2, 3]).error_code == ErrorCode.INELIGIBLE_REPLICA


def placed(cluster: Cluster, directory: bytes) -> DirectoryData:
    topic_id = cluster.image.topics.by_name["t"].id
    return DirectoryData(directory, [TopicData(topic_id, [PartitionData(0)])])
