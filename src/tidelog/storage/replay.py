"""Going through the batches of a log again: to know its producers, and which of their transactions were aborted.

Decided here: from where replay must start. State at the log's end is that of the newest snapshot that reads well, at or below
the end, plus every batch after it. Where recovery emptied a segment's transaction index, replay starts no later than that
segment, and the aborts it meets fill the index again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

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
                # The length was not known yet: look at it again, now that the header is here.
                size = int.from_bytes(chunk[8:12], "big", signed=True) + 12
                if HEADER_SIZE <= size <= end - position and size > len(chunk):
                    chunk = memoryview(file.read(position, size))
        try:
            header = read_header(chunk[at : at + size])
        except CorruptBatch:
            return
        yield header, chunk[at : at + size]
        position += header.size


def snapshot_offsets(names: list[str]) -> list[int]:
    """Of the ``.snapshot`` files among a directory's names, ascending."""
    length = 20 + len(SNAPSHOT_SUFFIX)
    return sorted(
        int(name[:20]) for name in names if len(name) == length and name.endswith(SNAPSHOT_SUFFIX) and name[:20].isdecimal()
    )


Note = Callable[[memoryview, BatchHeader, LogSegment], None]
"""Takes a batch that is in the log, as it lies in that segment."""


def rebuild_producers(log: LogView, producers: ProducerStateManager, note: Note, now_ms: int, names: list[str]) -> int:
    """State at the log's end: the newest usable snapshot at or below it, then the batches after that. OSError as it comes.

    ``names``: what lies in the log's directory. Transaction indexes of segments that recovery emptied fill up on the way. The
    offset of the snapshot that was used, -1 for none.
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
    """Where replay must begin at the latest, so that transaction indexes that were reset are complete again."""
    for segment in log.segments:
        if segment.aborted.replay_needed:
            return segment.base_offset
    return log.log_end_offset


def _replay(log: LogView, start: int, note: Note) -> None:
    for segment in log.segments[log.segment_index(start) :]:
        if segment.next_offset <= start or not segment.size:
            segment.aborted.replay_needed = False
            continue
        for first, end in readable_parts(segment.rotten, segment.position_of(start), segment.size):
            for header, batch in iter_batches(segment.file, first, end):
                if header.producer_id >= 0 and header.base_offset >= start:
                    note(batch, header, segment)
        segment.aborted.replay_needed = False


def remove_stray_snapshots(log: LogView, names: list[str]) -> None:
    """Keeps one snapshot per segment, named by its base offset, and the newest that is not beyond the log."""
    offsets = [offset for offset in snapshot_offsets(names) if offset <= log.log_end_offset]
    bases = frozenset(segment.base_offset for segment in log.segments)
    for offset in offsets[:-1]:
        path = f"{log.dir}/{file_stem(offset)}{SNAPSHOT_SUFFIX}"
        if offset not in bases and log.fs.exists(path):
            log.fs.remove(path)
