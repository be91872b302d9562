"""The records of ``__consumer_offsets`` that share groups write and read: types 10 to 15.

This module decides what each record does to a group. Source: Kafka's ShareGroup*Key/Value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from tidelog.coordinator.group.records import GroupRecord
from tidelog.coordinator.group.share.share_group import LEAVE_EPOCH, Partitions, ShareGroup, ShareMember, StatePartitions
from tidelog.protocol.messages.share_group_current_member_assignment_key import ShareGroupCurrentMemberAssignmentKey
from tidelog.protocol.messages.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from tidelog.protocol.messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from tidelog.protocol.messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue
from tidelog.protocol.messages.share_group_metadata_key import ShareGroupMetadataKey
from tidelog.protocol.messages.share_group_metadata_value import ShareGroupMetadataValue
from tidelog.protocol.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
from tidelog.protocol.messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)
from tidelog.protocol.messages.share_group_target_assignment_member_key import ShareGroupTargetAssignmentMemberKey
from tidelog.protocol.messages.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from tidelog.protocol.messages.share_group_target_assignment_metadata_key import ShareGroupTargetAssignmentMetadataKey
from tidelog.protocol.messages.share_group_target_assignment_metadata_value import ShareGroupTargetAssignmentMetadataValue

MEMBER, GROUP, TARGET, TARGET_MEMBER, CURRENT, STATE_PARTITIONS = 10, 11, 12, 13, 14, 15
_INT16 = struct.Struct(">h")
_VERSION = _INT16.pack(0)
_GROUP_KEY = _INT16.pack(GROUP)
_STABLE = 0


@dataclass(frozen=True, slots=True)
class ShareRecordKey:
    """The group of a record, and its member (empty for a record of the group itself)."""

    type: int
    group_id: str
    member_id: str = ""


def read_share_key(kind: int, body: bytes) -> ShareRecordKey | None:
    """Reads the key after its type. None for a key of another protocol; ProtocolViolation when it is malformed."""
    read = _KEYS.get(kind)
    return None if read is None else ShareRecordKey(kind, *read(body))


_KEYS: dict[int, Callable[[bytes], tuple[str, ...]]] = {
    MEMBER: lambda body: _of_member(ShareGroupMemberMetadataKey.decode(body, 0)),
    GROUP: lambda body: (ShareGroupMetadataKey.decode(body, 0).group_id,),
    TARGET: lambda body: (ShareGroupTargetAssignmentMetadataKey.decode(body, 0).group_id,),
    TARGET_MEMBER: lambda body: _of_member(ShareGroupTargetAssignmentMemberKey.decode(body, 0)),
    CURRENT: lambda body: _of_member(ShareGroupCurrentMemberAssignmentKey.decode(body, 0)),
    STATE_PARTITIONS: lambda body: (ShareGroupStatePartitionMetadataKey.decode(body, 0).group_id,),
}


def _of_member(
    key: ShareGroupMemberMetadataKey | ShareGroupTargetAssignmentMemberKey | ShareGroupCurrentMemberAssignmentKey,
) -> tuple[str, str]:
    return key.group_id, key.member_id


# -- written -------------------------------------------------------------------------------------------------------------


def _record(kind: int, key: bytes, value: bytes | None) -> GroupRecord:
    return GroupRecord(_INT16.pack(kind) + key, None if value is None else _VERSION + value)


def member_record(group_id: str, member: ShareMember) -> GroupRecord:
    """The member's metadata and subscription."""
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
    )
    return _record(MEMBER, ShareGroupMemberMetadataKey(group_id, member.member_id).encode(0), value.encode(0))


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> GroupRecord:
    """The group's epoch, and the hash of its topics at that epoch."""
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return _record(GROUP, ShareGroupMetadataKey(group_id=group_id).encode(0), value.encode(0))


def raises_epoch(records: Iterable[GroupRecord]) -> bool:
    """Whether a group's epoch is among these records."""
    return any(record.value is not None and record.key.startswith(_GROUP_KEY) for record in records)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> GroupRecord:
    """The group epoch of the target assignment, and when it was computed."""
    value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return _record(TARGET, ShareGroupTargetAssignmentMetadataKey(group_id=group_id).encode(0), value.encode(0))


def target_record(group_id: str, member_id: str, target: Partitions) -> GroupRecord:
    """The member's target assignment."""
    topics = [TopicPartition(topic_id, sorted(target[topic_id])) for topic_id in sorted(target) if target[topic_id]]
    key = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return _record(TARGET_MEMBER, key.encode(0), ShareGroupTargetAssignmentMemberValue(topic_partitions=topics).encode(0))


def current_record(group_id: str, member: ShareMember) -> GroupRecord:
    """The member's epoch and assignment."""
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=_STABLE,
        assigned_partitions=[
            TopicPartitions(topic_id, sorted(member.assigned[topic_id])) for topic_id in sorted(member.assigned)
        ],
    )
    return _record(CURRENT, ShareGroupCurrentMemberAssignmentKey(group_id, member.member_id).encode(0), value.encode(0))


def removal_records(group_id: str, member_id: str) -> list[GroupRecord]:
    """Deletes the member."""
    return [
        _record(CURRENT, ShareGroupCurrentMemberAssignmentKey(group_id, member_id).encode(0), None),
        _record(TARGET_MEMBER, ShareGroupTargetAssignmentMemberKey(group_id, member_id).encode(0), None),
        _record(MEMBER, ShareGroupMemberMetadataKey(group_id, member_id).encode(0), None),
    ]


def state_partitions_record(group_id: str, known: StatePartitions) -> GroupRecord:
    """Which partitions have a state at the share coordinator."""
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=_infos(known.initializing),
        initialized_topics=_infos(known.initialized),
        deleting_topics=[TopicInfo(topic_id, known.deleting[topic_id]) for topic_id in sorted(known.deleting)],
    )
    return _record(STATE_PARTITIONS, ShareGroupStatePartitionMetadataKey(group_id=group_id).encode(0), value.encode(0))


def _infos(topics: Mapping[bytes, tuple[str, frozenset[int]]]) -> list[TopicPartitionsInfo]:
    return [TopicPartitionsInfo(topic_id, topics[topic_id][0], sorted(topics[topic_id][1])) for topic_id in sorted(topics)]


def group_tombstones(group: ShareGroup) -> list[GroupRecord]:
    """Deletes a group without members."""
    return [
        _record(TARGET, ShareGroupTargetAssignmentMetadataKey(group_id=group.group_id).encode(0), None),
        _record(STATE_PARTITIONS, ShareGroupStatePartitionMetadataKey(group_id=group.group_id).encode(0), None),
        _record(GROUP, ShareGroupMetadataKey(group_id=group.group_id).encode(0), None),
    ]


# -- read ----------------------------------------------------------------------------------------------------------------


def replay_value(group: ShareGroup, key: ShareRecordKey, raw: bytes) -> None:
    """Applies a record with a value."""
    body = raw[2:]
    member = group.members.get(key.member_id, ShareMember(key.member_id))
    if key.type == MEMBER:
        read = ShareGroupMemberMetadataValue.decode(body, 0)
        group.members[key.member_id] = replace(
            member,
            rack_id=read.rack_id,
            client_id=read.client_id,
            client_host=read.client_host,
            topics=tuple(read.subscribed_topic_names),
        )
    elif key.type == GROUP:
        metadata = ShareGroupMetadataValue.decode(body, 0)
        group.epoch, group.metadata_hash = metadata.epoch, metadata.metadata_hash
    elif key.type == TARGET:
        target = ShareGroupTargetAssignmentMetadataValue.decode(body, 0)
        group.assignment_epoch, group.assignment_ms = target.assignment_epoch, target.assignment_timestamp
    elif key.type == TARGET_MEMBER:
        topics = ShareGroupTargetAssignmentMemberValue.decode(body, 0).topic_partitions
        group.target[key.member_id] = {topic.topic_id: frozenset(topic.partitions) for topic in topics}
    elif key.type == CURRENT:
        current = ShareGroupCurrentMemberAssignmentValue.decode(body, 0)
        group.members[key.member_id] = replace(
            member,
            epoch=current.member_epoch,
            previous_epoch=current.previous_member_epoch,
            assigned={topic.topic_id: frozenset(topic.partitions) for topic in current.assigned_partitions},
        )
    else:
        known = ShareGroupStatePartitionMetadataValue.decode(body, 0)
        group.state_partitions = StatePartitions(
            {one.topic_id: (one.topic_name, frozenset(one.partitions)) for one in known.initializing_topics},
            {one.topic_id: (one.topic_name, frozenset(one.partitions)) for one in known.initialized_topics},
            {one.topic_id: one.topic_name for one in known.deleting_topics},
        )


def replay_tombstone(group: ShareGroup, key: ShareRecordKey) -> bool:
    """Applies a tombstone. True when it deletes the group itself."""
    if key.type == GROUP:
        return True
    if key.type == MEMBER:
        group.members.pop(key.member_id, None)
        group.sessions.pop(key.member_id, None)
    elif key.type == TARGET:
        group.assignment_epoch, group.assignment_ms = 0, 0
    elif key.type == TARGET_MEMBER:
        group.target.pop(key.member_id, None)
    elif key.type == CURRENT:
        member = group.members.get(key.member_id)
        if member is not None:
            group.members[key.member_id] = replace(member, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={})
    else:
        group.state_partitions = StatePartitions()
    return False
