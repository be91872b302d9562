"""The classic protocol through the wire, at every version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.broker.apis.live import Talk
from tidelog.broker.apis.groups.consumer_groups import consumer_group_heartbeat
from tidelog.broker.apis.groups.groups import heartbeat
from tidelog.broker.apis.groups.share_groups import share_group_heartbeat
from tidelog.broker.apis.groups.streams_groups import streams_group_heartbeat
from tidelog.broker.operations import GROUP_OPERATIONS, NOT_ASKED
from tidelog.model.errors import ErrorCode as E
from tidelog.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tidelog.protocol.messages.delete_groups import DeleteGroupsRequest
from tidelog.protocol.messages.describe_groups import DescribeGroupsRequest
from tidelog.protocol.messages.heartbeat import HeartbeatRequest
from tidelog.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from tidelog.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tidelog.protocol.messages.list_groups import ListGroupsRequest
from tidelog.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tidelog.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from tidelog.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tidelog.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def join(talk: Talk, group: str, version: int, member: str = "") -> JoinGroupResponse:
    """The answer to a join; since v4 the second one, which has the id that the first one was given."""
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000 if version else -1,
        member_id=member,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"meta")],
    )
    answer: JoinGroupResponse = talk.ask(request, version)
    if answer.error_code == E.MEMBER_ID_REQUIRED:
        return join(talk, group, version, answer.member_id)
    return answer


def stable(talk: Talk, group: str) -> str:
    """A group of one member that owns ``b"own"``."""
    member = join(talk, group, 9).member_id
    talk.ask(
        SyncGroupRequest(
            group_id=group,
            generation_id=1,
            member_id=member,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncGroupRequestAssignment(member_id=member, assignment=b"own")],
        ),
        5,
    )
    return member


@pytest.mark.parametrize("version", range(10))
def test_a_member_joins_syncs_and_leaves(talk: Talk, version: int) -> None:
    group = f"life-{version}"
    joined = join(talk, group, version)
    assert (joined.error_code, joined.generation_id, joined.leader, joined.protocol_name) == (0, 1, joined.member_id, "range")
    assert [(member.member_id, member.metadata) for member in joined.members] == [(joined.member_id, b"meta")]
    member = joined.member_id
    assignment = [SyncGroupRequestAssignment(member_id=member, assignment=b"own")]
    sync = SyncGroupRequest(group_id=group, generation_id=1, member_id=member, assignments=assignment)
    if version >= 5:
        assert talk.ask(sync, 5).error_code == E.INCONSISTENT_GROUP_PROTOCOL, "it has to be named"
        sync = sync.replace(protocol_type="consumer", protocol_name=joined.protocol_name)
    synced = talk.ask(sync, min(version, 5))
    assert (synced.error_code, synced.assignment) == (0, b"own")
    beat = HeartbeatRequest(group_id=group, generation_id=1, member_id=member)
    assert talk.ask(beat, min(version, 4)).error_code == 0
    leave_version = min(version, 5)
    if leave_version < 3:
        assert talk.ask(LeaveGroupRequest(group_id=group, member_id=member), leave_version).error_code == 0
    else:
        left = talk.ask(LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member)]), leave_version)
        assert [one.error_code for one in left.members] == [0]
    assert talk.ask(beat, min(version, 4)).error_code == E.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(7))
def test_a_group_is_described(talk: Talk, version: int) -> None:
    group = f"seen-{version}"
    member = stable(talk, group)
    asked = DescribeGroupsRequest(groups=[group, "nobody", ""])
    if version >= 3:
        asked.include_authorized_operations = version % 2 == 1
    found, unknown, nameless = talk.ask(asked, version).groups
    assert (found.group_state, found.protocol_data) == ("Stable", "range")
    assert [(m.member_id, m.client_id, m.client_host, m.member_assignment) for m in found.members] == [
        (member, "talk", "/127.0.0.1", b"own")
    ]
    if version >= 3:
        assert found.authorized_operations == (GROUP_OPERATIONS if version % 2 else NOT_ASKED)
    assert unknown.group_state == "Dead" and unknown.error_code == (E.GROUP_ID_NOT_FOUND if version >= 6 else 0)
    assert (nameless.group_state, nameless.error_code) == (unknown.group_state, unknown.error_code)


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed(talk: Talk, version: int) -> None:
    stable(talk, f"listed-{version}")
    request = ListGroupsRequest()
    if version >= 4:
        request.states_filter = ["Stable"]
    if version >= 5:
        request.types_filter = ["classic"]
    listed = {group.group_id: group for group in talk.ask(request, version).groups}
    assert listed[f"listed-{version}"].protocol_type == "consumer"
    if version >= 4:
        assert {group.group_state for group in listed.values()} == {"Stable"}


@pytest.mark.parametrize("version", range(3))
def test_only_groups_without_members_are_deleted(talk: Talk, version: int) -> None:
    group = f"gone-{version}"
    member = stable(talk, group)
    request = DeleteGroupsRequest(groups_names=[group, "nobody"])
    results = {one.group_id: one.error_code for one in talk.ask(request, version).results}
    assert results == {group: E.NON_EMPTY_GROUP, "nobody": E.GROUP_ID_NOT_FOUND}
    talk.ask(LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member)]), 5)
    assert talk.ask(request, version).results[0].error_code == 0


def test_a_join_waits_for_the_others_while_other_connections_are_served(broker: Broker, talk: Talk) -> None:
    stable(talk, "wait")
    other = Talk(broker.port)
    first = JoinGroupRequest(
        group_id="wait",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    first.member_id = other.ask(first, 9).member_id
    other.send(first, 9)
    members = talk.ask(DescribeGroupsRequest(groups=["wait"]), 5).groups[0].members
    while len(members) < 2:
        members = talk.ask(DescribeGroupsRequest(groups=["wait"]), 5).groups[0].members
    assert join(talk, "wait", 9, members[0].member_id).generation_id == 2
    assert other.receive(first, 9).generation_id == 2
    other.close()


@pytest.mark.parametrize(
    ("found", "answered"), [(E.COORDINATOR_LOAD_IN_PROGRESS, E.NONE), (E.NOT_COORDINATOR, E.NOT_COORDINATOR)]
)
def test_a_heartbeat_to_a_group_that_is_still_loading_is_taken_without_a_look(found: E, answered: E) -> None:
    shards = SimpleNamespace(find=lambda _group, writes: found)
    ctx = SimpleNamespace(node=SimpleNamespace(groups=shards, access=None))
    answer = heartbeat(ctx, HeartbeatRequest(group_id="g", generation_id=1, member_id="m"))  # type: ignore[arg-type]
    assert answer.error_code == answered  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("call", "request_"),
    [
        (
            consumer_group_heartbeat,
            ConsumerGroupHeartbeatRequest(
                group_id="g", member_id="m", rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[]
            ),
        ),
        (share_group_heartbeat, ShareGroupHeartbeatRequest(group_id="g", member_id="m", subscribed_topic_names=["t"])),
        (streams_group_heartbeat, StreamsGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1)),
    ],
)
def test_a_heartbeat_without_a_coordinator_gets_the_error_without_a_message(call: Callable[..., Any], request_: Any) -> None:
    ctx = SimpleNamespace(
        node=SimpleNamespace(groups=SimpleNamespace(find=lambda _group, writes: E.NOT_COORDINATOR), access=None),
        config=SimpleNamespace(
            group_coordinator_rebalance_protocols=["consumer", "share", "streams"], group_consumer_assignors=["uniform"]
        ),
        image=SimpleNamespace(features={"group.version": 1, "share.version": 1, "streams.version": 1}),
        api_version=1,
        client_id="c",
        peer_host="127.0.0.1",
    )
    answer = call(ctx, request_)
    assert (answer.error_code, answer.error_message) == (E.NOT_COORDINATOR, None)
