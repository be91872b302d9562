from __future__ import annotations

import pytest

from tests.unit.client.scripted import Table, answered
from tidelog.client.admin.replicas import elect_leaders, log_dirs, reassign, reassignments
from tidelog.client.admin.results import LogDir, Reassignment
from tidelog.client.calls import Node
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from tidelog.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from tidelog.protocol.messages.elect_leaders import ElectLeadersResponse, PartitionResult, ReplicaElectionResult
from tidelog.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def test_log_dirs_hold_replicas_and_future_ones_do_not_count() -> None:
    parts = [DescribeLogDirsPartition(partition_index=each, partition_size=7, is_future_key=each == 1) for each in (0, 1)]
    rows = [DescribeLogDirsTopic(name=name, partitions=parts) for name in ("t", "u")]
    broken = DescribeLogDirsResult(log_dir="/b", error_code=ErrorCode.KAFKA_STORAGE_ERROR, total_bytes=-1, usable_bytes=-1)
    good = DescribeLogDirsResult(log_dir="/a", topics=rows, total_bytes=100, usable_bytes=50)
    table = Table(DescribeLogDirsResponse(results=[good, broken]))
    assert answered(log_dirs(3, ["t"]), table) == [
        LogDir("/a", 100, 50, {("t", 0): 7}, None),
        LogDir("/b", -1, -1, {}, "KAFKA_STORAGE_ERROR"),
    ]
    assert table.asked[0].to == Node(3)
    assert answered(log_dirs(3), table)[0].replicas == {("t", 0): 7, ("u", 0): 7}


def test_reassignments_are_listed_begun_and_ended() -> None:
    part = OngoingPartitionReassignment(partition_index=0, replicas=[1, 2], adding_replicas=[2], removing_replicas=[1])
    listed = ListPartitionReassignmentsResponse(topics=[OngoingTopicReassignment(name="t", partitions=[part])])
    assert answered(reassignments(), Table(listed)) == {("t", 0): Reassignment((1, 2), (2,), (1,))}

    rows = [
        ReassignablePartitionResponse(partition_index=0),
        ReassignablePartitionResponse(partition_index=1, error_code=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ]
    table = Table(AlterPartitionReassignmentsResponse(responses=[ReassignableTopicResponse(name="t", partitions=rows)]))
    failed = answered(reassign({("t", 0): [2, 3], ("t", 1): None}), table)
    assert [(at, error.code.name) for at, error in failed.items()] == [(("t", 1), "NO_REASSIGNMENT_IN_PROGRESS")]
    (topic,) = table.asked[0].request.topics
    assert [each.replicas for each in topic.partitions] == [[2, 3], None]
    assert answered(reassign({}), Table()) == {}


def test_a_leader_that_is_the_right_one_already_is_no_failure() -> None:
    rows = [
        PartitionResult(partition_id=0),
        PartitionResult(partition_id=1, error_code=ErrorCode.ELECTION_NOT_NEEDED),
        PartitionResult(partition_id=2, error_code=ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, error_message="down"),
    ]
    table = Table(ElectLeadersResponse(replica_election_results=[ReplicaElectionResult(topic="t", partition_result=rows)]))
    failed = answered(elect_leaders([("t", 0), ("t", 1), ("t", 2)]), table)
    assert {at: str(error) for at, error in failed.items()} == {("t", 2): "PREFERRED_LEADER_NOT_AVAILABLE: down"}
    assert table.asked[0].request.election_type == 0
    answered(elect_leaders(None, unclean=True), table)
    assert (table.asked[1].request.election_type, table.asked[1].request.topic_partitions) == (1, None)
    with pytest.raises(KafkaError):
        answered(elect_leaders(None), Table(ElectLeadersResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)))
