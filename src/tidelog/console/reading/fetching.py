"""Calls that read partitions: their bounds, and records of several partitions of one leader in one Fetch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidelog.client.admin.topics import leaders, list_offsets
from tidelog.client.calls import Ask, Call, Each, Node, Partition
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, NO_OFFSET
from tidelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
CONSUMER: Final = -1
"""The replica id of clients that are not brokers."""
MAX_BYTES: Final = 4 << 20
"""Of one answer; more only where a single batch is larger (KIP-74)."""
PARTITION_BYTES: Final = 1 << 20
LOOK_MS: Final = 10_000
"""How long a broker may look for offsets in remote storage (KIP-1075)."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a partition begins and ends. ``stable``: its last stable offset. None: not known, with ``error``."""

    start: int | None = None
    stable: int | None = None
    end: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionRead:
    """The answer about one partition. ``aborted``: (producer id, first offset), of a read of committed records only."""

    error: ErrorCode
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: tuple[tuple[int, int], ...]
    records: bytes


def bounds(partitions: Iterable[Partition], known: Mapping[Partition, int] | None = None) -> Call[dict[Partition, Bounds]]:
    """The bounds of each partition; with an error for those without a leader. ``known``: the leaders, asked for without it."""
    wanted = list(partitions)
    if not wanted:
        return {}
    there = (yield from leaders(topic for topic, _ in wanted)) if known is None else known
    by_leader: dict[int, list[Partition]] = {}
    for at in wanted:
        if at in there:
            by_leader.setdefault(there[at], []).append(at)
    starts = yield from _offsets(by_leader, EARLIEST_TIMESTAMP, READ_UNCOMMITTED)
    stable = yield from _offsets(by_leader, LATEST_TIMESTAMP, READ_COMMITTED)
    ends = yield from _offsets(by_leader, LATEST_TIMESTAMP, READ_UNCOMMITTED)
    found: dict[Partition, Bounds] = {}
    for at in wanted:
        answers = [each.get(at) for each in (starts, stable, ends)]
        codes = [ErrorCode.LEADER_NOT_AVAILABLE if each is None else ErrorCode(each.error_code) for each in answers]
        wrong = next((code for code in codes if code != ErrorCode.NONE), None)
        if wrong is not None:
            found[at] = Bounds(error=wrong.name)
        else:
            start, last, end = (int(each.offset) for each in answers if each is not None)
            found[at] = Bounds(start, max(start, last), max(start, end))
    return found


def _offsets(by_leader: Mapping[int, list[Partition]], timestamp: int, isolation: int) -> Call[dict[Partition, Any]]:
    answers = yield Each([_offsets_at(leader, wanted, timestamp, isolation) for leader, wanted in by_leader.items()])
    return {
        (topic.name, part.partition_index): part for answer in answers for topic in answer.topics for part in topic.partitions
    }


def _offsets_at(leader: int, wanted: list[Partition], timestamp: int, isolation: int) -> Call[Any]:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for topic, index in wanted:
        topics.setdefault(topic, []).append(ListOffsetsPartition(partition_index=index, timestamp=timestamp))
    rows = [ListOffsetsTopic(name=name, partitions=parts) for name, parts in topics.items()]
    request = ListOffsetsRequest(replica_id=CONSUMER, isolation_level=isolation, topics=rows, timeout_ms=LOOK_MS)
    return (yield Ask(request, Node(leader)))


def positions_at(partitions: Iterable[Partition], timestamp_ms: int) -> Call[dict[Partition, int | None]]:
    """The first offset of each partition at or after a time; None where all records are older."""
    answers = yield from list_offsets(dict.fromkeys(partitions, timestamp_ms))
    return {
        at: None if each.offset == NO_OFFSET or each.error_code != ErrorCode.NONE else int(each.offset)
        for at, each in answers.items()
    }


def fetch(
    topic: str,
    topic_id: bytes,
    leader: int,
    offsets: Mapping[int, int],
    *,
    isolation: int,
    wait_ms: int = 0,
    partition_bytes: int = PARTITION_BYTES,
) -> Call[dict[int, PartitionRead]]:
    """Records from these offsets on, of partitions with the same leader. At least one whole batch comes back, if there is one."""
    parts = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=partition_bytes)
        for index, offset in offsets.items()
    ]
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=MAX_BYTES,
        isolation_level=isolation,
        topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=parts)],
    )
    answer = yield Ask(request, Node(leader))
    whole = ErrorCode(answer.error_code)
    if whole != ErrorCode.NONE:
        return {index: PartitionRead(whole, -1, -1, -1, (), b"") for index in offsets}
    return {
        part.partition_index: PartitionRead(
            ErrorCode(part.error_code),
            part.high_watermark,
            part.last_stable_offset,
            part.log_start_offset,
            tuple(sorted(((each.producer_id, each.first_offset) for each in part.aborted_transactions or ()), key=_first)),
            bytes(part.records or b""),
        )
        for found in answer.responses
        for part in found.partitions
    }


def _first(aborted: tuple[int, int]) -> int:
    return aborted[1]
