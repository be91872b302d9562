"""Collects the facts of a group through Kafka's protocol, from any cluster: the calls of one sample.

Committed offsets are read before the ends, so that no lag is negative because a consumer was quicker.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tidelog.client.admin import groups
from tidelog.client.admin.groups import DEAD, assigned
from tidelog.client.admin.topics import check
from tidelog.client.admin.topics import topics as topics_call
from tidelog.client.calls import Ask, Call, Coordinator, Partition
from tidelog.client.connection import UnsupportedByBroker
from tidelog.client.failures import NoConnection
from tidelog.console.group_facts import SHARE, STREAMS, MemberFacts, Sample
from tidelog.console.log_collecting import with_epochs, with_next
from tidelog.console.partition_collecting import topics_of, with_offsets, without_markers
from tidelog.console.share_collecting import share_sample
from tidelog.console.streams_collecting import streams_group
from tidelog.model.errors import ErrorCode, KafkaError, ProtocolViolation
from tidelog.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tidelog.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tidelog.protocol.messages.describe_groups import DescribeGroupsRequest

OFFSETS_TOPIC: Final = "__consumer_offsets"
_COORDINATOR_ERRORS: Final = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
_SCHEMA_BYTES: Final = 2


def sample(group_id: str, now_ms: int) -> Call[Sample]:
    """One sample of a group of any type. KafkaError: GROUP_ID_NOT_FOUND when there is no such group, or an error that is none of
    the coordinator's. NoConnection: no broker answers at all."""
    try:
        return (yield from _sample(group_id, now_ms))
    except KafkaError as error:
        if error.code not in _COORDINATOR_ERRORS:
            raise
        return (yield from _without_coordinator(Sample(now_ms, coordinator_error=error.code.name)))
    except NoConnection as problem:
        return (yield from _without_coordinator(Sample(now_ms, coordinator_error=str(problem), out_of_reach=True)))


def _without_coordinator(found: Sample) -> Call[Sample]:
    """With what is wrong with the topic of the coordinators."""
    (topic,) = yield from topics_call([OFFSETS_TOPIC])
    gone = topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    down = tuple(sorted(part.partition_index for part in topic.partitions if part.leader_id < 0))
    return replace(found, no_offsets_topic=gone, leaderless_offsets=down)


def members(group_id: str, now_ms: int) -> Call[Sample | None]:
    """The members of a consumer group alone: a cheap look. None for a group of another type."""
    try:
        return (yield from _group(group_id, now_ms))
    except (KafkaError, NoConnection):
        return None


def _sample(group_id: str, now_ms: int) -> Call[Sample]:
    try:
        found = yield from _group(group_id, now_ms)
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        kind = yield from _kind(group_id)
        if kind == SHARE:
            return (yield from share_sample(group_id, now_ms))
        found = yield from streams_group(group_id, now_ms)
    settled = yield from groups.committed(group_id)
    offsets = yield from groups.committed(group_id, stable=False)
    wanted = {name for member in found.members for name in member.subscription}
    if found.streams is not None:
        wanted |= {*found.streams.sources, *found.streams.internal}
    read = {at for member in found.members for at in member.assignment | (member.target or frozenset())}
    there = yield from topics_of(wanted | {topic for topic, _ in (*offsets, *read)}, {*offsets, *read})
    partitions = {
        at: replace(part, committed=offsets[at].offset, committed_epoch=offsets[at].leader_epoch, pending=at not in settled)
        if at in offsets
        else part
        for at, part in there.partitions.items()
    }
    partitions = yield from without_markers((yield from with_offsets(partitions)), there.ids)
    partitions = yield from with_next((yield from with_epochs(partitions)), there.ids)
    return replace(
        found,
        partitions=partitions,
        missing_topics=there.missing,
        topics=there.all_names,
        counts=there.counts,
    )


# -- the group --------------------------------------------------------------------------------------------------------------


def _group(group_id: str, now_ms: int) -> Call[Sample]:
    to = Coordinator(group_id)
    try:
        request = ConsumerGroupDescribeRequest(group_ids=[group_id])
        found = (yield Ask(request, to, code_of=_first_code)).groups[0]
        if found.error_code == ErrorCode.NONE:
            members = tuple(map(_of_consumer_protocol, found.members))
            return Sample(now_ms, found.group_state, "consumer", "consumer", found.group_epoch, members)
        if found.error_code not in {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION}:
            check(found.error_code, found.error_message)
    except UnsupportedByBroker:
        pass
    classic = (yield Ask(DescribeGroupsRequest(groups=[group_id]), to, code_of=_first_code)).groups[0]
    if classic.error_code == ErrorCode.GROUP_ID_NOT_FOUND or classic.group_state == DEAD:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    check(classic.error_code, classic.error_message)
    return Sample(
        now_ms, classic.group_state, "classic", classic.protocol_type, None, tuple(map(_of_classic_protocol, classic.members))
    )


def _kind(group_id: str) -> Call[str]:
    """The type of a group that is no consumer group. KafkaError: GROUP_ID_NOT_FOUND with what there may be instead."""
    for each in (yield from groups.list_all()):
        kind = each.group_type.lower()
        if each.group_id == group_id and kind in (SHARE, STREAMS):
            return kind
    raise KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Group {group_id} not found: no consumer has joined with this group.id, and it has no offsets. librdkafka's consumers "
        "join only when a topic of their subscription exists.",
    )


def _first_code(answer: Any) -> int:
    return int(answer.groups[0].error_code)


def _of_consumer_protocol(member: Any) -> MemberFacts:
    return MemberFacts(
        member.member_id,
        member.client_id,
        member.client_host,
        member.instance_id,
        _partitions(member.assignment),
        _partitions(member.target_assignment),
        frozenset(member.subscribed_topic_names),
        member.subscribed_topic_regex or None,
    )


def _partitions(assignment: Any) -> frozenset[Partition]:
    return frozenset((topic.topic_name, index) for topic in assignment.topic_partitions for index in topic.partitions)


def _of_classic_protocol(member: Any) -> MemberFacts:
    return MemberFacts(
        member.member_id,
        member.client_id,
        member.client_host,
        member.group_instance_id,
        frozenset(assigned(member.member_assignment)),
        None,
        subscribed(member.member_metadata),
    )


def subscribed(data: bytes) -> frozenset[str]:
    """The topics that a classic member subscribes to; none in another protocol than that of consumers."""
    if len(data) < _SCHEMA_BYTES:
        return frozenset()
    version = min(int.from_bytes(data[:_SCHEMA_BYTES], "big"), ConsumerProtocolSubscription.MAX_VERSION)
    try:
        decoded, _ = ConsumerProtocolSubscription.decode_from(data, _SCHEMA_BYTES, version)
    except ProtocolViolation:
        return frozenset()
    return frozenset(decoded.topics)
