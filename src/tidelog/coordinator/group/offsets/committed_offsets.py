"""Committed offsets: commits, look-ups, deletion and expiry.

The durable state is a dictionary per group; only ``replay`` changes it. Offsets expire after ``offsets.retention.ms``. In a group
without members it counts from when the group became empty; in a group whose members no longer read a topic, from the commits of
that topic; in a group that only stores offsets (no protocol type), from the commit. Offsets that an open transaction may still
change do not expire. Source: KIP-211, KIP-496.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from tidelog.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.offsets.pending_offsets import PendingOffsets
from tidelog.coordinator.group.records import CommittedOffset, GroupRecord, OffsetKey, offset_record
from tidelog.model.errors import ErrorCode

Topic = tuple[str, int]
UNKNOWN_GROUP_FROM = 9
"""From this version on, OffsetCommit by a member of an unknown group gets GROUP_ID_NOT_FOUND; before, ILLEGAL_GENERATION."""


class OffsetsView(Protocol):
    """Read-only ``Offsets``."""

    def exist(self, group_id: str) -> bool: ...
    def places(self, group_id: str) -> list[Topic]: ...
    def of(self, group_id: str) -> Mapping[Topic, CommittedOffset]: ...
    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None: ...
    def group_ids(self) -> list[str]: ...
    def in_transaction(self, group_id: str) -> bool: ...
    def holds_back(self, key: OffsetKey) -> bool: ...
    def tombstones(self, group_id: str, topic: str | None = None) -> list[GroupRecord]: ...
    def __len__(self) -> int: ...


class Offsets:
    """Committed offsets of all groups of one coordinator, and those of open transactions."""

    __slots__ = ("_groups", "_pending")

    def __init__(self) -> None:
        self._groups: dict[str, dict[Topic, CommittedOffset]] = {}
        self._pending = PendingOffsets()

    def replay(self, key: OffsetKey, committed: CommittedOffset | None) -> None:
        """Replays a commit or its tombstone."""
        place = (key.topic, key.partition)
        if committed is not None:
            self._pending.overtake(key)
            self._groups.setdefault(key.group_id, {})[place] = committed
            return
        self._pending.drop(key)
        group = self._groups.get(key.group_id)
        if group is not None:
            group.pop(place, None)
            if not group:
                del self._groups[key.group_id]

    def replay_pending(self, producer_id: int, key: OffsetKey, committed: CommittedOffset | None) -> None:
        """Replays a record of a producer's transaction."""
        if committed is None:
            self.replay(key, None)
        else:
            self._pending.replay(producer_id, key, committed)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Replays the marker of a producer's transaction."""
        for key, offset in self._pending.end(producer_id, committed=committed):
            self._groups.setdefault(key.group_id, {})[key.topic, key.partition] = offset

    def exist(self, group_id: str) -> bool:
        """Whether the group has offsets, committed or in an open transaction."""
        return group_id in self._groups or self._pending.is_open(group_id)

    def places(self, group_id: str) -> list[Topic]:
        """Partitions for which the group has an offset, committed or in an open transaction."""
        found = dict.fromkeys(self.of(group_id))
        found.update(((key.topic, key.partition), None) for key in self._pending.keys(group_id))
        return list(found)

    def of(self, group_id: str) -> Mapping[Topic, CommittedOffset]:
        """All commits of a group."""
        return self._groups.get(group_id, {})

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """One commit."""
        return self._groups.get(group_id, {}).get((topic, partition))

    def group_ids(self) -> list[str]:
        """Groups with at least one offset, committed or in an open transaction."""
        return list(dict.fromkeys((*self._groups, *self._pending.group_ids())))

    def in_transaction(self, group_id: str) -> bool:
        """Whether the group has committed in a transaction that is still open."""
        return self._pending.is_open(group_id)

    def holds_back(self, key: OffsetKey) -> bool:
        """Whether an open transaction may change this offset."""
        return self._pending.holds(key)

    def __len__(self) -> int:
        return sum(len(group) for group in self._groups.values())

    def tombstones(self, group_id: str, topic: str | None = None) -> list[GroupRecord]:
        """Records that delete a group's commits, all or those of one topic."""
        return [
            offset_record(OffsetKey(group_id, name, partition), None)
            for name, partition in self.places(group_id)
            if topic is None or name == topic
        ]


def expired(offsets: OffsetsView, group_id: str, group: ClassicGroup | None, now_ms: int, retention_ms: int) -> list[Topic]:
    """Expired commits of a classic group, or of no group, that no open transaction is about to replace."""
    outlived = _outlived(offsets.of(group_id), group, now_ms, retention_ms)
    return [place for place in outlived if not offsets.holds_back(OffsetKey(group_id, *place))]


def _outlived(
    commits: Mapping[Topic, CommittedOffset], group: ClassicGroup | None, now_ms: int, retention_ms: int
) -> list[Topic]:
    since_ms, read = 0, frozenset[str]()
    if group is not None and group.protocol_type is not None and group.state is GroupState.EMPTY:
        since_ms = group.state_since_ms
    elif group is not None and group.protocol_type is not None:
        subscribed = subscribed_topics(group)
        if subscribed is None or group.state is not GroupState.STABLE:
            return []
        read = subscribed
    elif group is not None and group.state is not GroupState.EMPTY:
        return []
    return [
        place
        for place, commit in commits.items()
        if place[0] not in read and now_ms - max(since_ms, commit.commit_timestamp_ms) >= retention_ms
    ]


def is_too_long(metadata: str, limit: int) -> bool:
    """Whether the metadata of a commit exceed ``limit`` bytes."""
    return len(metadata.encode()) > limit


def take_commit(
    effects: Effects, key: OffsetKey, committed: CommittedOffset, *, refusal: ErrorCode | None, metadata_max_bytes: int
) -> ErrorCode:
    """One partition of a commit: appends its record unless the whole commit is refused or the metadata are too long; returns
    the response."""
    if refusal is not None:
        return refusal
    if is_too_long(committed.metadata, metadata_max_bytes):
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    effects.records.append(offset_record(key, committed))
    return ErrorCode.NONE


def commit_error(
    group: ClassicGroup | None, member_id: str, instance_id: str | None, generation: int, version: int
) -> ErrorCode | None:
    """The error of a commit. A commit without a generation is accepted while the group has no members."""
    if group is None:
        unknown = ErrorCode.GROUP_ID_NOT_FOUND if version >= UNKNOWN_GROUP_FROM else ErrorCode.ILLEGAL_GENERATION
        return None if generation < 0 else unknown
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if generation < 0 and group.state is GroupState.EMPTY:
        return None
    if instance_id is not None:
        current = group.static.get(instance_id)
        if current is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if current != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    if member_id not in group.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is GroupState.COMPLETING_REBALANCE:
        # The partitions are about to be reassigned; the commit would belong to the previous generation.
        return ErrorCode.REBALANCE_IN_PROGRESS
    return None


def reads(group: ClassicGroup, topic: str) -> bool:
    """Whether a member may read the topic; true when a consumer's metadata do not tell."""
    if group.protocol_type != "consumer" or not group.members:
        return False
    topics = subscribed_topics(group)
    return topics is None or topic in topics


def subscribed_topics(group: ClassicGroup) -> frozenset[str] | None:
    """Topics that members of a consumer group read; None when unknown (another protocol type, malformed metadata)."""
    if group.protocol_type != "consumer" or group.protocol is None:
        return None
    topics: list[str] = []
    for member in group.members.values():
        own = read_subscription(member.subscription(group.protocol))
        if own is None:
            return None
        topics += own
    return frozenset(topics)


def read_subscription(metadata: bytes) -> list[str] | None:
    """The topics in a consumer's ConsumerProtocolSubscription: int16 version, then an array of strings; None when malformed."""
    position = 6
    if len(metadata) < position:
        return None
    count = int.from_bytes(metadata[2:6], "big", signed=True)
    if count < 0 or count > (len(metadata) - position) // 2:
        return None
    topics = []
    for _ in range(count):
        length = int.from_bytes(metadata[position : position + 2], "big", signed=True)
        end = position + 2 + length
        if length < 0 or end > len(metadata):
            return None
        topics.append(metadata[position + 2 : end].decode("utf-8", "replace"))
        position = end
    return topics
