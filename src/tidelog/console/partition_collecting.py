"""Collects the facts of partitions that a group reads: leaders, replicas, offsets, transactions, markers.

Committed offsets are read before the ends, so that no lag is negative because a consumer was quicker.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tidelog.client.admin import transactions
from tidelog.client.admin.configs import describe as describe_configs
from tidelog.client.admin.results import ResourceType
from tidelog.client.admin.topics import check, list_offsets
from tidelog.client.admin.topics import topics as topics_call
from tidelog.client.calls import Ask, Call, Each, Node, Partition
from tidelog.client.connection import UnsupportedByBroker
from tidelog.client.failures import NoConnection
from tidelog.console.group_facts import HeldBy, PartitionFacts
from tidelog.console.log_collecting import fetched, log_ends
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from tidelog.model.ports import Buffer
from tidelog.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from tidelog.records.batch import CorruptBatch, iter_headers

READ_COMMITTED: Final = 1
MIN_ISR: Final = "min.insync.replicas"
RETENTION: Final = "retention.ms"
CLEANUP: Final = "cleanup.policy"
MOST_MARKERS: Final = 8
"""A longer lag is not looked at: it has records."""
MOST_LOOKED_AT: Final = 50
"""Partitions."""
MARKER_BYTES: Final = 16_384


@dataclass(frozen=True, slots=True)
class Topics:
    """What the metadata say of some topics. ``all_names`` is empty unless one is missing."""

    partitions: Mapping[Partition, PartitionFacts]
    ids: Mapping[str, bytes]
    missing: frozenset[str]
    all_names: frozenset[str]
    counts: Mapping[str, int]
    """Partitions of each."""


def topics_of(names: Iterable[str], wanted: Collection[Partition] | None = None) -> Call[Topics]:
    """These topics with their partitions, all or the wanted ones, without offsets."""
    names = sorted(names)
    described = (yield from topics_call(names)) if names else []
    missing = frozenset(topic.name or "" for topic in described if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    everything = (yield from topics_call(None)) if missing else []
    partitions: dict[Partition, PartitionFacts] = {}
    for topic in described:
        if topic.error_code != ErrorCode.NONE or not topic.name:
            continue
        least, retention = yield from _settings(topic.name)
        for part in topic.partitions:
            at = (topic.name, part.partition_index)
            if wanted is None or at in wanted:
                sound = PartitionFacts(part.leader_id, tuple(part.replica_nodes), tuple(part.isr_nodes), least)
                partitions[at] = replace(sound, retention_ms=retention)
    ids = {topic.name or "": topic.topic_id for topic in described}
    counts = {topic.name or "": len(topic.partitions) for topic in described if topic.error_code == ErrorCode.NONE}
    return Topics(partitions, ids, missing, frozenset(topic.name or "" for topic in everything), counts)


def _settings(topic: str) -> Call[tuple[int, int | None]]:
    """min.insync.replicas, and retention.ms where it removes records; 1 and None where the configuration may not be read."""
    try:
        found = yield from describe_configs(ResourceType.TOPIC, topic, [MIN_ISR, RETENTION, CLEANUP])
    except KafkaError:
        return 1, None
    values = {name: entry.value or "" for name, entry in found.items()}
    removes = "delete" in values.get(CLEANUP, "")
    return int(values.get(MIN_ISR) or 1), int(values[RETENTION]) if removes and values.get(RETENTION) else None


def with_offsets(partitions: Mapping[Partition, PartitionFacts]) -> Call[dict[Partition, PartitionFacts]]:
    """With the ends of their logs. A leader that cannot be reached leaves its partitions without, and says why."""
    led: dict[int, list[Partition]] = {}
    for at, part in partitions.items():
        if part.leader >= 0:
            led.setdefault(part.leader, []).append(at)
    calls = [_ends(leader, ats, [at for at in ats if len(partitions[at].replicas) > 1]) for leader, ats in led.items()]
    answers = (yield Each(calls)) if calls else []
    found = dict(partitions)
    for ats, answer in zip(led.values(), answers, strict=True):
        for at in ats:
            if isinstance(answer, str):
                found[at] = replace(found[at], unreachable=answer)
            else:
                starts, stable, ends, log_ends = answer
                found[at] = replace(
                    found[at],
                    start=_offset(starts, at),
                    stable=_offset(stable, at),
                    end=_offset(ends, at),
                    log_end=log_ends.get(at),
                )
    held = [at for at, part in found.items() if part.stable is not None and part.end is not None and part.stable < part.end]
    holders = (yield from _holders({at: found[at] for at in held})) if held else {}
    return {at: replace(part, held_by=holders.get(at)) for at, part in found.items()}


def _ends(leader: int, ats: Sequence[Partition], several: Sequence[Partition]) -> Call[tuple[Mapping[Partition, Any], ...] | str]:
    """Starts, ends for readers of committed records, ends, and ends of the logs with ``several`` replicas, of partitions with one
    leader; a text: it cannot be reached."""
    try:
        starts = yield from list_offsets(dict.fromkeys(ats, EARLIEST_TIMESTAMP))
        stable = yield from list_offsets(dict.fromkeys(ats, LATEST_TIMESTAMP), READ_COMMITTED)
        ends = yield from list_offsets(dict.fromkeys(ats, LATEST_TIMESTAMP))
        return starts, stable, ends, (yield from log_ends(leader, several))
    except NoConnection as problem:
        return str(problem)


def without_markers(
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
        except (KafkaError, UnsupportedByBroker, NoConnection):
            break  # it takes READ on the topic, which one who may describe a group need not have
        found[at] = replace(partitions[at], only_markers=only)
    return found


def _only_markers(at: Partition, part: PartitionFacts, topic_id: bytes) -> Call[bool]:
    records = yield from fetched(at, part.leader, topic_id, part.committed or 0, MARKER_BYTES)
    return markers_alone(records, part.committed or 0, part.end or 0)


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
    except (KafkaError, UnsupportedByBroker, NoConnection):
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
