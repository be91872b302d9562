"""What only a follower does to its log: append a leader's batches as they are, and truncate where the two diverged.

Decided here: which of a leader's batches are taken (section 3.1: none from a newer epoch than the fetch was made in,
KAFKA-18723), and in which order the parts of a log go back when its end does. Truncation must find no flush job under way: the
job would write indexes and snapshots of what is being undone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.records.batch import BatchHeader
from tidelog.storage.flush import sync_cut
from tidelog.storage.index import TimeIndex
from tidelog.storage.producer_state import SNAPSHOT_SUFFIX
from tidelog.storage.replay import rebuild_producers, snapshot_offsets
from tidelog.storage.segment import TXN_INDEX_SUFFIX, LogSegment, file_stem
from tidelog.storage.validation import validate_replicated

if TYPE_CHECKING:
    from tidelog.storage.log import UnifiedLog


def append(log: UnifiedLog, records: memoryview, leader_epoch: int, now_ms: int) -> int:
    """Whole batches from the log's end on; the new log end. A batch cut off at the end is left for the next fetch.

    KafkaError CORRUPT_MESSAGE or INVALID_RECORD for what a leader must not send; StorageFailure when the dir is lost.
    """
    if log.failure is not None:
        raise log.failure
    verdict = validate_replicated(records, log.log_end_offset)
    if verdict.error:
        raise KafkaError(verdict.error, f"{log.topic_partition}: {verdict.message}")
    run: list[BatchHeader] = []
    run_bytes = 0
    for header in verdict.headers:
        if header.leader_epoch > leader_epoch:
            break
        if header.leader_epoch > log.leader_epochs.latest:
            log.leader_epochs.assign(header.leader_epoch, header.base_offset)
        if log.must_roll(header, now_ms, after_bytes=run_bytes):
            _write(log, records, run)
            run, run_bytes = [], 0
            log.roll(now_ms, at_least=header.base_offset)
        run.append(header)
        run_bytes += header.size
    _write(log, records, run)
    return log.log_end_offset


def _write(log: UnifiedLog, records: memoryview, run: list[BatchHeader]) -> None:
    """A run of batches that belong into the active segment, with one write."""
    if not run:
        return
    first, last = run[0], run[-1]
    segment = log.active
    try:
        segment.file.write(segment.size, records[first.position : last.position + last.size])
    except OSError as problem:
        raise log.fail(f"append to {segment.path('.log')}", problem) from problem
    interval = log.config.index_interval_bytes
    for header in run:
        segment.note_batch(header.size, header.base_offset, header.last_offset, header.max_timestamp, interval)
        log.log_end_offset = header.last_offset + 1
        if header.producer_id >= 0:
            log.note_producer(records, header, segment)


Deferred = list[Callable[[], None]]
"""Syncs that have to be done before anything is appended."""


def truncate_to(log: UnifiedLog, offset: int, now_ms: int, deferred: Deferred | None = None) -> bool:
    """Drops every batch that reaches ``offset``; False when the log ends there or before. Below the first segment: everything.

    Blocks for a sync, unless only the active segment is cut and ``deferred`` takes it: then it is to be called, in any thread,
    before the next append. A recovery point checkpointed before may lie in a segment that is gone: ``LogManager.truncate`` sees
    to that (the active segment is read whole after a crash).
    """
    assert not log.flush_in_flight, f"{log.topic_partition}: truncation while a flush job is under way"
    if log.failure is not None:
        raise log.failure
    if offset < 0:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"{log.topic_partition}: asked to truncate to {offset}; offsets start at 0"
        )
    if offset >= log.log_end_offset:
        return False
    if offset < log.segments[0].base_offset:
        truncate_fully_and_start_at(log, offset, now_ms)
        return True
    try:
        keep = log.segment_index(offset) + 1
        for segment in reversed(log.segments[keep:]):
            _remove(log, segment)
        removed = _remove_snapshots(log, offset) or keep < len(log.segments)
        if removed:
            # Later segments and states are gone for good before the cut: what comes back from them must not follow it.
            log.fs.sync_dir(log.dir)
        log.segments = log.segments[:keep]
        log.aborting = [one for one in log.aborting if one in log.segments]
        segment = log.active = log.segments[-1]
        log.forget_unsealed(segment)
        cut_segment(segment, offset, deferred)
        log.log_end_offset = segment.next_offset
        _move_back(log, log.log_end_offset)
        _remove_snapshots(log, log.log_end_offset)
        rebuild_producers(log, now_ms, log.fs.listdir(log.dir))
    except OSError as problem:
        raise log.fail(f"truncation of {log.dir} to {offset}", problem) from problem
    return True


def truncate_fully_and_start_at(log: UnifiedLog, offset: int, now_ms: int) -> None:
    """Empties the log; it goes on at ``offset``."""
    assert not log.flush_in_flight, f"{log.topic_partition}: truncation while a flush job is under way"
    if log.failure is not None:
        raise log.failure
    try:
        for segment in reversed(log.segments):
            _remove(log, segment)
        _remove_snapshots(log, -1)
        log.fs.sync_dir(log.dir)
        log.segments = [LogSegment.create(log.fs, log.dir, offset, now_ms)]
    except OSError as problem:
        raise log.fail(f"truncation of {log.dir}", problem) from problem
    log.active = log.segments[0]
    log.aborting = []
    log.leader_epochs.clear()
    log.producers.clear(offset)
    log.log_start_offset = log.log_end_offset = offset
    log.high_watermark = log.recovery_point = offset
    log.forget_pending_snapshots(-1)
    log.names_synced = False


def _remove(log: UnifiedLog, segment: LogSegment) -> None:
    log.forget_unsealed(segment)
    segment.remove_files()
    log.names_synced = False


def _move_back(log: UnifiedLog, end: int) -> None:
    log.leader_epochs.truncate_from_end(end)
    log.recovery_point = min(log.recovery_point, end)
    log.log_start_offset = min(log.log_start_offset, end)
    log.high_watermark = min(log.high_watermark, end)
    log.forget_pending_snapshots(end)


def _remove_snapshots(log: UnifiedLog, above: int) -> bool:
    gone = [offset for offset in snapshot_offsets(log.fs.listdir(log.dir)) if offset > above]
    for offset in gone:
        log.fs.remove(f"{log.dir}/{file_stem(offset)}{SNAPSHOT_SUFFIX}")
    return bool(gone)


def cut_segment(segment: LogSegment, offset: int, deferred: Deferred | None = None) -> None:
    """Drops every batch of a segment that reaches ``offset``; it is the active one from now on, and its indexes agree: those
    in memory, and the files when it is sealed.

    When ``offset`` lies inside a batch, the whole batch goes, and the segment ends where that began: a leader sends it whole.
    """
    span = segment.find(offset)
    segment.largest_timestamp()
    segment.sealed = False
    if span is None:
        segment.next_offset = min(segment.next_offset, offset)
        segment.forget_recent()
        return
    index, times = segment.offset_index(), segment.time_index()
    segment.file.truncate(span.position)
    # Before anything is written over it: were the cut lost and the write not, old batches would follow new ones.
    if deferred is None:
        sync_cut(segment)
    else:
        deferred.append(partial(sync_cut, segment))
    segment.size = span.position
    segment.rotten = tuple(each for each in segment.rotten if each.end <= span.position)
    segment.next_offset = min(span.base_offset, offset)
    index.truncate_to_position(span.position)
    times.truncate_to_offset(segment.next_offset)
    _rewind_time(segment, times)
    segment.aborted.cut(segment.file_system, segment.path(TXN_INDEX_SUFFIX), segment.next_offset)
    segment.forget_recent()
    segment.bytes_since_index_entry = 0
    segment.index_entries = len(index)
    if segment.size == 0:
        segment.first_timestamp = None


def _rewind_time(segment: LogSegment, times: TimeIndex) -> None:
    """The greatest timestamp of what is left: the last entry's, or that of a batch after it."""
    segment.max_timestamp, segment.max_timestamp_offset = times.last()
    span = segment.find(segment.max_timestamp_offset)
    while span is not None:
        if span.max_timestamp > segment.max_timestamp:
            segment.max_timestamp, segment.max_timestamp_offset = span.max_timestamp, span.last_offset
        span = segment.span_at(span.end)
