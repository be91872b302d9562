"""Cuts the end off a segment where a follower's log diverged from its leader's, and removes the snapshots of that part.

``UnifiedLog.truncate_to`` decides the order in which the parts of a log are truncated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tidelog.model.ports import FileSystem
from tidelog.storage.flush_job import sync_cut
from tidelog.storage.index import TimeIndex
from tidelog.storage.producer_replay import snapshot_offsets
from tidelog.storage.producer_state import SNAPSHOT_SUFFIX
from tidelog.storage.segment import TXN_INDEX_SUFFIX, LogSegment, file_stem

Deferred = list[Callable[[], None]]
"""Syncs that must be done before the next append."""


def remove_snapshots(fs: FileSystem, directory: str, above: int) -> bool:
    """Removes producer snapshots after ``above``; returns whether there were any. Raises OSError."""
    gone = [offset for offset in snapshot_offsets(fs.listdir(directory)) if offset > above]
    for offset in gone:
        fs.remove(f"{directory}/{file_stem(offset)}{SNAPSHOT_SUFFIX}")
    return bool(gone)


def cut_segment(segment: LogSegment, offset: int, deferred: Deferred | None = None) -> None:
    """Drops every batch of a segment that reaches ``offset``. The segment becomes the active one; its indexes are truncated in
    memory, and their files when it is sealed.

    When ``offset`` lies inside a batch, the whole batch is dropped and the segment ends where it began: a leader sends whole
    batches.
    """
    span = segment.find(offset)
    segment.largest_timestamp()
    segment.sealed = False
    if span is None:
        segment.next_offset = min(segment.next_offset, offset)
        segment.rotten = tuple(each for each in segment.rotten if each.first_offset < segment.next_offset)
        segment.forget_recent()
        return
    index, times = segment.offset_index(), segment.time_index()
    segment.file.truncate(span.position)
    # Before anything is written over it: if the cut were lost and the write were not, old batches would follow new ones.
    if deferred is None:
        sync_cut(segment)
    else:
        deferred.append(partial(sync_cut, segment))
    segment.size = span.position
    segment.next_offset = min(span.base_offset, offset)
    # A range without bytes (a clean log whose end is missing) lies at the end of the file, with offsets that are cut.
    segment.rotten = tuple(
        each for each in segment.rotten if each.end <= span.position and each.first_offset < segment.next_offset
    )
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
    """The greatest timestamp of the rest: that of the last entry, or of a batch after it."""
    segment.max_timestamp, segment.max_timestamp_offset = times.last()
    span = segment.find(segment.max_timestamp_offset)
    while span is not None:
        if span.max_timestamp > segment.max_timestamp:
            segment.max_timestamp, segment.max_timestamp_offset = span.max_timestamp, span.last_offset
        span = segment.span_at(span.end)
