"""What a cluster is asked about reassignments."""

import pytest

from tests.unit.cli.cluster_stand_in import StandIn
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.reassignments import Placed, alter, names, ongoing, placed, replicas_of
from tidelog.console.moving.layout import Ongoing
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages import alter_partition_reassignments as altering
from tidelog.protocol.messages import describe_log_dirs as dirs
from tidelog.protocol.messages import list_partition_reassignments as listing
from tidelog.protocol.messages import metadata


def test_what_is_under_way_has_a_target():
    part = listing.OngoingPartitionReassignment(partition_index=1, replicas=[2, 1, 0], adding_replicas=[2], removing_replicas=[0])
    topic = listing.OngoingTopicReassignment(name="a", partitions=[part])
    session = StandIn({listing.ListPartitionReassignmentsRequest: listing.ListPartitionReassignmentsResponse(topics=[topic])})
    assert ongoing(session) == {("a", 1): Ongoing((2, 1, 0), (2,), (0,))}
    assert ongoing(session)["a", 1].target == (2, 1)


def test_replicas_are_asked_for_or_taken_back_and_failures_are_named():
    failed = altering.ReassignablePartitionResponse(
        partition_index=1, error_code=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, error_message="none"
    )
    response = altering.AlterPartitionReassignmentsResponse(
        responses=[altering.ReassignableTopicResponse(name="a", partitions=[failed])]
    )
    session = StandIn({altering.AlterPartitionReassignmentsRequest: response})
    assert alter(session, {("a", 0): (1, 2), ("a", 1): None}) == {("a", 1): "NO_REASSIGNMENT_IN_PROGRESS: none"}
    ((_, request),) = session.requests(altering.AlterPartitionReassignmentsRequest)
    assert [(part.partition_index, part.replicas) for part in request.topics[0].partitions] == [(0, [1, 2]), (1, None)]
    assert alter(session, {}) == {}
    assert len(session.asked) == 1, "nothing to do asks nobody"


def test_replicas_on_disk_are_asked_for_at_their_broker_and_futures_are_told_apart():
    def answer(request: dirs.DescribeLogDirsRequest) -> dirs.DescribeLogDirsResponse:
        def row(path: str, size: int, future: bool) -> dirs.DescribeLogDirsResult:
            part = dirs.DescribeLogDirsPartition(partition_index=0, partition_size=size, is_future_key=future)
            return dirs.DescribeLogDirsResult(log_dir=path, topics=[dirs.DescribeLogDirsTopic(name="a", partitions=[part])])

        return dirs.DescribeLogDirsResponse(results=[row("/one", 10, False), row("/two", 3, True)])

    session = StandIn({dirs.DescribeLogDirsRequest: answer})
    assert placed(session, {("a", 0): (1, 9)}) == {("a", 0, 1): Placed("/one", 10, "/two")}
    assert [at for at, _ in session.asked] == [1], "broker 9 is not there"


def test_a_topic_that_is_not_there_is_named():
    missing = metadata.MetadataResponseTopic(name="a", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    session = StandIn({metadata.MetadataRequest: metadata.MetadataResponse(topics=[missing])})
    with pytest.raises(CommandFailed, match="Topic a not found"):
        replicas_of(session, ["a"])


def test_partitions_are_named_in_order():
    assert names([("b", 0), ("a", 10), ("a", 2)]) == "a-2,a-10,b-0"
