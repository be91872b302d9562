"""Finds the bytes of a read, and the record for a timestamp.

This module decides where a read starts and ends. A read returns whole batches, all below ``upto``; the first one is whole even
past ``max_bytes`` if the caller asks for at least one (KIP-74). Batches are not parsed: a boundary comes from the recent batches
that the active segment remembers, else from the offset index (then the read may be up to one index interval shorter than asked
for), and only for a longer batch is the header read. A read may begin inside a batch: clients filter. A read ends before a known
rotten range; one that would begin in it is CORRUPT_MESSAGE.

A read never crosses segments. ``read`` and the look-ups only read what appends do not change, so they may run in a thread.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from tidelog.model.errors import ErrorCode
from tidelog.model.ports import FileSlice
from tidelog.records.batch import CorruptBatch, read_header
from tidelog.records.record import iter_records
from tidelog.storage.batch_span import BatchSpan
from tidelog.storage.index import AbortedTransaction, CorruptIndex
from tidelog.storage.log_view import LogView
from tidelog.storage.rotten_range import next_rotten, rotten_with
from tidelog.storage.segment import LogSegment
from tidelog.storage.segments import base_offset

SEARCHES = 5
"""Attempts of a search by time; each may lose its segment to retention or compaction."""


class ReadResult:
    """``slice``: the bytes, None when there are none. ``error``: NONE, OFFSET_OUT_OF_RANGE, or CORRUPT_MESSAGE for an offset
    in a rotten range."""

    __slots__ = ("error", "slice")

    def __init__(self, error: ErrorCode, file_slice: FileSlice | None) -> None:
        self.error = error
        self.slice = file_slice


_EMPTY = ReadResult(ErrorCode.NONE, None)
_OUT_OF_RANGE = ReadResult(ErrorCode.OFFSET_OUT_OF_RANGE, None)
_CORRUPT = ReadResult(ErrorCode.CORRUPT_MESSAGE, None)


class TimestampOffset(NamedTuple):
    """A record found by time: its timestamp in ms, its offset, and its leader epoch."""

    timestamp: int
    offset: int
    leader_epoch: int


def read(log: LogView, offset: int, max_bytes: int, *, upto: int, min_one: bool) -> ReadResult:
    """Reads from ``offset``. ``upto`` is exclusive and at most the log's end. StorageFailure when the dir fails."""
    files = log.files
    if files.failure is not None:
        raise files.failure
    if offset < log.log_start_offset or offset > files.end_offset:
        return _OUT_OF_RANGE
    if offset >= upto or (max_bytes <= 0 and not min_one):
        return _EMPTY
    active = files.segments.active
    try:
        if offset >= active.base_offset:
            return read_segment(active, offset, max_bytes, upto, min_one) or _EMPTY
        number = log.segment_index(offset)
        segments = log.segments
        while number < len(segments):
            segment = segments[number]
            if segment.base_offset >= upto:
                break
            found = read_segment(segment, offset, max_bytes, upto, min_one)
            if found is not None:
                return found
            # Compaction or a gap in the leader's log left nothing at or past the offset here: try the next segment.
            number += 1
    except OSError as problem:
        raise log.fail(f"read of {log.dir} at offset {offset}", problem) from problem
    return _EMPTY


def read_segment(segment: LogSegment, offset: int, max_bytes: int, upto: int, min_one: bool) -> ReadResult | None:
    """Reads within one segment; None when it has nothing at or past ``offset`` below ``upto``."""
    if segment.rotten and rotten_with(segment.rotten, offset) is not None:
        return _CORRUPT
    start = segment.recent_position(offset)
    if start < 0:
        start = segment.position_of(offset)
    end = segment.size if upto >= segment.next_offset else segment.position_of(upto)
    if segment.rotten and (rotten := next_rotten(segment.rotten, start)) is not None and rotten.position < end:
        if rotten.position == start:
            return _CORRUPT
        end = rotten.position
    if start >= end:
        breaks_off = start >= segment.size and offset < segment.next_offset and _breaks_off(segment, offset)
        return _CORRUPT if breaks_off else None
    if end - start > max_bytes:
        limit = start + max_bytes
        end = min(segment.boundary_within(start, limit), end)
        if end > limit and not min_one:
            return _EMPTY
    return ReadResult(ErrorCode.NONE, FileSlice(segment.file, start, end - start))


def _breaks_off(segment: LogSegment, offset: int) -> bool:
    """Whether a batch after ``offset`` is followed by neither another batch nor the segment's end. Those bytes are damaged,
    and their records must not be skipped silently."""
    position, _ = segment.offset_index().entry_at_or_before(offset)
    while (span := segment.span_at(position)) is not None:
        position = span.end
    return position < segment.size


def aborted_transactions(log: LogView, start: int, end: int) -> list[AbortedTransaction]:
    """Entries that overlap [start, end). Segments are read from the one that holds ``start`` until an entry shows that
    everything before ``end`` was decided when it was written (KIP-98). Only segments with an abort are read, and only entries
    whose marker lies at or past ``start``: the time does not grow with the log."""
    found: list[AbortedTransaction] = []
    aborting = log.aborting
    if not aborting:
        return found
    first = bisect_left(aborting, log.segment_for(start).base_offset, key=base_offset)
    for segment in islice(aborting, first, None):
        try:
            entries = segment.transactions()
        except (OSError, CorruptIndex) as problem:
            # Without it a reader of committed data would get aborted records.
            raise log.fail(f"transaction index of segment {segment.base_offset} in {log.dir}", problem) from problem
        for entry in islice(entries, bisect_left(entries, start, key=_marker_offset), None):
            if entry.first_offset < end:
                found.append(entry)
            if entry.last_stable_offset >= end:
                return found
    return found


def may_block(log: LogView, offset: int, *, committed: bool = False) -> bool:
    """Whether ``read`` would open files and load an index; then call ``warm_up`` in a thread first. ``committed``: also
    whether ``aborted_transactions`` would, in the first segments that it reads; it seldom reads more."""
    if offset < log.active.base_offset and not log.segment_for(offset).indexes_loaded():
        return True
    return committed and bool(log.aborting) and not _aborts_are_loaded(log, offset)


def _aborts_are_loaded(log: LogView, offset: int) -> bool:
    """Whether the transaction indexes that a read at ``offset`` needs first are in memory."""
    first = bisect_left(log.aborting, log.segment_for(offset).base_offset, key=base_offset)
    return all(segment.aborted.loaded for segment in islice(log.aborting, first, first + 2))


def end_of_read(log: LogView, fetch_offset: int, read: FileSlice, upto: int) -> int:
    """An offset after the end of the bytes read, at most ``upto``; limits the list of aborted transactions to the read."""
    segment = log.active
    if read.file is not segment.file:
        for segment in islice(log.segments, log.segment_index(fetch_offset), None):
            if segment.file is read.file:
                break
        else:
            return upto
    return min(upto, max(segment.end_offset_at(read.position + read.length), fetch_offset + 1))


def aborted_in(log: LogView, fetch_offset: int, read: FileSlice, upto: int) -> list[AbortedTransaction]:
    """The aborted transactions that overlap the bytes read."""
    return aborted_transactions(log, fetch_offset, end_of_read(log, fetch_offset, read, upto))


def _marker_offset(entry: AbortedTransaction) -> int:
    return entry.last_offset


def warm_up(log: LogView, offset: int, *, committed: bool) -> None:
    """Loads what ``read`` at ``offset`` needs, and with ``committed`` what ``aborted_transactions`` needs. Blocks: run it in a
    thread. Raises nothing: the read itself will meet a failing disk, and a segment deleted meanwhile does not matter here."""
    with suppress(OSError, CorruptIndex):
        segments = log.segments[log.segment_index(offset) :]
        for segment in segments:
            if read_segment(segment, offset, 1, log.log_end_offset, True) is not None:
                break
        for segment in log.aborting if committed else ():
            if segment.base_offset >= segments[0].base_offset:
                segment.transactions()


def offset_for_timestamp(log: LogView, timestamp: int) -> TimestampOffset | None:
    """The first record at or past the log start whose timestamp is at least ``timestamp``. Reads batches: run it in a thread."""
    return _searched(log, lambda: _offset_for_timestamp(log, timestamp))


def max_timestamp_offset(log: LogView) -> TimestampOffset | None:
    """The first record with the greatest timestamp in the log; None without any. Reads batches: run it in a thread."""

    def search() -> TimestampOffset | None:
        greatest = max((segment.largest_timestamp()[0] for segment in log.segments if segment.size), default=-1)
        return _offset_for_timestamp(log, greatest) if greatest >= 0 else None

    return _searched(log, search)


def _searched(log: LogView, search: Callable[[], TimestampOffset | None]) -> TimestampOffset | None:
    """The result of ``search``. If retention or compaction removes a segment meanwhile, it restarts with the current ones.
    StorageFailure when the disk fails."""
    for attempt in range(SEARCHES):
        try:
            return search()
        except FileNotFoundError as problem:
            if attempt == SEARCHES - 1:
                raise log.fail(f"search by time in {log.dir}", problem) from problem
        except OSError as problem:
            raise log.fail(f"search by time in {log.dir}", problem) from problem
    raise AssertionError("the last attempt returns or raises")


def _offset_for_timestamp(log: LogView, timestamp: int) -> TimestampOffset | None:
    for segment in list(log.segments):
        if segment.size and segment.largest_timestamp()[0] >= timestamp and segment.next_offset > log.log_start_offset:
            found = _first_at_or_after(segment, timestamp, log.log_start_offset)
            if found is not None:
                return found
    return None


def _first_at_or_after(segment: LogSegment, timestamp: int, start_offset: int) -> TimestampOffset | None:
    span = segment.find(max(segment.time_index().offset_before(timestamp), start_offset))
    while span is not None:
        if span.max_timestamp >= timestamp:
            found = _record_at_or_after(segment, span, timestamp, start_offset)
            if found is not None:
                return found
        span = segment.span_at(span.end)
    return None


def _record_at_or_after(segment: LogSegment, span: BatchSpan, timestamp: int, start_offset: int) -> TimestampOffset | None:
    batch = segment.file.read(span.position, span.end - span.position)
    try:
        header = read_header(batch)
        for record in iter_records(batch, header):
            if record.timestamp >= timestamp and record.offset >= start_offset:
                return TimestampOffset(record.timestamp, record.offset, header.leader_epoch)
    except CorruptBatch:
        return None
    return None
