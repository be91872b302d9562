"""Cutting the end off a segment, where a follower's log parted from its leader's; and the snapshots that go with it.

In which order the parts of a log go back is decided in ``UnifiedLog.truncate_to``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tidelog.model.ports import FileSystem
from tidelog.storage.flush import sync_cut
from tidelog.storage.index import TimeIndex
from tidelog.storage.producer_state import SNAPSHOT_SUFFIX
from tidelog.storage.replay import snapshot_offsets
from tidelog.storage.segment import TXN_INDEX_SUFFIX, LogSegment, file_stem

Deferred = list[Callable[[], None]]
"""Syncs that have to be done before anything is appended."""


def remove_snapshots(fs: FileSystem, directory: str, above: int) -> bool:
    """Takes away producer snapshots of a state behind ``above``; whether there were any. OSError as it comes."""
    gone = [offset for offset in snapshot_offsets(fs.listdir(directory)) if offset > above]
    for offset in gone:
        fs.remove(f"{directory}/{file_stem(offset)}{SNAPSHOT_SUFFIX}")
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
