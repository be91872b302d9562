"""The scrub: reads stored data piece by piece and compares it with its checksums before a reader needs it.

This module decides what is checked (every batch of every segment, every producer snapshot), when a finding counts, and its
effect. A segment is checked as it was when its turn came. A bad range is read a second time, because the log may have been
truncated or compacted during the first read. If it is still bad, it becomes a rotten range (rotten_range.py) of the segment,
which readers do not get from then on. Nothing is cut, moved or written.

Elsewhere: the rate, the thread and the effect on the page cache (server/upkeep/scrubbing.py).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from tidelog.model.ids import TopicPartition
from tidelog.model.ports import File
from tidelog.storage.checkpoints import read_file
from tidelog.storage.producer_state import SNAPSHOT_SUFFIX, CorruptSnapshot, decode_snapshot
from tidelog.storage.rotten_range import RottenRange
from tidelog.storage.segment import LOG_SUFFIX, LogSegment, file_stem
from tidelog.storage.segment_scan import SegmentScan, Trust
from tidelog.storage.unified_log import UnifiedLog
from tidelog.storage.unreadable_blocks import TolerantFile

CHUNK_BYTES = 32 * 1024
"""Bytes read at a time: short enough that the thread does not hold the interpreter for long."""
GUIDE = "docs/guide/operations.md, under 'Damaged log files'"
_logger = logging.getLogger(__name__)


class SegmentCheck:
    """One read of one segment. Created and evaluated on the event loop, advanced in a thread."""

    def __init__(self, log: UnifiedLog, segment: LogSegment, file: File, known: tuple[RottenRange, ...] | None = None) -> None:
        """``file``: the segment's file. ``known``: findings of the first read."""
        self.log = log
        self.segment = segment
        self.size = segment.size
        self._cuts = log.files.segments.cuts
        self.known = known
        trust = Trust(segment.next_offset, following=None if segment is log.active else segment.next_offset, complete=True)
        self._file = TolerantFile(file)
        self._scan = SegmentScan(self._file, segment.base_offset, self.size, trust, chunk_bytes=CHUNK_BYTES)
        self._walk = self._scan.walk()
        self.done = False

    def advance(self, budget: int) -> None:
        """Reads and hashes about ``budget`` more bytes, damaged or not. Blocks; raises OSError."""
        start = self._scan.work
        for _ in self._walk:
            if self._scan.work - start >= budget:
                return
        self.done = True

    @property
    def work(self) -> int:
        """Bytes read so far; what is hashed or read once more while the next batch is searched for counts too."""
        return self._scan.work

    @property
    def found(self) -> tuple[RottenRange, ...]:
        """The ranges that failed."""
        return tuple(self._scan.rotten)

    @property
    def stands(self) -> bool:
        """Whether the log is in service, still has the segment, and was not cut since: what was read may have been replaced."""
        log = self.log
        return log.failure is None and self.segment in log.segments and log.files.segments.cuts == self._cuts

    def again(self, file: File) -> SegmentCheck | None:
        """A second read if the first one found new ranges."""
        if not self.stands or self.known is not None or set(self.found) <= set(self.segment.rotten):
            return None
        return SegmentCheck(self.log, self.segment, file, self.found)

    def take(self) -> int:
        """Records what both reads found; readers get CORRUPT_MESSAGE for it. Returns the number of new ranges."""
        if not self.stands or self.known is None:
            return 0
        confirmed = [each for each in self.found if each in self.known and each not in self.segment.rotten]
        for each in confirmed:
            _logger.error(
                "%s: the scrub found %d damaged bytes at position %d: offsets %d to %d cannot be read. What to do: %s",
                self.segment.path(LOG_SUFFIX),
                each.end - each.position,
                each.position,
                each.first_offset,
                each.next_offset - 1,
                GUIDE,
            )
        if confirmed and self._file.unreadable:
            path, count = self.segment.path(LOG_SUFFIX), len(self._file.unreadable)
            _logger.error("%s: the disk cannot read %d blocks of it (I/O error)", path, count)
        if confirmed:
            self.segment.rotten = tuple(sorted({*self.segment.rotten, *confirmed}))
        return len(confirmed)


def segments_of(log: UnifiedLog) -> list[LogSegment]:
    """The segments to check in the log's current state."""
    return [] if log.failure is not None else [segment for segment in log.segments if segment.size]


def damaged_snapshots(log: UnifiedLog, segments: Iterable[LogSegment]) -> list[str]:
    """Producer snapshots with a wrong checksum, or that cannot be read. They are only reported: a start rebuilds the state from
    the log. Blocks."""
    found = []
    for segment in segments:
        path = f"{log.dir}/{file_stem(segment.base_offset)}{SNAPSHOT_SUFFIX}"
        try:
            raw = read_file(log.fs, path)
            if raw is not None:
                decode_snapshot(raw)
        except (CorruptSnapshot, OSError) as problem:
            _logger.error("%s: %s; a start takes the producers from the log instead", path, problem)
            found.append(path)
    return found


class ScrubPass:
    """The state of a pass: partitions still to be checked."""

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.waiting = sorted(partitions, reverse=True)

    def next_partition(self) -> TopicPartition | None:
        """None at the end of the pass."""
        return self.waiting.pop() if self.waiting else None


def rest_after(length: int, spent_s: float, bytes_per_second: int) -> float:
    """Seconds to pause after ``length`` bytes that took ``spent_s``: keeps the rate limit and leaves nine tenths of a core
    free."""
    return max(length / bytes_per_second, 9 * spent_s)
