"""Single answers about a share group; a whole sample is taken from a broker in tests/node/test_why.py and tests/causes."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.client.calls import Call
from tidelog.console.group_facts import ShareProgress
from tidelog.console.share_collecting import _progress, _state_topic_fault
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from tidelog.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic


def answered(call: Call[Any], *answers: Any) -> Any:
    """The result of the call when it gets these answers."""
    with pytest.raises(StopIteration) as end:
        next(call)
        for answer in answers:
            call.send(answer)
    return end.value.value


def test_a_partition_is_known_without_a_start_or_with_an_error() -> None:
    parts = [
        DescribeShareGroupOffsetsResponsePartition(partition_index=0, start_offset=7, lag=3),
        DescribeShareGroupOffsetsResponsePartition(partition_index=1, start_offset=-1, lag=-1),
        DescribeShareGroupOffsetsResponsePartition(partition_index=2, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ]
    topic = DescribeShareGroupOffsetsResponseTopic(topic_name="t", partitions=parts)
    group = DescribeShareGroupOffsetsResponseGroup(group_id="g", topics=[topic])
    assert answered(_progress("g"), DescribeShareGroupOffsetsResponse(groups=[group])) == {
        ("t", 0): ShareProgress(True, None, 7, 3),
        ("t", 1): ShareProgress(True),
        ("t", 2): ShareProgress(True, "COORDINATOR_NOT_AVAILABLE"),
    }


def test_the_topic_of_the_state_may_be_missing_or_down() -> None:
    gone = MetadataResponseTopic(name="__share_group_state", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert answered(_state_topic_fault(), MetadataResponse(topics=[gone])) == "__share_group_state does not exist"
    parts = [
        MetadataResponsePartition(partition_index=0, leader_id=-1),
        MetadataResponsePartition(partition_index=1, leader_id=2),
    ]
    down = MetadataResponse(topics=[MetadataResponseTopic(name="__share_group_state", partitions=parts)])
    assert answered(_state_topic_fault(), down) == "__share_group_state: 1 of 2 partitions without a leader"
