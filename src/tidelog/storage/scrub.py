"""The scrub: reads what is stored, piece by piece, and compares it with its checksums, before a reader needs it.

Decided here: what is looked at (every batch of every segment, every producer snapshot), when a finding counts, and what it
changes. A segment is looked at as it was when its turn came. What reads badly is looked at a second time, because the log may
have been cut or compacted under the first look. What stays is a rotten range (rotten_range.py) of the segment, which readers get
as CORRUPT_MESSAGE from then on. Nothing is cut, moved or written.

Deliberately elsewhere: the pace, the thread and what is left in the page cache (server/upkeep/scrubbing.py).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from tidelog.model.ids import TopicPartition
from tidelog.model.ports import File
from tidelog.records.batch import BatchHeader
from tidelog.storage.checkpoints import read_file
from tidelog.storage.log import UnifiedLog
from tidelog.storage.producer_state import SNAPSHOT_SUFFIX, CorruptSnapshot, decode_snapshot
from tidelog.storage.rotten_range import RottenRange
from tidelog.storage.segment import LOG_SUFFIX, LogSegment, file_stem
from tidelog.storage.segment_scan import SegmentScan, Trust

CHUNK_BYTES = 32 * 1024
"""Read at a time: short enough that the thread does not keep the interpreter for long."""
GUIDE = "docs/guide/operations.md, under 'Damaged log files'"
_logger = logging.getLogger(__name__)


class SegmentCheck:
    """One look at one segment. Made and judged on the loop, advanced in a thread."""

    def __init__(self, log: UnifiedLog, segment: LogSegment, file: File, known: tuple[RottenRange, ...] | None = None) -> None:
        """``file``: the segment's, as the shell reads it. ``known``: what a first look found."""
        self.log = log
        self.segment = segment
        self.size = segment.size
        self.known = known
        trust = Trust(segment.next_offset, following=None if segment is log.active else segment.next_offset, complete=True)
        self._scan = SegmentScan(file, segment.base_offset, self.size, trust, chunk_bytes=CHUNK_BYTES)
        self._batches: Iterator[tuple[int, BatchHeader]] = self._scan.batches()
        self.position = 0
        """How far it has come, in bytes."""
        self.done = False

    def advance(self, budget: int) -> None:
        """Looks at about ``budget`` bytes more. Blocks; OSError as it comes."""
        start = self.position
        for position, header in self._batches:
            self.position = position + header.size
            if self.position - start >= budget:
                return
        self.position, self.done = self.size, True

    @property
    def found(self) -> tuple[RottenRange, ...]:
        """The ranges that read badly."""
        return tuple(self._scan.rotten)

    @property
    def stands(self) -> bool:
        """Whether the segment still has what was looked at."""
        return self.log.failure is None and self.segment in self.log.segments and self.segment.size >= self.size

    def again(self, file: File) -> SegmentCheck | None:
        """A second look, where the first one found something new."""
        if not self.stands or self.known is not None or set(self.found) <= set(self.segment.rotten):
            return None
        return SegmentCheck(self.log, self.segment, file, self.found)

    def take(self) -> int:
        """What both looks found is true, and readers get CORRUPT_MESSAGE for it. How many ranges are new."""
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
        if confirmed:
            self.segment.rotten = tuple(sorted({*self.segment.rotten, *confirmed}))
        return len(confirmed)


def segments_of(log: UnifiedLog) -> list[LogSegment]:
    """What is to be looked at, as the log is now."""
    return [] if log.failure is not None else [segment for segment in log.segments if segment.size]


def damaged_snapshots(log: UnifiedLog, segments: Iterable[LogSegment]) -> list[str]:
    """Producer snapshots whose checksum does not fit. A start rebuilds the state from the log; they are only reported. Blocks."""
    found = []
    for segment in segments:
        path = f"{log.dir}/{file_stem(segment.base_offset)}{SNAPSHOT_SUFFIX}"
        raw = read_file(log.fs, path)
        try:
            if raw is not None:
                decode_snapshot(raw)
        except CorruptSnapshot as problem:
            _logger.error("%s: %s; a start takes the producers from the log instead", path, problem)
            found.append(path)
    return found


class ScrubPass:
    """Where a pass is: partitions that are still to be looked at, and what it has found."""

    def __init__(self, partitions: Iterable[TopicPartition], started_s: float) -> None:
        self.waiting = sorted(partitions, reverse=True)
        self.started_s = started_s
        self.bytes = 0
        self.found = 0

    def next_partition(self) -> TopicPartition | None:
        """None at the end of the pass."""
        return self.waiting.pop() if self.waiting else None


def rest_after(length: int, spent_s: float, bytes_per_second: int) -> float:
    """Seconds to rest after ``length`` bytes that took ``spent_s``: the rate is kept, and nine tenths of a core."""
    return max(length / bytes_per_second, 9 * spent_s)
