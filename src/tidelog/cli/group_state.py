"""What is known of consumer groups of either protocol: members, states, committed offsets.

A group is described by the coordinator that has it; groups of the consumer protocol (KIP-848) and classic ones become one form.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

from tidelog.cli.admin_session import AdminSession, NodeConnection, Partition
from tidelog.cli.refusal import CommandFailed, check, error_text
from tidelog.client.connection import UnsupportedByBroker
from tidelog.model.errors import ErrorCode, ProtocolViolation
from tidelog.model.ids import NO_OFFSET
from tidelog.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tidelog.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from tidelog.protocol.messages.describe_groups import DescribeGroupsRequest
from tidelog.protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from tidelog.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

DEAD, EMPTY = "Dead", "Empty"
REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})
GROUPS_IN_OFFSET_FETCH_FROM = 8
_SCHEMA_BYTES = 2


@dataclass(frozen=True, slots=True)
class Member:
    """``epoch`` and ``target`` are None for members of the classic protocol."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[Partition, ...]
    epoch: int | None = None
    target: tuple[Partition, ...] | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """``epoch`` and ``target_epoch`` are None for classic groups."""

    group_id: str
    state: str
    assignor: str
    members: tuple[Member, ...]
    epoch: int | None = None
    target_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset and the leader epoch that came with it, -1 without one."""

    offset: int
    leader_epoch: int


def list_groups(session: AdminSession) -> list[ListedGroup]:
    """All groups of all brokers, by name."""
    found: dict[str, ListedGroup] = {}
    for broker_id in session.brokers():
        response = session.until_settled(partial(_listed, session.connection(broker_id)), attrgetter("error_code"))
        check(response.error_code)
        found.update({group.group_id: group for group in response.groups})
    return [found[name] for name in sorted(found)]


def _listed(connection: NodeConnection) -> Any:
    return connection.ask(ListGroupsRequest())


def consumer_groups(session: AdminSession) -> list[ListedGroup]:
    """The groups of consumers, of both protocols, and those that only keep offsets."""
    return [
        group
        for group in list_groups(session)
        if (group.group_type or "classic").lower() == "consumer"
        or ((group.group_type or "classic").lower() == "classic" and group.protocol_type in {"consumer", ""})
    ]


def describe(session: AdminSession, group_id: str) -> Group:
    """The group. CommandFailed when there is none of that name."""
    try:
        request = ConsumerGroupDescribeRequest(group_ids=[group_id])
        found = session.ask_coordinator(group_id, request, lambda answer: answer.groups[0].error_code).groups[0]
        if found.error_code == ErrorCode.NONE:
            return _of_consumer_protocol(found)
        if found.error_code not in {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION}:
            check(found.error_code, found.error_message)
    except UnsupportedByBroker:
        pass
    classic = session.ask_coordinator(
        group_id, DescribeGroupsRequest(groups=[group_id]), lambda answer: answer.groups[0].error_code
    ).groups[0]
    if classic.error_code == ErrorCode.GROUP_ID_NOT_FOUND or classic.group_state == DEAD:
        raise CommandFailed(error_text(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found."))
    check(classic.error_code, classic.error_message)
    return _of_classic_protocol(classic)


def _of_consumer_protocol(found: Any) -> Group:
    members = tuple(
        Member(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            _partitions(member.assignment),
            member.member_epoch,
            _partitions(member.target_assignment),
        )
        for member in found.members
    )
    return Group(found.group_id, found.group_state, found.assignor_name, members, found.group_epoch, found.assignment_epoch)


def _of_classic_protocol(found: Any) -> Group:
    members = tuple(
        Member(
            member.member_id, member.group_instance_id, member.client_id, member.client_host, _assigned(member.member_assignment)
        )
        for member in found.members
    )
    return Group(found.group_id, found.group_state, found.protocol_data, members)


def _partitions(assignment: Any) -> tuple[Partition, ...]:
    return tuple(sorted((topic.topic_name, index) for topic in assignment.topic_partitions for index in topic.partitions))


def _assigned(data: bytes) -> tuple[Partition, ...]:
    """A member's part in the embedded protocol of consumers; nothing when it is not one."""
    if len(data) < _SCHEMA_BYTES:
        return ()
    version = min(int.from_bytes(data[:_SCHEMA_BYTES], "big"), ConsumerProtocolAssignment.MAX_VERSION)
    try:
        decoded, _ = ConsumerProtocolAssignment.decode_from(data, _SCHEMA_BYTES, version)
    except ProtocolViolation:
        return ()
    return tuple(sorted((topic.topic, index) for topic in decoded.assigned_partitions for index in topic.partitions))


def committed(session: AdminSession, group_id: str) -> dict[Partition, Committed]:
    """All offsets that the group has committed."""
    connection = session.connection(session.coordinator(group_id)[0])
    if connection.version_of(OffsetFetchRequest.API_KEY) >= GROUPS_IN_OFFSET_FETCH_FROM:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)], require_stable=True)
        answer = session.ask_coordinator(group_id, request, lambda found: found.groups[0].error_code).groups[0]
    else:
        request = OffsetFetchRequest(group_id=group_id, topics=None)
        answer = session.ask_coordinator(group_id, request, lambda found: found.error_code)
    if answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return {}
    check(answer.error_code)
    names = _names_by_id(session, answer.topics)
    return {
        (names.get(getattr(topic, "topic_id", b""), topic.name), part.partition_index): Committed(
            part.committed_offset, part.committed_leader_epoch
        )
        for topic in answer.topics
        for part in topic.partitions
        if part.error_code == ErrorCode.NONE and part.committed_offset != NO_OFFSET
    }


def _names_by_id(session: AdminSession, topics: Iterable[Any]) -> dict[bytes, str]:
    """Newer answers name topics by id only."""
    if all(topic.name for topic in topics):
        return {}
    return {topic.topic_id: topic.name or "" for topic in session.metadata(None)}
