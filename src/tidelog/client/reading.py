"""Reads one partition without a group, a Fetch at a time: records, without markers and what aborted transactions wrote."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidelog.client.admin import topics
from tidelog.client.calls import Ask, Call, Node
from tidelog.client.fetching import AbortedTransactions, Fetched, error_of, read_fetch
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_BROKER, ZERO_UUID, TopicPartition
from tidelog.model.ports import Buffer
from tidelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.records.batch import BatchHeader, CorruptBatch, TruncatedBatch, crc_is_valid, iter_headers
from tidelog.records.record import Record, iter_records

READ_UNCOMMITTED, READ_COMMITTED = 0, 1


class Located(NamedTuple):
    """Where a partition is read."""

    topic_id: bytes
    leader: int
    epoch: int


class Chunk(NamedTuple):
    """What one Fetch brought. ``next_offset``: where to read on; that asked for when nothing was there. ``end_offset``: the first
    offset that cannot be read yet. ``start_offset``: the first one that is in the log."""

    records: tuple[Record, ...]
    next_offset: int
    end_offset: int
    start_offset: int


def locate(names: Iterable[str]) -> Call[dict[TopicPartition, Located]]:
    """Each partition of these topics that has a leader; none of a topic that does not exist or may not be described."""
    found = yield from topics.topics(sorted(set(names)))
    return {
        TopicPartition(topic.name or "", part.partition_index): Located(
            bytes(topic.topic_id or ZERO_UUID), part.leader_id, part.leader_epoch
        )
        for topic in found
        if topic.error_code == ErrorCode.NONE
        for part in topic.partitions
        if part.leader_id != NO_BROKER
    }


class Looked(NamedTuple):
    """What lies at one offset. ``record`` None: nothing, or what no reader gets (``control``)."""

    record: Record | None
    control: bool = False
    aborted: bool = False
    """Its transaction was aborted."""


def read(
    at: TopicPartition, located: Located, offset: int, *, committed: bool, max_bytes: int, wait_ms: int
) -> Call[Chunk | ErrorCode]:
    """The records from ``offset`` on, at least one batch if there is any below the end; after ``wait_ms`` none.

    CORRUPT_MESSAGE for a batch whose checksum is wrong or that cannot be read; any other error is the broker's.
    """
    found = yield from _fetch(at, located, offset, committed, max_bytes, wait_ms)
    if isinstance(found, ErrorCode):
        return found
    try:
        records, next_offset = decoded(found.records, offset, found.aborted if committed else ())
    except CorruptBatch:
        return ErrorCode.CORRUPT_MESSAGE
    end = found.last_stable_offset if committed and found.last_stable_offset >= 0 else found.high_watermark
    return Chunk(tuple(records), next_offset, end, found.log_start_offset)


def look(at: TopicPartition, located: Located, offset: int, *, max_bytes: int) -> Call[Looked | ErrorCode]:
    """What lies at an offset below the high watermark. Errors as of ``read``."""
    found = yield from _fetch(at, located, offset, False, max_bytes, 0)
    if isinstance(found, ErrorCode):
        return found
    try:
        header = next((each for each in _whole(found.records) if _last(each) >= offset), None)
        if header is None or header.base_offset > offset:
            return Looked(None)
        if header.is_control:
            return Looked(None, control=True)
        record = next((each for each in iter_records(found.records, header) if each.offset == offset), None)
    except CorruptBatch:
        return ErrorCode.CORRUPT_MESSAGE
    if record is None or not header.is_transactional:
        return Looked(record)
    seen = yield from _fetch(at, located, offset, True, max_bytes, 0)
    if isinstance(seen, ErrorCode):
        return seen
    return Looked(record, aborted=any(who == header.producer_id and first <= offset for who, first in seen.aborted))


def _fetch(
    at: TopicPartition, located: Located, offset: int, committed: bool, max_bytes: int, wait_ms: int
) -> Call[Fetched | ErrorCode]:
    partition = FetchPartition(
        partition=at.partition, current_leader_epoch=located.epoch, fetch_offset=offset, partition_max_bytes=max_bytes
    )
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=READ_COMMITTED if committed else READ_UNCOMMITTED,
        topics=[FetchTopic(topic=at.topic, topic_id=located.topic_id, partitions=[partition])],
    )
    response = yield Ask(request, Node(located.leader))
    if response.error_code:
        return error_of(response.error_code)
    found = read_fetch(response, at, located.topic_id)
    return found if found.error == ErrorCode.NONE else found.error


def _last(header: BatchHeader) -> int:
    return header.base_offset + header.last_offset_delta


def decoded(data: Buffer, offset: int, aborted: AbortedTransactions) -> tuple[list[Record], int]:
    """The records from ``offset`` on, and the offset behind the last batch. CorruptBatch, but not for a batch that was cut off at
    the end of the answer."""
    records: list[Record] = []
    pending = deque(aborted)
    open_: set[int] = set()
    for header in _whole(data):
        if not crc_is_valid(data, header):
            raise CorruptBatch(f"the batch at offset {header.base_offset} has another checksum than its header says")
        last = _last(header)
        while pending and pending[0][1] <= last:
            open_.add(pending.popleft()[0])
        if header.is_control:
            open_.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in open_):
            records += [record for record in iter_records(data, header) if record.offset >= offset]
        offset = max(offset, last + 1)
    return records, offset


def _whole(data: Buffer) -> Iterator[BatchHeader]:
    try:
        yield from iter_headers(data)
    except TruncatedBatch:
        return
