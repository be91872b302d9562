"""Consumer groups of both protocols: members, states, committed offsets.

Groups are described by their coordinators; groups of the consumer protocol (KIP-848) and classic ones have one result type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidelog.client.admin.group_results import Committed, Group, GroupListing, Member
from tidelog.client.admin.topics import brokers, check, topics
from tidelog.client.calls import Ask, Call, Coordinator, Each, Node, Partition, VersionOf
from tidelog.client.connection import UnsupportedByBroker
from tidelog.model.errors import ErrorCode, KafkaError, ProtocolViolation
from tidelog.model.ids import NO_OFFSET
from tidelog.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tidelog.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from tidelog.protocol.messages.describe_groups import DescribeGroupsRequest
from tidelog.protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from tidelog.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

DEAD = "Dead"
GROUPS_IN_OFFSET_FETCH_FROM = 8
TOPIC_IDS_IN_COMMIT_FROM = 10
_SCHEMA_BYTES = 2


def listed() -> Call[list[ListedGroup]]:
    """All groups of all brokers as listed, sorted by name. KafkaError."""
    there = yield from brokers()
    found: list[list[ListedGroup]] = yield Each([_listed_at(broker_id) for broker_id in there])
    return sorted({group.group_id: group for part in found for group in part}.values(), key=lambda group: group.group_id)


def list_all() -> Call[list[GroupListing]]:
    """All groups of all brokers, of every type, sorted by name. KafkaError."""
    found = yield from listed()
    return [
        GroupListing(group.group_id, group.protocol_type or "", group.group_state or "", group.group_type or "")
        for group in found
    ]


def _listed_at(broker_id: int) -> Call[list[ListedGroup]]:
    response = yield Ask(ListGroupsRequest(), Node(broker_id), code_of=lambda answer: int(answer.error_code))
    check(response.error_code)
    return list(response.groups)


def describe(group_id: str) -> Call[Group]:
    """A consumer group. KafkaError (GROUP_ID_NOT_FOUND) if there is none with this name."""
    to = Coordinator(group_id)
    try:
        request = ConsumerGroupDescribeRequest(group_ids=[group_id])
        found = (yield Ask(request, to, code_of=_first_group)).groups[0]
        if found.error_code == ErrorCode.NONE:
            return _of_consumer_protocol(found)
        if found.error_code not in {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION}:
            check(found.error_code, found.error_message)
    except UnsupportedByBroker:
        pass
    classic = (yield Ask(DescribeGroupsRequest(groups=[group_id]), to, code_of=_first_group)).groups[0]
    if classic.error_code == ErrorCode.GROUP_ID_NOT_FOUND or classic.group_state == DEAD:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    check(classic.error_code, classic.error_message)
    return _of_classic_protocol(classic)


def delete(group_id: str) -> Call[None]:
    """Delete a group with its offsets; it must have no members. KafkaError, such as NON_EMPTY_GROUP."""
    from tidelog.protocol.messages.delete_groups import DeleteGroupsRequest

    request = DeleteGroupsRequest(groups_names=[group_id])
    response = yield Ask(request, Coordinator(group_id), code_of=lambda answer: int(answer.results[0].error_code))
    check(response.results[0].error_code)


def committed(group_id: str, *, stable: bool = True) -> Call[dict[Partition, Committed]]:
    """All committed offsets of the group; empty for an unknown group. KafkaError.

    ``stable``: without those that a transaction which is not over would set again; otherwise they are the ones before it."""
    to = Coordinator(group_id)
    if (yield VersionOf(OffsetFetchRequest.API_KEY, to)) >= GROUPS_IN_OFFSET_FETCH_FROM:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)], require_stable=stable)
        answer = (yield Ask(request, to, code_of=_first_group)).groups[0]
    else:
        request = OffsetFetchRequest(group_id=group_id, topics=None)
        answer = yield Ask(request, to, code_of=lambda found: int(found.error_code))
    if answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return {}
    check(answer.error_code)
    names = yield from _names_by_id(answer.topics)
    return {
        (names.get(getattr(topic, "topic_id", b""), topic.name), part.partition_index): Committed(
            part.committed_offset, part.committed_leader_epoch
        )
        for topic in answer.topics
        for part in topic.partitions
        if part.error_code == ErrorCode.NONE and part.committed_offset != NO_OFFSET
    }


def commit(group_id: str, offsets: Mapping[Partition, int]) -> Call[dict[Partition, KafkaError]]:
    """Set offsets of a group without members; returns the partitions that failed, for example with UNKNOWN_MEMBER_ID."""
    from tidelog.protocol.messages.offset_commit import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
    )

    parts: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, index), offset in sorted(offsets.items()):
        parts.setdefault(topic, []).append(OffsetCommitRequestPartition(partition_index=index, committed_offset=offset))
    if not parts:
        return {}
    described = yield from topics(parts)
    ids = {topic.name or "": topic.topic_id for topic in described}
    to = Coordinator(group_id)
    by_id = (yield VersionOf(OffsetCommitRequest.API_KEY, to)) >= TOPIC_IDS_IN_COMMIT_FROM
    rows = [
        OffsetCommitRequestTopic(topic_id=ids[name], partitions=found)
        if by_id
        else OffsetCommitRequestTopic(name=name, partitions=found)
        for name, found in parts.items()
    ]
    request = OffsetCommitRequest(group_id=group_id, topics=rows)
    response = yield Ask(request, to, code_of=lambda answer: int(answer.topics[0].partitions[0].error_code))
    names = {ids[name]: name for name in parts}
    return _failures(
        ((names.get(topic.topic_id, topic.name), part.partition_index), part.error_code)
        for topic in response.topics
        for part in topic.partitions
    )


def delete_offsets(group_id: str, partitions: Iterable[Partition]) -> Call[dict[Partition, KafkaError]]:
    """Delete committed offsets (KIP-496); returns the partitions that failed, for example with GROUP_SUBSCRIBED_TO_TOPIC."""
    from tidelog.protocol.messages.offset_delete import (
        OffsetDeleteRequest,
        OffsetDeleteRequestPartition,
        OffsetDeleteRequestTopic,
    )

    asked: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for topic, index in partitions:
        asked.setdefault(topic, []).append(OffsetDeleteRequestPartition(partition_index=index))
    rows = [OffsetDeleteRequestTopic(name=name, partitions=parts) for name, parts in asked.items()]
    request = OffsetDeleteRequest(group_id=group_id, topics=rows)
    response = yield Ask(request, Coordinator(group_id), code_of=lambda answer: int(answer.error_code))
    check(response.error_code)
    return _failures(
        ((topic.name, part.partition_index), part.error_code) for topic in response.topics for part in topic.partitions
    )


def _first_group(answer: Any) -> int:
    return int(answer.groups[0].error_code)


def _failures(rows: Iterable[tuple[Partition, int]]) -> dict[Partition, KafkaError]:
    return {at: KafkaError(ErrorCode(code), ErrorCode(code).text) for at, code in rows if code != ErrorCode.NONE}


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
            member.member_id, member.group_instance_id, member.client_id, member.client_host, assigned(member.member_assignment)
        )
        for member in found.members
    )
    return Group(found.group_id, found.group_state, found.protocol_data, members)


def _partitions(assignment: Any) -> tuple[Partition, ...]:
    return tuple(sorted((topic.topic_name, index) for topic in assignment.topic_partitions for index in topic.partitions))


def assigned(data: bytes) -> tuple[Partition, ...]:
    """A member's assignment in the embedded consumer protocol; empty in any other."""
    if len(data) < _SCHEMA_BYTES:
        return ()
    version = min(int.from_bytes(data[:_SCHEMA_BYTES], "big"), ConsumerProtocolAssignment.MAX_VERSION)
    try:
        decoded, _ = ConsumerProtocolAssignment.decode_from(data, _SCHEMA_BYTES, version)
    except ProtocolViolation:
        return ()
    return tuple(sorted((topic.topic, index) for topic in decoded.assigned_partitions for index in topic.partitions))


def _names_by_id(answered: Iterable[Any]) -> Call[dict[bytes, str]]:
    """Newer responses name topics by id only."""
    if all(topic.name for topic in answered):
        return {}
    described = yield from topics(None)
    return {topic.topic_id: topic.name or "" for topic in described}
