"""The consumer protocol through the wire, at every version."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.unit.broker.apis.live import Talk
from tests.unit.broker.node_world import NodeWorld
from tidelog.broker.apis.groups.consumer_groups import consumer_group_describe, consumer_group_heartbeat
from tidelog.broker.operations import GROUP_OPERATIONS, NOT_ASKED
from tidelog.model.errors import ErrorCode as E
from tidelog.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tidelog.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tidelog.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tidelog.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def talk(broker: Broker) -> Iterator[Talk]:
    talk = Talk(broker.port)
    talk.find("any")
    talk.ask(CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=2, replication_factor=1)]), 7)
    yield talk
    talk.close()


def beat(talk: Talk, group: str, member: str, epoch: int, version: int = 1) -> ConsumerGroupHeartbeatResponse:
    """A heartbeat of a member that reads ``t``."""
    request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch)
    if epoch == 0:
        request = request.replace(rebalance_timeout_ms=9_000, subscribed_topic_names=["t"], topic_partitions=[])
    answer = talk.ask(request, version)
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    return answer


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_lives_and_leaves(talk: Talk, version: int) -> None:
    group = f"lives-{version}"
    joined = beat(talk, group, "" if version == 0 else "m", 0, version)
    assert (joined.error_code, joined.member_epoch, joined.heartbeat_interval_ms) == (0, 2, 5_000)
    assert joined.assignment is not None and joined.member_id
    assert [topic.partitions for topic in joined.assignment.topic_partitions] == [[0, 1]]
    assert beat(talk, group, joined.member_id, 2, version).assignment is None
    assert beat(talk, group, joined.member_id, -1, version).member_epoch == -1
    assert beat(talk, group, joined.member_id, 2, version).error_code == E.UNKNOWN_MEMBER_ID


def test_a_request_that_makes_no_sense_is_refused_before_its_group_is_looked_for(talk: Talk) -> None:
    answer = talk.ask(ConsumerGroupHeartbeatRequest(group_id="g", member_epoch=0), 1)
    assert (answer.error_code, answer.error_message) == (E.INVALID_REQUEST, "MemberId can't be empty.")


@pytest.mark.parametrize("version", [0, 1])
def test_groups_are_described(talk: Talk, version: int) -> None:
    group = f"described-{version}"
    beat(talk, group, "m", 0)
    request = ConsumerGroupDescribeRequest(group_ids=[group, "none", ""], include_authorized_operations=True)
    found, none, empty = talk.ask(request, version).groups
    assert (found.group_id, found.group_state, found.authorized_operations) == (group, "Stable", GROUP_OPERATIONS)
    assert [member.member_type for member in found.members] == [-1 if version == 0 else 1]
    assert (none.error_code, none.authorized_operations) == (E.GROUP_ID_NOT_FOUND, NOT_ASKED)
    assert empty.error_code == E.INVALID_GROUP_ID


def test_offsets_are_fenced_by_member_epoch(talk: Talk) -> None:
    beat(talk, "fenced", "m", 0)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=4)
    commit = OffsetCommitRequest(
        group_id="fenced", member_id="m", topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])]
    )
    for epoch, error in ((2, 0), (3, E.STALE_MEMBER_EPOCH), (1, E.STALE_MEMBER_EPOCH)):
        answer = talk.ask(commit.replace(generation_id_or_member_epoch=epoch), 9)
        assert answer.topics[0].partitions[0].error_code == error
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    for member, epoch, error in (("m", 2, 0), ("m", 1, E.STALE_MEMBER_EPOCH), ("x", 2, E.UNKNOWN_MEMBER_ID), (None, -1, 0)):
        asked = OffsetFetchRequestGroup(group_id="fenced", member_id=member, member_epoch=epoch, topics=topics)
        (found,) = talk.ask(OffsetFetchRequest(groups=[asked]), 9).groups
        assert found.error_code == error
        assert error or found.topics[0].partitions[0].committed_offset == 4


def test_a_cluster_at_group_version_zero_serves_no_such_groups() -> None:
    world = NodeWorld()
    world.broker.image = replace(world.broker.image, features={"metadata.version": 30})
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m")
    answer = consumer_group_heartbeat(world.context(1), request)
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    assert (answer.error_code, answer.error_message) == (E.UNSUPPORTED_VERSION, None)
    described = asyncio.run(consumer_group_describe(world.context(1), ConsumerGroupDescribeRequest(group_ids=["g"])))
    assert [group.error_code for group in described.groups] == [E.UNSUPPORTED_VERSION]
