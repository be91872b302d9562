"""Replays the batches of a log to rebuild its producer state and its transaction indexes.

This module decides where a replay must start. The state at the log's end is that of the newest valid snapshot at or below the
end, plus every batch after it. If recovery emptied a segment's transaction index, the replay starts no later than that segment
and refills the index.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from tidelog.model.ports import File
from tidelog.records.batch import HEADER_SIZE, BatchHeader, CorruptBatch, read_header
from tidelog.storage.checkpoints import read_file
from tidelog.storage.log_view import LogView
from tidelog.storage.producer_state import SNAPSHOT_SUFFIX, CorruptSnapshot, ProducerStateManager
from tidelog.storage.rotten_range import readable_parts
from tidelog.storage.segment import LogSegment, file_stem

_CHUNK_BYTES = 1 << 20
_logger = logging.getLogger(__name__)


def iter_batches(file: File, start: int, end: int, chunk_bytes: int = _CHUNK_BYTES) -> Iterator[tuple[BatchHeader, memoryview]]:
    """(header with position 0, bytes) of each whole batch in [start, end); stops where no whole batch begins."""
    position = start
    chunk, chunk_at = memoryview(b""), start
    while end - position >= HEADER_SIZE:
        at = position - chunk_at
        size = HEADER_SIZE
        if len(chunk) - at >= HEADER_SIZE:
            size = int.from_bytes(chunk[at + 8 : at + 12], "big", signed=True) + 12
        if size < HEADER_SIZE or size > end - position:
            return
        if len(chunk) - at < size:
            chunk, chunk_at, at = memoryview(file.read(position, min(max(size, chunk_bytes), end - position))), position, 0
            if len(chunk) < HEADER_SIZE:
                return
            if size == HEADER_SIZE:
                # The length was unknown before the header was read: check it again.
                size = int.from_bytes(chunk[8:12], "big", signed=True) + 12
                if HEADER_SIZE <= size <= end - position and size > len(chunk):
                    chunk = memoryview(file.read(position, size))
        try:
            header = read_header(chunk[at : at + size])
        except CorruptBatch:
            return
        yield header, chunk[at : at + size]
        position += header.size


def snapshot_offsets(names: Sequence[str]) -> list[int]:
    """Offsets of the ``.snapshot`` files among the names, ascending."""
    length = 20 + len(SNAPSHOT_SUFFIX)
    return sorted(
        int(name[:20]) for name in names if len(name) == length and name.endswith(SNAPSHOT_SUFFIX) and name[:20].isdecimal()
    )


def load_newest_snapshot(
    log: LogView, names: Sequence[str], producers: ProducerStateManager, *, oldest: int, newest: int, now_ms: int
) -> int:
    """Loads the newest snapshot that reads, from offset ``oldest`` to ``newest``; returns its offset, or ``oldest`` with empty
    state. ``names``: the file names in the log's directory. Raises OSError."""
    producers.clear(oldest)
    for offset in reversed(snapshot_offsets(names)):
        if oldest <= offset <= newest:
            raw = read_file(log.fs, f"{log.dir}/{file_stem(offset)}{SNAPSHOT_SUFFIX}")
            try:
                producers.load_snapshot(raw or b"", offset, now_ms)
            except CorruptSnapshot:
                continue
            return offset
    return oldest


def batches_of_producers(segment: LogSegment, position: int, end: int, start: int) -> Iterator[tuple[BatchHeader, memoryview]]:
    """(header with position 0, bytes) of each batch of a producer from offset ``start`` on, in the readable part of [position,
    end) of the segment's file."""
    for first, last in readable_parts(segment.rotten, position, end):
        for header, batch in iter_batches(segment.file, first, last):
            if header.producer_id >= 0 and header.base_offset >= start:
                yield header, batch


Note = Callable[[memoryview, BatchHeader, LogSegment], None]
"""Called with each replayed batch and its segment."""


def rebuild_producers(log: LogView, producers: ProducerStateManager, note: Note, now_ms: int, names: list[str]) -> int:
    """Rebuilds the state at the log's end from the newest usable snapshot at or below it and the batches after that. Raises
    OSError.

    ``names``: the file names in the log's directory. Refills transaction indexes that recovery emptied. Returns the offset of the
    snapshot used, -1 for none.
    """
    end, used = log.log_end_offset, -1
    producers.clear(log.segments[0].base_offset)
    replay_from = _first_unindexed(log)
    for offset in reversed(snapshot_offsets(names)):
        path = f"{log.dir}/{file_stem(offset)}{SNAPSHOT_SUFFIX}"
        if offset > end:
            log.fs.remove(path)
            continue
        if offset > replay_from or offset < log.segments[0].base_offset:
            continue
        try:
            producers.load_snapshot(read_file(log.fs, path) or b"", offset, now_ms)
            used = offset
            break
        except CorruptSnapshot as problem:
            _logger.warning("%s: %s; an older state and more of the log take its place", path, problem)
            log.fs.remove(path)
    _replay(log, producers.end_offset, note)
    producers.end_offset = end
    return used


def _first_unindexed(log: LogView) -> int:
    """The latest offset from which a replay completes the transaction indexes that were reset."""
    for segment in log.segments:
        if segment.aborted.replay_needed:
            return segment.base_offset
    return log.log_end_offset


def _replay(log: LogView, start: int, note: Note) -> None:
    for segment in log.segments[log.segment_index(start) :]:
        if segment.next_offset <= start or not segment.size:
            segment.aborted.replay_needed = False
            continue
        for header, batch in batches_of_producers(segment, segment.position_of(start), segment.size, start):
            note(batch, header, segment)
        segment.aborted.replay_needed = False
        if any(each.next_offset > start for each in segment.rotten):
            segment.aborted.incomplete = True


def remove_stray_snapshots(log: LogView, names: list[str]) -> None:
    """Keeps one snapshot per segment, named by its base offset, and the newest one that is not past the log's end."""
    offsets = [offset for offset in snapshot_offsets(names) if offset <= log.log_end_offset]
    bases = frozenset(segment.base_offset for segment in log.segments)
    for offset in offsets[:-1]:
        path = f"{log.dir}/{file_stem(offset)}{SNAPSHOT_SUFFIX}"
        if offset not in bases and log.fs.exists(path):
            log.fs.remove(path)
