"""Collects the facts of a consumer group through Kafka's protocol, from any cluster: the calls of one sample.

Committed offsets are read before the ends, so that no lag is negative because a consumer was quicker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from tidelog.client.admin import groups, transactions
from tidelog.client.admin.configs import describe as describe_configs
from tidelog.client.admin.groups import DEAD, assigned
from tidelog.client.admin.results import ResourceType
from tidelog.client.admin.topics import check, list_offsets
from tidelog.client.admin.topics import topics as topics_call
from tidelog.client.calls import Ask, Call, Coordinator, Node, Partition
from tidelog.client.connection import UnsupportedByBroker
from tidelog.console.group_facts import HeldBy, MemberFacts, PartitionFacts, Sample
from tidelog.model.errors import ErrorCode, KafkaError, ProtocolViolation
from tidelog.model.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from tidelog.model.ports import Buffer
from tidelog.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tidelog.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tidelog.protocol.messages.describe_groups import DescribeGroupsRequest
from tidelog.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from tidelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.records.batch import CorruptBatch, iter_headers

READ_COMMITTED: Final = 1
OFFSETS_TOPIC: Final = "__consumer_offsets"
MIN_ISR: Final = "min.insync.replicas"
OTHER_TYPES: Final = ("share", "streams")
MOST_MARKERS: Final = 8
"""A longer lag is not looked at: it has records."""
MOST_LOOKED_AT: Final = 50
"""Partitions."""
MARKER_BYTES: Final = 16_384
_COORDINATOR_ERRORS: Final = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
_SCHEMA_BYTES: Final = 2


def sample(group_id: str, now_ms: int) -> Call[Sample]:
    """One sample. KafkaError: GROUP_ID_NOT_FOUND when there is no such group, or an error that is none of the coordinator's."""
    try:
        found = yield from _group(group_id, now_ms)
        settled = yield from groups.committed(group_id)
        offsets = yield from groups.committed(group_id, stable=False)
    except KafkaError as error:
        if error.code in _COORDINATOR_ERRORS:
            (topic,) = yield from topics_call([OFFSETS_TOPIC])
            gone = topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return Sample(now_ms, coordinator_error=error.code.name, no_offsets_topic=gone)
        if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
            yield from _refuse(group_id)
        raise
    wanted = {name for member in found.members for name in member.subscription}
    read = {at for member in found.members for at in member.assignment | (member.target or frozenset())}
    names = sorted(wanted | {topic for topic, _ in (*offsets, *read)})
    described = (yield from topics_call(names)) if names else []
    missing = frozenset(topic.name or "" for topic in described if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    everything = (yield from topics_call(None)) if missing else []
    partitions: dict[Partition, PartitionFacts] = {}
    for topic in described:
        if topic.error_code != ErrorCode.NONE or not topic.name:
            continue
        least = yield from _min_isr(topic.name)
        for part in topic.partitions:
            at = (topic.name, part.partition_index)
            if at in offsets or at in read:
                partitions[at] = PartitionFacts(part.leader_id, tuple(part.replica_nodes), tuple(part.isr_nodes), least)
    partitions = {
        at: replace(part, committed=offsets[at].offset, pending=at not in settled) if at in offsets else part
        for at, part in partitions.items()
    }
    ids = {topic.name or "": topic.topic_id for topic in described}
    return replace(
        found,
        partitions=(yield from _without_markers((yield from _with_offsets(partitions)), ids)),
        missing_topics=missing,
        topics=frozenset(topic.name or "" for topic in everything),
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


def _refuse(group_id: str) -> Call[None]:
    """KafkaError: GROUP_ID_NOT_FOUND with what there is, or may be, instead of a consumer group."""
    for each in (yield from groups.list_all()):
        kind = each.group_type.lower()
        if each.group_id == group_id and kind in OTHER_TYPES:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"{group_id} is a group of type {kind}, not a consumer group.")
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


# -- partitions -------------------------------------------------------------------------------------------------------------


def _min_isr(topic: str) -> Call[int]:
    """1 where the configuration may not be read."""
    try:
        found = yield from describe_configs(ResourceType.TOPIC, topic, [MIN_ISR])
    except KafkaError:
        return 1
    entry = found.get(MIN_ISR)
    return 1 if entry is None or not entry.value else int(entry.value)


def _with_offsets(partitions: Mapping[Partition, PartitionFacts]) -> Call[dict[Partition, PartitionFacts]]:
    led = [at for at, part in partitions.items() if part.leader >= 0]
    if not led:
        return dict(partitions)
    starts = yield from list_offsets(dict.fromkeys(led, EARLIEST_TIMESTAMP))
    stable = yield from list_offsets(dict.fromkeys(led, LATEST_TIMESTAMP), READ_COMMITTED)
    ends = yield from list_offsets(dict.fromkeys(led, LATEST_TIMESTAMP))
    found = {
        at: replace(part, start=_offset(starts, at), stable=_offset(stable, at), end=_offset(ends, at))
        for at, part in partitions.items()
    }
    held = [at for at, part in found.items() if part.stable is not None and part.end is not None and part.stable < part.end]
    holders = (yield from _holders({at: found[at] for at in held})) if held else {}
    return {at: replace(part, held_by=holders.get(at)) for at, part in found.items()}


def _without_markers(
    partitions: Mapping[Partition, PartitionFacts], ids: Mapping[str, bytes]
) -> Call[dict[Partition, PartitionFacts]]:
    """Says where a short lag is one of markers alone: a program that commits the offset behind its last record stays before the
    marker of that transaction."""
    found = dict(partitions)
    short = [
        at for at, part in partitions.items() if part.leader >= 0 and 0 < part.lag <= MOST_MARKERS and part.stable == part.end
    ]
    for at in sorted(short)[:MOST_LOOKED_AT]:
        try:
            only = yield from _only_markers(at, partitions[at], ids.get(at[0], b""))
        except (KafkaError, UnsupportedByBroker):
            break  # it takes READ on the topic, which one who may describe a group need not have
        found[at] = replace(partitions[at], only_markers=only)
    return found


def _only_markers(at: Partition, part: PartitionFacts, topic_id: bytes) -> Call[bool]:
    wanted = FetchPartition(partition=at[1], fetch_offset=part.committed or 0, partition_max_bytes=MARKER_BYTES)
    topic = FetchTopic(topic=at[0], topic_id=topic_id, partitions=[wanted])
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=MARKER_BYTES, topics=[topic])
    answer = yield Ask(request, Node(part.leader), code_of=lambda answer: int(answer.error_code))
    check(answer.error_code)
    (got,) = (each for topic in answer.responses for each in topic.partitions)
    check(got.error_code)
    return markers_alone(got.records or b"", part.committed or 0, part.end or 0)


def markers_alone(records: Buffer, begin: int, end: int) -> bool:
    """Whether these batches have all offsets from ``begin`` to ``end``, and none of them a record for a consumer."""
    next_offset = begin
    try:
        for header in iter_headers(records):
            if header.last_offset < begin:
                continue
            if header.records_count and not header.is_control:
                return False
            next_offset = header.next_offset
    except CorruptBatch:
        pass  # a batch that did not fit, or is older than version 2
    return next_offset >= end


def _offset(answers: Mapping[Partition, Any], at: Partition) -> int | None:
    answer = answers.get(at)
    return None if answer is None or answer.error_code != ErrorCode.NONE else int(answer.offset)


def _holders(held: Mapping[Partition, PartitionFacts]) -> Call[dict[Partition, HeldBy]]:
    """The transactions at the last stable offsets; empty where the brokers do not tell."""
    try:
        producers: dict[Partition, int | None] = {}
        for at, part in held.items():
            producers[at] = yield from _producer_at(at, part)
        ids = sorted({each for each in producers.values() if each is not None})
        listed = (yield from transactions.list_all(producer_ids=ids)) if ids else []
        names = {each.producer_id: each.transactional_id for each in listed}
        described = {}
        for known_id, name in names.items():
            described[known_id] = yield from transactions.describe(name)
    except (KafkaError, UnsupportedByBroker):
        return {}
    found: dict[Partition, HeldBy] = {}
    for at, producer_id in producers.items():
        if producer_id is None:
            continue
        known = described.get(producer_id)
        # A transaction that its coordinator has for other partitions only is not this one.
        if known is None or at not in known.partitions:
            found[at] = HeldBy(producer_id)
        else:
            found[at] = HeldBy(producer_id, known.transactional_id, known.state, known.started_ms, known.timeout_ms)
    return found


def _producer_at(at: Partition, part: PartitionFacts) -> Call[int | None]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=at[0], partition_indexes=[at[1]])])
    response = yield Ask(request, Node(part.leader))
    found = response.topics[0].partitions[0]
    check(found.error_code, found.error_message)
    return next((each.producer_id for each in found.active_producers if each.current_txn_start_offset == part.stable), None)
