"""Whether a member of a streams group may commit or read offsets, by its member epoch and the epochs of its tasks.

A commit with an older epoch is accepted for input partitions of active tasks that the member has had since then, so that a commit
in flight is not lost when the epoch rises; for others it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.coordinator.group.records import CommittedOffset
from tidelog.coordinator.group.streams.streams_group import StreamsGroup
from tidelog.model.errors import ErrorCode

MEMBER_EPOCHS_FROM = 9
"""The first version of OffsetCommit that knows member epochs."""


def commit_error(
    group: StreamsGroup, member_id: str, epoch: int, version: int | None, partitions: Iterable[tuple[str, int]]
) -> ErrorCode | None:
    """The error that refuses a commit of these partitions, by topic name, as a whole; ``version`` is None for a transactional
    one."""
    if epoch < 0 and not group.members:
        return None
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if version is not None and version < MEMBER_EPOCHS_FROM:
        return ErrorCode.UNSUPPORTED_VERSION
    if epoch == member.epoch:
        return None
    if epoch > member.epoch:
        return ErrorCode.STALE_MEMBER_EPOCH
    for topic, partition in partitions:
        subtopology_id = group.subtopology_of(topic)
        given = None if subtopology_id is None else member.epoch_of(subtopology_id, partition)
        if given is None or epoch < given:
            return ErrorCode.STALE_MEMBER_EPOCH
    return None


def fetch_error(group: StreamsGroup, member_id: str | None, epoch: int) -> ErrorCode | None:
    """The error that refuses a fetch of offsets. A client that sends neither member id nor epoch may read them."""
    if member_id is None and epoch < 0:
        return None
    member = None if member_id is None else group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return None if epoch == member.epoch else ErrorCode.STALE_MEMBER_EPOCH


def expired(
    group: StreamsGroup, commits: Mapping[tuple[str, int], CommittedOffset], now_ms: int, retention_ms: int
) -> list[tuple[str, int]]:
    """Expired commits of topics that no member reads."""
    return [
        (topic, partition)
        for (topic, partition), commit in commits.items()
        if now_ms - commit.commit_timestamp_ms >= retention_ms and not reads(group, topic)
    ]


def reads(group: StreamsGroup, topic: str) -> bool:
    """Whether the members read the topic; a group without members reads none."""
    return bool(group.members) and group.subtopology_of(topic) is not None
