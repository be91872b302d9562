"""When subscribed patterns are resolved, and how the result is stored.

A new pattern is checked immediately and resolved right after the heartbeat that brought it, as a separate event: the group's
epoch rises when the topics are known. All patterns of a group are resolved together, at most every ten seconds: when one is not
resolved yet, when topics were created since, or when the refresh interval has passed. They match the topics that the member whose
heartbeat caused it may describe; the whole group gets the result. Source: KIP-848.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from enum import Enum

from tidelog.coordinator.group.consumer.consumer_group import NOT_RESOLVED, ConsumerGroup, ConsumerMember, ResolvedRegex
from tidelog.coordinator.group.consumer.consumer_records import epoch_record, regex_record, regex_tombstone
from tidelog.coordinator.group.consumer.subscription_regex import InvalidRegex, resolve
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.records import GroupRecord
from tidelog.coordinator.group.topic_metadata import Describable
from tidelog.model.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)
LEAST_INTERVAL_MS = 10_000


class RegexChange(Enum):
    """What a heartbeat did to its member's pattern."""

    NONE = "none"
    UPDATED = "updated"
    UPDATED_AND_RESOLVED = "updated and resolved"


def check_regex(pattern: str) -> None:
    """KafkaError INVALID_REGULAR_EXPRESSION unless the pattern is valid."""
    try:
        resolve(pattern, ())
    except InvalidRegex as error:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, error.message) from error


def change_regex(
    c: Coordination,
    group: ConsumerGroup,
    member: ConsumerMember,
    updated: ConsumerMember,
    records: list[GroupRecord],
    now_ms: int,
) -> tuple[RegexChange, bool]:
    """How the member's new pattern affects the group, and whether patterns must be resolved after this heartbeat."""
    change = RegexChange.NONE
    refresh = False
    if member.regex != updated.regex:
        change = RegexChange.UPDATED
        if member.regex and group.subscribers(member.regex) == 1:
            records.append(regex_tombstone(group.group_id, member.regex))
        if not updated.regex:
            change = RegexChange.UPDATED_AND_RESOLVED
        elif group.subscribers(updated.regex) == 0:
            check_regex(updated.regex)
            refresh = True
        elif updated.regex in group.regexes:
            change = RegexChange.UPDATED_AND_RESOLVED
    return change, _needs_refresh(c, group, updated, refresh, now_ms)


def _needs_refresh(c: Coordination, group: ConsumerGroup, updated: ConsumerMember, refresh: bool, now_ms: int) -> bool:
    if not (refresh or updated.regex or group.regexes):
        # Members with patterns check this with their own heartbeats.
        return False
    patterns = {member.regex for member in group.members_with(updated).values() if member.regex}
    if not patterns or c.resolves_soon(group.group_id):
        return False
    last = next(iter(group.regexes.values()), None)
    if last is not None and now_ms <= last.timestamp_ms + LEAST_INTERVAL_MS:
        return False
    refresh = refresh or len(patterns) != len(group.regexes)
    refresh = refresh or (last is not None and last.version < c.topics_created_version)
    return refresh or (last is not None and now_ms > last.timestamp_ms + c.settings.consumer_regex_refresh_interval_ms)


def dropped_regexes(group: ConsumerGroup, leaving: list[ConsumerMember]) -> list[str]:
    """Patterns without a subscriber once these members have left."""
    patterns = dict.fromkeys(member.regex for member in leaving if member.regex)
    return [pattern for pattern in patterns if group.subscribers(pattern) == sum(member.regex == pattern for member in leaving)]


def refresh_records(
    c: Coordination, group: ConsumerGroup, now_ms: int, describable: Describable | None = None
) -> list[GroupRecord]:
    """Resolves the group's patterns; the epoch rises if their topics changed."""
    names: Collection[str] = list(c.topics.names())
    if describable is not None:
        names = describable(names)
    records: list[GroupRecord] = []
    subscribed = {topic for member in group.members.values() for topic in member.topics}
    changed = False
    for pattern in dict.fromkeys(member.regex for member in group.members.values() if member.regex):
        try:
            topics = resolve(pattern, names)
        except InvalidRegex:
            # The pattern was valid for the implementation that stored it.
            topics = frozenset()
        record = regex_record(group.group_id, pattern, ResolvedRegex(topics, c.topics.version, now_ms))
        if record.size > c.settings.max_record_bytes:
            log.warning(
                "group %s: the %d topics that the pattern %.80s matches take %d bytes, and %d fit into a record; it counts as "
                "matching none. Subscribe with several patterns, or by names.",
                *(group.group_id, len(topics), pattern, record.size, c.settings.max_record_bytes),
            )
            topics = frozenset()
            record = regex_record(group.group_id, pattern, ResolvedRegex(topics, c.topics.version, now_ms))
        subscribed |= topics
        changed = changed or topics != group.regexes.get(pattern, NOT_RESOLVED).topics
        records.append(record)
    # Patterns without a subscriber, for example of a static member that came back under another member id.
    records += [regex_tombstone(group.group_id, pattern) for pattern in group.regexes if not group.subscribers(pattern)]
    metadata_hash = c.topics.hash_of(subscribed)
    if records and (changed or metadata_hash != group.metadata_hash):
        records.append(epoch_record(group.group_id, group.epoch + 1, metadata_hash))
        group.metadata_checked = True
    return records
