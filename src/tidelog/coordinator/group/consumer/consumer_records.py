"""The records of ``__consumer_offsets`` that the consumer protocol writes and reads: types 3 to 8 and 16.

This module decides what each record does to a group. Type 4 (partition counts of a group's topics) was written before Kafka 4.1;
it is read, and deleted with the next change. Tombstones of unknown keys are ignored: compaction leaves some. Source: Kafka's
ConsumerGroup*Key/Value; protocol map 5.2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace

from tidelog.coordinator.group.consumer.consumer_group import (
    LEAVE_EPOCH,
    NO_ASSIGNMENT_EPOCH,
    ClassicMetadata,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    Owned,
    Partitions,
    ResolvedRegex,
)
from tidelog.coordinator.group.records import GroupRecord
from tidelog.protocol.messages.consumer_group_current_member_assignment_key import ConsumerGroupCurrentMemberAssignmentKey
from tidelog.protocol.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from tidelog.protocol.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from tidelog.protocol.messages.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)
from tidelog.protocol.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from tidelog.protocol.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from tidelog.protocol.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from tidelog.protocol.messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from tidelog.protocol.messages.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue
from tidelog.protocol.messages.consumer_group_target_assignment_member_key import ConsumerGroupTargetAssignmentMemberKey
from tidelog.protocol.messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from tidelog.protocol.messages.consumer_group_target_assignment_metadata_key import ConsumerGroupTargetAssignmentMetadataKey
from tidelog.protocol.messages.consumer_group_target_assignment_metadata_value import ConsumerGroupTargetAssignmentMetadataValue

GROUP, PARTITION_METADATA, MEMBER, TARGET, TARGET_MEMBER, CURRENT, REGEX = 3, 4, 5, 6, 7, 8, 16
_INT16 = struct.Struct(">h")
_VERSION = _INT16.pack(0)


@dataclass(frozen=True, slots=True)
class ConsumerKey:
    """The group of a record, and its member or pattern (empty for a record of the group itself)."""

    type: int
    group_id: str
    name: str = ""


def read_consumer_key(kind: int, body: bytes) -> ConsumerKey | None:
    """Reads the key after its type. None for a key of another protocol; ProtocolViolation when it is malformed."""
    read = _KEYS.get(kind)
    return None if read is None else ConsumerKey(kind, *read(body))


_KEYS: dict[int, Callable[[bytes], tuple[str, ...]]] = {
    GROUP: lambda body: (ConsumerGroupMetadataKey.decode(body, 0).group_id,),
    PARTITION_METADATA: lambda body: (ConsumerGroupPartitionMetadataKey.decode(body, 0).group_id,),
    MEMBER: lambda body: _of_member(ConsumerGroupMemberMetadataKey.decode(body, 0)),
    TARGET: lambda body: (ConsumerGroupTargetAssignmentMetadataKey.decode(body, 0).group_id,),
    TARGET_MEMBER: lambda body: _of_member(ConsumerGroupTargetAssignmentMemberKey.decode(body, 0)),
    CURRENT: lambda body: _of_member(ConsumerGroupCurrentMemberAssignmentKey.decode(body, 0)),
    REGEX: lambda body: _of_regex(ConsumerGroupRegularExpressionKey.decode(body, 0)),
}


def _of_member(
    key: ConsumerGroupMemberMetadataKey | ConsumerGroupTargetAssignmentMemberKey | ConsumerGroupCurrentMemberAssignmentKey,
) -> tuple[str, str]:
    return key.group_id, key.member_id


def _of_regex(key: ConsumerGroupRegularExpressionKey) -> tuple[str, str]:
    return key.group_id, key.regular_expression


# -- written -------------------------------------------------------------------------------------------------------------


def _record(kind: int, key: bytes, value: bytes | None) -> GroupRecord:
    return GroupRecord(_INT16.pack(kind) + key, None if value is None else _VERSION + value)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> GroupRecord:
    """The group's epoch, and the hash of its topics at that epoch."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return _record(GROUP, ConsumerGroupMetadataKey(group_id=group_id).encode(0), value.encode(0))


def epoch_tombstone(group_id: str) -> GroupRecord:
    """Deletes the group."""
    return _record(GROUP, ConsumerGroupMetadataKey(group_id=group_id).encode(0), None)


def partition_metadata_tombstone(group_id: str) -> GroupRecord:
    """Deletes a record from before Kafka 4.1."""
    return _record(PARTITION_METADATA, ConsumerGroupPartitionMetadataKey(group_id=group_id).encode(0), None)


def member_record(group_id: str, member: ConsumerMember) -> GroupRecord:
    """The member's metadata and subscription."""
    classic = member.classic
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=None
        if classic is None
        else ClassicMemberMetadata(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=[ClassicProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols],
        ),
    )
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return _record(MEMBER, key.encode(0), value.encode(0))


def member_tombstone(group_id: str, member_id: str) -> GroupRecord:
    """Deletes the member."""
    return _record(MEMBER, ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id).encode(0), None)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> GroupRecord:
    """The group epoch of the target assignment, and when it was computed."""
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return _record(TARGET, ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id).encode(0), value.encode(0))


def target_epoch_tombstone(group_id: str) -> GroupRecord:
    """Deletes the target assignment."""
    return _record(TARGET, ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id).encode(0), None)


def target_record(group_id: str, member_id: str, target: Partitions) -> GroupRecord:
    """The member's target assignment."""
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TopicPartition(topic_id=topic_id, partitions=sorted(target[topic_id]))
            for topic_id in sorted(target)
            if target[topic_id]
        ]
    )
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return _record(TARGET_MEMBER, key.encode(0), value.encode(0))


def target_tombstone(group_id: str, member_id: str) -> GroupRecord:
    """Deletes the member's target assignment."""
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return _record(TARGET_MEMBER, key.encode(0), None)


def current_record(group_id: str, member: ConsumerMember) -> GroupRecord:
    """The member's current assignment and its epoch."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=int(member.state),
        assigned_partitions=_with_epochs(member.assigned),
        partitions_pending_revocation=_with_epochs(member.revoking),
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return _record(CURRENT, key.encode(0), value.encode(0))


def _with_epochs(owned: Owned) -> list[TopicPartitions]:
    topics = []
    for topic_id in sorted(owned):
        partitions = sorted(owned[topic_id])
        epochs: list[int] | None = [owned[topic_id][partition] for partition in partitions]
        topics.append(TopicPartitions(topic_id=topic_id, partitions=partitions, assignment_epochs=epochs))
    return topics


def current_tombstone(group_id: str, member_id: str) -> GroupRecord:
    """Deletes the member's current assignment."""
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    return _record(CURRENT, key.encode(0), None)


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex) -> GroupRecord:
    """The topics that a pattern matches."""
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    return _record(REGEX, key.encode(0), value.encode(0))


def regex_tombstone(group_id: str, regex: str) -> GroupRecord:
    """Deletes a pattern that no member subscribes to any more."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    return _record(REGEX, key.encode(0), None)


def removal_records(group_id: str, member_id: str) -> list[GroupRecord]:
    """Deletes a member: current assignment, target assignment, member, in this order."""
    return [current_tombstone(group_id, member_id), target_tombstone(group_id, member_id), member_tombstone(group_id, member_id)]


def group_tombstones(group: ConsumerGroup, renamed: dict[str, str] | None = None) -> list[GroupRecord]:
    """Deletes a group. ``renamed`` maps member ids to the ids under which the log now has them."""
    ids = [(renamed or {}).get(member_id, member_id) for member_id in group.members]
    records = [current_tombstone(group.group_id, member_id) for member_id in ids]
    records += [target_tombstone(group.group_id, member_id) for member_id in ids]
    records.append(target_epoch_tombstone(group.group_id))
    records += [member_tombstone(group.group_id, member_id) for member_id in ids]
    records += [regex_tombstone(group.group_id, regex) for regex in group.regexes]
    # Kafka deletes the type from before 4.1 whether it was there or not.
    records += [partition_metadata_tombstone(group.group_id), epoch_tombstone(group.group_id)]
    return records


def creation_records(group: ConsumerGroup) -> list[GroupRecord]:
    """All records of a group that was converted from a classic one."""
    members = group.members.values()
    records = [member_record(group.group_id, member) for member in members]
    records.append(epoch_record(group.group_id, group.epoch, group.metadata_hash))
    records += [target_record(group.group_id, member.member_id, group.target_of(member.member_id)) for member in members]
    records.append(target_epoch_record(group.group_id, group.assignment_epoch, group.assignment_timestamp_ms))
    records += [current_record(group.group_id, member) for member in members]
    return records


# -- replayed ------------------------------------------------------------------------------------------------------------


def replay_value(group: ConsumerGroup, key: ConsumerKey, raw: bytes) -> None:
    """Applies a record's value to its group. ProtocolViolation when it is malformed."""
    (version,) = _INT16.unpack_from(raw)
    body = raw[_INT16.size :]
    if key.type == GROUP:
        read = ConsumerGroupMetadataValue.decode(body, version)
        group.epoch, group.metadata_hash = read.epoch, read.metadata_hash
    elif key.type == PARTITION_METADATA:
        group.has_partition_metadata = True
    elif key.type == MEMBER:
        member = group.members.get(key.name) or ConsumerMember(key.name)
        group.update_member(_with_metadata(member, ConsumerGroupMemberMetadataValue.decode(body, version)))
    elif key.type == TARGET:
        target = ConsumerGroupTargetAssignmentMetadataValue.decode(body, version)
        group.assignment_epoch, group.assignment_timestamp_ms = target.assignment_epoch, target.assignment_timestamp
    elif key.type == TARGET_MEMBER:
        of_member = ConsumerGroupTargetAssignmentMemberValue.decode(body, version)
        group.target[key.name] = {entry.topic_id: frozenset(entry.partitions) for entry in of_member.topic_partitions}
    elif key.type == CURRENT:
        member = group.members.get(key.name) or ConsumerMember(key.name)
        group.update_member(_with_current(member, ConsumerGroupCurrentMemberAssignmentValue.decode(body, version)))
    elif key.type == REGEX:
        regex = ConsumerGroupRegularExpressionValue.decode(body, version)
        group.regexes[key.name] = ResolvedRegex(frozenset(regex.topics), regex.version, regex.timestamp)


def _with_metadata(member: ConsumerMember, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    classic = value.classic_member_metadata
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=tuple(sorted(set(value.subscribed_topic_names))),
        regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=None
        if classic is None
        else ClassicMetadata(
            classic.session_timeout_ms,
            tuple((protocol.name, bytes(protocol.metadata)) for protocol in classic.supported_protocols),
        ),
    )


def _with_current(member: ConsumerMember, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState.read(value.state),
        assigned=_read_owned(value.assigned_partitions, value.member_epoch),
        revoking=_read_owned(value.partitions_pending_revocation, value.member_epoch),
    )


def _read_owned(topics: list[TopicPartitions], member_epoch: int) -> dict[bytes, dict[int, int]]:
    """Before Kafka 4.3 partitions had no epoch; the member's epoch is an upper bound and is used instead."""
    owned = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if not epochs or len(epochs) != len(topic.partitions):
            epochs = [member_epoch] * len(topic.partitions)
        owned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return owned


def replay_tombstone(group: ConsumerGroup, key: ConsumerKey) -> bool:
    """Applies a tombstone. True when it deletes the group itself."""
    if key.type == GROUP:
        return True
    if key.type == PARTITION_METADATA:
        group.has_partition_metadata = False
    elif key.type == MEMBER:
        group.remove_member(key.name)
    elif key.type == TARGET:
        group.assignment_epoch, group.assignment_timestamp_ms = NO_ASSIGNMENT_EPOCH, 0
    elif key.type == TARGET_MEMBER:
        group.target.pop(key.name, None)
    elif key.type == CURRENT:
        member = group.members.get(key.name)
        if member is not None:
            gone = replace(member, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={}, revoking={})
            group.update_member(replace(gone, state=MemberState.STABLE))
    elif key.type == REGEX:
        group.regexes.pop(key.name, None)
    return False
