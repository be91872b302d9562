"""Collects a share group through Kafka's protocol: members, start offsets and lag, settings, the topic of its state."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tidelog.client.admin import share_groups
from tidelog.client.admin.configs import describe as describe_configs
from tidelog.client.admin.group_results import ShareMember
from tidelog.client.admin.results import ConfigEntry, ResourceType
from tidelog.client.admin.topics import check
from tidelog.client.admin.topics import topics as topics_call
from tidelog.client.calls import Ask, Call, Coordinator, Locate, Partition
from tidelog.client.connection import UnsupportedByBroker
from tidelog.console.group_facts import SHARE, MemberFacts, Sample, ShareLimits, ShareProgress
from tidelog.console.partition_collecting import topics_of, with_offsets
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)

STATE_TOPIC: Final = "__share_group_state"
UNKNOWN: Final = -1
LIMIT: Final = "share.delivery.count.limit"
LOCKS: Final = "share.partition.max.record.locks"
LOCK_MS: Final = "share.record.lock.duration.ms"
RESET: Final = "share.auto.offset.reset"
ISOLATION: Final = "share.isolation.level"
MAX_SIZE: Final = "group.share.max.size"
MAX_SESSIONS: Final = "group.share.max.share.sessions"
STATE_MIN_ISR: Final = "min.insync.replicas"


def share_sample(group_id: str, now_ms: int) -> Call[Sample]:
    """The whole sample. KafkaError, such as GROUP_ID_NOT_FOUND."""
    group = yield from share_groups.describe(group_id)
    known = yield from _progress(group_id)
    members = tuple(map(_member, group.members))
    read = {at for member in members for at in member.assignment}
    subscribed = {name for member in members for name in member.subscription}
    there = yield from topics_of(subscribed | {topic for topic, _ in (*known, *read)})
    nothing = ShareProgress()
    partitions = {
        at: replace(part, committed=known.get(at, nothing).start, share=known.get(at, nothing))
        for at, part in there.partitions.items()
        if at[0] in subscribed or at in known
    }
    return Sample(
        now_ms,
        group.state,
        SHARE,
        "share",
        group.epoch,
        members,
        (yield from with_offsets(partitions)),
        there.missing,
        there.all_names,
        counts=there.counts,
        limits=(yield from _limits(group_id)),
        state_topic_fault=(yield from _state_topic_fault()),
    )


def _member(found: ShareMember) -> MemberFacts:
    return MemberFacts(
        found.member_id, found.client_id, found.host, None, frozenset(found.assignment), None, frozenset(found.topics)
    )


def _progress(group_id: str) -> Call[dict[Partition, ShareProgress]]:
    """Each partition that the group's coordinator knows; those of which the share coordinator has no answer with its error."""
    request = DescribeShareGroupOffsetsRequest(groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)])
    response = yield Ask(request, Coordinator(group_id), code_of=lambda answer: int(answer.groups[0].error_code))
    (found,) = response.groups
    check(found.error_code, found.error_message)
    return {
        (topic.topic_name, part.partition_index): ShareProgress(True, ErrorCode(part.error_code).name)
        if part.error_code != ErrorCode.NONE
        else ShareProgress(True, None, _known(part.start_offset), _known(part.lag))
        for topic in found.topics
        for part in topic.partitions
    }


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value


def _limits(group_id: str) -> Call[ShareLimits]:
    """Kafka's defaults where settings may not be read."""
    usual = ShareLimits()
    try:
        own = yield from describe_configs(ResourceType.GROUP, group_id, (LIMIT, LOCKS, LOCK_MS, RESET, ISOLATION))
    except (KafkaError, UnsupportedByBroker):
        own = {}
    limits = ShareLimits(
        _number(own, LIMIT, usual.deliveries),
        _number(own, LOCKS, usual.locks),
        _number(own, LOCK_MS, usual.lock_ms),
        _text(own, RESET) or usual.reset,
        _text(own, ISOLATION) == "read_committed",
    )
    try:
        node_id, _, _ = yield Locate(Coordinator(group_id))
        broker = yield from describe_configs(ResourceType.BROKER, str(node_id), (MAX_SIZE, MAX_SESSIONS))
    except (KafkaError, UnsupportedByBroker):
        return limits
    return replace(limits, max_size=_number(broker, MAX_SIZE, 0) or None, max_sessions=_number(broker, MAX_SESSIONS, 0) or None)


def _text(found: dict[str, ConfigEntry], name: str) -> str:
    entry = found.get(name)
    return "" if entry is None else entry.value or ""


def _number(found: dict[str, ConfigEntry], name: str, default: int) -> int:
    text = _text(found, name)
    return int(text) if text.isdecimal() else default


def _state_topic_fault() -> Call[str | None]:
    """What keeps the share coordinators from storing anything, None when the topic is sound."""
    (topic,) = yield from topics_call([STATE_TOPIC])
    if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return f"{STATE_TOPIC} does not exist"
    if topic.error_code != ErrorCode.NONE:
        return None
    down = [part.partition_index for part in topic.partitions if part.leader_id < 0]
    if down:
        return f"{STATE_TOPIC}: {len(down)} of {len(topic.partitions)} partitions without a leader"
    try:
        found = yield from describe_configs(ResourceType.TOPIC, STATE_TOPIC, [STATE_MIN_ISR])
    except KafkaError:
        return None
    least = _number(found, STATE_MIN_ISR, 1)
    short = sum(len(part.isr_nodes) < least for part in topic.partitions)
    if short:
        return f"{STATE_TOPIC}: {short} of {len(topic.partitions)} partitions have fewer than {least} replicas in sync"
    return None
