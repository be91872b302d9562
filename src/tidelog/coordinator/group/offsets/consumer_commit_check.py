"""Whether a member of a consumer group may commit or read offsets, by its member epoch and the epochs of its partitions.

A commit with an older epoch is accepted for partitions that the member has owned since then (KIP-1251), so that a commit in
flight is not lost when the epoch rises; for other partitions it is refused. Members of the classic protocol get
ILLEGAL_GENERATION where others get STALE_MEMBER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup
from tidelog.coordinator.group.records import CommittedOffset
from tidelog.model.errors import ErrorCode

MEMBER_EPOCHS_FROM = 9
"""The first version of OffsetCommit that knows member epochs."""


def commit_error(
    group: ConsumerGroup,
    member_id: str,
    epoch: int,
    version: int | None,
    partitions: Iterable[tuple[bytes, int]],
) -> ErrorCode | None:
    """The error that refuses a commit of these partitions, by topic id, as a whole; ``version`` is None for a transactional
    one."""
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
    """The error that refuses a fetch of offsets. A client that sends neither member id nor epoch may read them."""
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
    """Expired commits of topics that no member subscribes to."""
    subscribed = group.subscribed_topics()
    return [
        place
        for place, commit in commits.items()
        if place[0] not in subscribed and now_ms - commit.commit_timestamp_ms >= retention_ms
    ]
