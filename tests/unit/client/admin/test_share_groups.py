from __future__ import annotations

import pytest

from tests.unit.client.scripted import Table, answered
from tidelog.client.admin.group_results import ShareGroup, ShareMember, ShareOffset
from tidelog.client.admin.share_groups import alter_offsets, delete_offsets, describe, offsets, state
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from tidelog.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from tidelog.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from tidelog.protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeResponse,
    TopicPartitions,
)


def test_members_have_their_partitions_in_order() -> None:
    parts = [TopicPartitions(topic_name="u", partitions=[0]), TopicPartitions(topic_name="t", partitions=[2, 1])]
    member = Member(member_id="m", member_epoch=4, client_id="c", client_host="/h", assignment=Assignment(topic_partitions=parts))
    member.subscribed_topic_names = ["u", "t"]
    group = DescribedGroup(
        group_id="g", group_state="Stable", group_epoch=4, assignment_epoch=3, assignor_name="simple", members=[member]
    )
    found = answered(describe("g"), Table(ShareGroupDescribeResponse(groups=[group])))
    members = (ShareMember("m", "c", "/h", 4, (("t", 1), ("t", 2), ("u", 0)), ("t", "u")),)
    assert found == ShareGroup("g", "Stable", "simple", members, 4, 3)


@pytest.mark.parametrize(("code", "expected"), [(ErrorCode.NONE, "Empty"), (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")])
def test_a_group_that_does_not_exist_is_dead(code: ErrorCode, expected: str) -> None:
    group = DescribedGroup(error_code=code, group_id="g", group_state="Empty")
    assert answered(state("g"), Table(ShareGroupDescribeResponse(groups=[group]))) == expected


def test_other_errors_of_a_group_are_raised() -> None:
    group = DescribedGroup(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id="g")
    with pytest.raises(KafkaError):
        answered(state("g"), Table(ShareGroupDescribeResponse(groups=[group])))


def test_an_unknown_start_has_neither_epoch_nor_lag() -> None:
    parts = [
        DescribeShareGroupOffsetsResponsePartition(partition_index=0, start_offset=5, leader_epoch=0, lag=-1),
        DescribeShareGroupOffsetsResponsePartition(partition_index=1, start_offset=-1, leader_epoch=0, lag=-1),
        DescribeShareGroupOffsetsResponsePartition(partition_index=2, error_code=3),
    ]
    topic = DescribeShareGroupOffsetsResponseTopic(topic_name="t", partitions=parts)
    response = DescribeShareGroupOffsetsResponse(groups=[DescribeShareGroupOffsetsResponseGroup(group_id="g", topics=[topic])])
    assert answered(offsets("g"), Table(response)) == {
        ("t", 0): ShareOffset(5, 0, None),
        ("t", 1): ShareOffset(None, None, None),
    }


def test_partitions_whose_offset_was_not_altered_are_returned() -> None:
    parts = [
        AlterShareGroupOffsetsResponsePartition(partition_index=0),
        AlterShareGroupOffsetsResponsePartition(partition_index=1, error_code=3, error_message="no such partition"),
    ]
    topic = AlterShareGroupOffsetsResponseTopic(topic_name="t", partitions=parts)
    failed = answered(alter_offsets("g", {("t", 0): 1, ("t", 1): 2}), Table(AlterShareGroupOffsetsResponse(responses=[topic])))
    assert {at: (error.code, error.detail) for at, error in failed.items()} == {
        ("t", 1): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such partition")
    }


def test_topics_whose_offsets_were_not_deleted_are_returned() -> None:
    topics = [
        DeleteShareGroupOffsetsResponseTopic(topic_name="t"),
        DeleteShareGroupOffsetsResponseTopic(topic_name="u", error_code=3),
    ]
    failed = answered(delete_offsets("g", ["t", "u"]), Table(DeleteShareGroupOffsetsResponse(responses=topics)))
    assert [(topic, error.code) for topic, error in failed.items()] == [("u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    with pytest.raises(KafkaError):
        answered(delete_offsets("g", ["t"]), Table(DeleteShareGroupOffsetsResponse(error_code=ErrorCode.NON_EMPTY_GROUP)))
