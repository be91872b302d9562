"""The records of ``__consumer_offsets`` that the classic protocol writes and reads.

A record is (key, value): the key is int16 type + fields, the value int16 version + fields, null for a tombstone. Offsets are type
1 (0 is read too), a classic group's metadata type 2. Types 3 to 8 and 16 belong to the consumer protocol (KIP-848). Source:
Kafka's OffsetCommitKey/Value, GroupMetadataKey/Value; protocol map 5.2.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tidelog.coordinator.group.classic.classic_group import ClassicGroup, GroupState, Member
from tidelog.model.ids import ZERO_UUID
from tidelog.protocol.messages.group_metadata_key import GroupMetadataKey
from tidelog.protocol.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from tidelog.protocol.messages.offset_commit_key import OffsetCommitKey
from tidelog.protocol.messages.offset_commit_value import OffsetCommitValue

OFFSET_COMMIT_VALUE_VERSION = 4
GROUP_METADATA_VALUE_VERSION = 3
_INT16 = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """One record as it is appended. ``value`` None is a tombstone."""

    key: bytes
    value: bytes | None

    @property
    def size(self) -> int:
        """Bytes of key and value."""
        return len(self.key) + len(self.value or b"")


@dataclass(frozen=True, slots=True)
class OffsetKey:
    """The group and the partition of an offset."""

    group_id: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A committed offset. ``leader_epoch`` -1 when the client did not send one."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    topic_id: bytes = ZERO_UUID


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A record type that this version does not know."""

    type: int


def read_key(key: bytes) -> OffsetKey | str | UnknownKey:
    """An offset's key, the id of a classic group, or an unknown key. ProtocolViolation when it is malformed."""
    if len(key) < 2:
        return UnknownKey(-1)
    (kind,) = _INT16.unpack_from(key)
    if kind in {0, 1}:
        read = OffsetCommitKey.decode(key[2:], 0)
        return OffsetKey(read.group, read.topic, read.partition)
    if kind == 2:
        return GroupMetadataKey.decode(key[2:], 0).group
    return UnknownKey(kind)


def _key(kind: int, body: bytes) -> bytes:
    return _INT16.pack(kind) + body


def offset_record(key: OffsetKey, committed: CommittedOffset | None) -> GroupRecord:
    """A commit, or its tombstone."""
    raw = _key(1, OffsetCommitKey(group=key.group_id, topic=key.topic, partition=key.partition).encode(0))
    if committed is None:
        return GroupRecord(raw, None)
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        topic_id=committed.topic_id,
    )
    return GroupRecord(raw, _INT16.pack(OFFSET_COMMIT_VALUE_VERSION) + value.encode(OFFSET_COMMIT_VALUE_VERSION))


def read_offset(value: bytes) -> CommittedOffset:
    """A commit's value, at any of its versions."""
    (version,) = _INT16.unpack_from(value)
    read = OffsetCommitValue.decode(value[2:], version)
    return CommittedOffset(read.offset, read.leader_epoch, read.metadata, read.commit_timestamp, read.topic_id)


def group_tombstone(group_id: str) -> GroupRecord:
    """Deletes a classic group."""
    return GroupRecord(_key(2, GroupMetadataKey(group=group_id).encode(0)), None)


def group_record(group: ClassicGroup, *, rebalances: bool = False) -> GroupRecord:
    """The durable state of a classic group: its generation and the assignment of each member. ``rebalances``: it was just
    converted back from the consumer protocol and starts a join phase; a crash must not lose that, so no leader is named."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=None if rebalances else group.leader,
        current_state_timestamp=group.state_since_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol) if group.protocol is not None else b"",
                assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )
    version = GROUP_METADATA_VALUE_VERSION
    return GroupRecord(_key(2, GroupMetadataKey(group=group.group_id).encode(0)), _INT16.pack(version) + value.encode(version))


def read_group(group_id: str, value: bytes, now_ms: int) -> ClassicGroup:
    """A classic group as its last record left it: stable if it had members, else empty; sessions start again. A group without
    a leader was about to rebalance: its members do not know their assignment yet, so it starts with a rebalance."""
    (version,) = _INT16.unpack_from(value)
    read = GroupMetadataValue.decode(value[2:], version)
    group = ClassicGroup(group_id, now_ms)
    group.generation = read.generation
    group.protocol_type = read.protocol_type or None
    if read.current_state_timestamp >= 0:
        group.state_since_ms = read.current_state_timestamp
    if not read.members:
        return group
    group.protocol = read.protocol
    for stored in read.members:
        member = Member(
            stored.member_id,
            instance_id=stored.group_instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            rebalance_timeout_ms=stored.rebalance_timeout if stored.rebalance_timeout >= 0 else stored.session_timeout,
            session_timeout_ms=stored.session_timeout,
            protocols=((read.protocol or "", bytes(stored.subscription)),),
            assignment=bytes(stored.assignment),
        )
        member.deadline_ms = now_ms + member.session_timeout_ms
        group.add(member)
    group.leader = read.leader if read.leader in group.members else next(iter(group.members))
    if read.leader is None:
        group.state = GroupState.PREPARING_REBALANCE
        group.join_deadline_ms = now_ms + group.rebalance_timeout_ms
    else:
        group.state = GroupState.STABLE
    return group
