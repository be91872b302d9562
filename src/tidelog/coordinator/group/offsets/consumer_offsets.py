"""Whether a member of a consumer group may commit or read offsets: by its member epoch, and by what it was given when.

A commit of an older epoch is taken for partitions that the member has had since then (KIP-1251), so that a commit under way
while the epoch rises is not lost; it is refused for any other. Members of the classic protocol are told ILLEGAL_GENERATION
where others are told STALE_MEMBER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup
from tidelog.coordinator.group.records import CommittedOffset
from tidelog.model.errors import ErrorCode

MEMBER_EPOCHS_FROM = 9
"""OffsetCommit knows member epochs since this version."""


def commit_error(
    group: ConsumerGroup,
    member_id: str,
    epoch: int,
    version: int | None,
    partitions: Iterable[tuple[bytes, int]],
) -> ErrorCode | None:
    """Why a commit of these partitions, by topic id, is refused as a whole; ``version`` None for a transactional one."""
    if epoch < 0 and not group.members:
        return None
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if version is not None and member.classic is None and version < MEMBER_EPOCHS_FROM:
        return ErrorCode.UNSUPPORTED_VERSION
    if epoch == member.epoch:
        return None
    stale = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
    if epoch > member.epoch:
        return stale
    for topic_id, partition in partitions:
        given = member.epoch_of(topic_id, partition)
        if given is None or epoch < given:
            return stale
    return None


def fetch_error(group: ConsumerGroup, member_id: str | None, epoch: int) -> ErrorCode | None:
    """Why a member may not read offsets; whoever says nothing of membership may."""
    if member_id is None and epoch < 0:
        return None
    member = None if member_id is None else group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if epoch == member.epoch:
        return None
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION


def expired(
    group: ConsumerGroup, commits: Mapping[tuple[str, int], CommittedOffset], now_ms: int, retention_ms: int
) -> list[tuple[str, int]]:
    """Commits of topics that nobody in the group subscribes to, and that are old enough."""
    subscribed = group.subscribed_topics()
    return [
        place
        for place, commit in commits.items()
        if place[0] not in subscribed and now_ms - commit.commit_timestamp_ms >= retention_ms
    ]
