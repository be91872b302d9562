from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.client.scripted import Table, answered
from tidelog.client.admin.group_results import Committed, GroupListing
from tidelog.client.admin.groups import assigned, commit, committed, delete, delete_offsets, describe, list_all
from tidelog.client.calls import Coordinator, VersionOf
from tidelog.client.connection import UnsupportedByBroker
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tidelog.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from tidelog.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsResponse
from tidelog.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from tidelog.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker, MetadataResponseTopic
from tidelog.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tidelog.protocol.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

ID = b"i" * 16
TOPICS = MetadataResponse(brokers=[MetadataResponseBroker(node_id=1)], topics=[MetadataResponseTopic(name="t", topic_id=ID)])


def fetched(**topic: Any) -> Any:
    part = SimpleNamespace(partition_index=0, error_code=0, committed_offset=5, committed_leader_epoch=2)
    none = SimpleNamespace(partition_index=1, error_code=0, committed_offset=-1, committed_leader_epoch=-1)
    return SimpleNamespace(error_code=0, topics=[SimpleNamespace(partitions=[part, none], **topic)])


def test_groups_of_all_brokers_by_name() -> None:
    rows = [ListedGroup(group_id=name, group_state="Stable", group_type="classic") for name in "ba"]
    found = answered(list_all(), Table(TOPICS, ListGroupsResponse(groups=rows)))
    assert found == [GroupListing(name, "", "Stable", "classic") for name in "ab"]


def test_brokers_without_the_new_protocol_describe_classic_groups() -> None:
    table = Table(DescribeGroupsResponse(groups=[DescribedGroup(group_id="g", group_state="Stable", protocol_data="range")]))

    def answer(step: Any) -> Any:
        return UnsupportedByBroker() if isinstance(step.request, ConsumerGroupDescribeRequest) else table(step)

    found = answered(describe("g"), answer)
    assert (found.group_id, found.state, found.assignor, found.epoch) == ("g", "Stable", "range", None)


@pytest.mark.parametrize("version", [7, 8, 10])
def test_committed_offsets_of_brokers_old_and_new(version: int) -> None:
    found = fetched(name="", topic_id=ID) if version == 10 else fetched(name="t")

    def answer(step: Any) -> Any:
        if isinstance(step, VersionOf):
            return version
        if type(step.request).__name__ == "MetadataRequest":
            return TOPICS
        return SimpleNamespace(groups=[found]) if version >= 8 else found

    assert answered(committed("g"), answer) == {("t", 0): Committed(5, 2)}


@pytest.mark.parametrize("version", [9, 10])
def test_offsets_are_committed_by_name_or_id_and_failures_are_named(version: int) -> None:
    rows = [
        OffsetCommitResponsePartition(partition_index=0),
        OffsetCommitResponsePartition(partition_index=1, error_code=ErrorCode.UNKNOWN_MEMBER_ID),
    ]
    topic = OffsetCommitResponseTopic(topic_id=ID, name="t", partitions=rows)
    table = Table(TOPICS, OffsetCommitResponse(topics=[topic]), version=version)
    failed = answered(commit("g", {("t", 0): 3, ("t", 1): 4}), table)
    assert {at: error.code for at, error in failed.items()} == {("t", 1): ErrorCode.UNKNOWN_MEMBER_ID}
    (asked,) = table.asked[-1].request.topics
    assert (asked.name == "t") == (version == 9)
    assert table.asked[-1].to == Coordinator("g")
    assert answered(commit("g", {}), Table()) == {}


def test_deleting_groups_and_offsets() -> None:
    refused = DeletableGroupResult(error_code=ErrorCode.NON_EMPTY_GROUP)
    with pytest.raises(KafkaError, match="NON_EMPTY_GROUP"):
        answered(delete("g"), Table(DeleteGroupsResponse(results=[refused])))
    part = OffsetDeleteResponsePartition(partition_index=0, error_code=ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
    response = OffsetDeleteResponse(topics=[OffsetDeleteResponseTopic(name="t", partitions=[part])])
    failed = answered(delete_offsets("g", [("t", 0)]), Table(response))
    assert [error.code for error in failed.values()] == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
        answered(delete_offsets("g", []), Table(OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)))


def test_an_assignment_that_is_not_a_consumers_is_empty() -> None:
    assert assigned(b"") == assigned(b"\0\0garbage") == ()
