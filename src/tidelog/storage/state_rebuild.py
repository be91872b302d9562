"""Rebuilds producers and transaction indexes behind batches that a replay had skipped because they were damaged.

A start after a crash replays the end of a log. If batches there are damaged, the state lacks what they say: a sequence, the first
record of a transaction, a marker. Once the batches are back, readers of committed data would get records of an aborted
transaction. So the state is rebuilt with the mended segment *before* that segment takes its place, and both change together.

The rebuild reads from the newest producer snapshot at or below the segment to the log's end, in a thread; ``install``, on the
event loop, reads what was appended since and replaces the state.

Producer snapshots behind the segment are wrong and are removed. Where offsets are missing between two segments, because of
compaction, a new one takes the place: after a power loss it shows that nothing was lost there (segment_recovery.py).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator

from tidelog.records.batch import BatchHeader
from tidelog.storage.append_rules import note_producer
from tidelog.storage.checkpoints import read_file
from tidelog.storage.index import AbortedTransaction
from tidelog.storage.producer_replay import iter_batches, snapshot_offsets
from tidelog.storage.producer_state import SNAPSHOT_SUFFIX, CorruptSnapshot, ProducerStateManager
from tidelog.storage.rotten_range import readable_parts
from tidelog.storage.segment import TXN_INDEX_SUFFIX, LogSegment, file_stem
from tidelog.storage.splice import STEP_BYTES
from tidelog.storage.unified_log import UnifiedLog


class StateRebuild:
    """The state of ``log`` as if ``mended`` stood in the place of ``segment``."""

    def __init__(self, log: UnifiedLog, segment: LogSegment, mended: LogSegment, now_ms: int) -> None:
        self._log = log
        self._segment = segment
        self._mended = mended
        self._first = segment.base_offset
        self._now_ms = now_ms
        self._cuts = log.files.segments.cuts
        self._before = self._at_or_after(log)
        """The segments from ``segment`` on when the rebuild began. Earlier ones may be deleted meanwhile."""
        self._segments = [mended if each is segment else each for each in log.segments]
        self._end = log.log_end_offset
        self._size = log.active.size
        self._producers = ProducerStateManager(log.producers.expiration_ms)
        self._aborted: defaultdict[int, list[AbortedTransaction]] = defaultdict(list)
        """By base offset of the segment with the marker."""
        self._read_to = -1
        """One past the last offset that was read."""
        self._snapshots: list[tuple[int, bytes]] = []
        """Offset and content of the snapshots behind gaps."""

    def steps(self) -> Iterator[int]:
        """Reads the log, in steps that block, and yields the bytes of each. Raises OSError."""
        start = self._load_snapshot()
        for segment in self._segments:
            if segment.next_offset > start or segment is self._segments[-1]:
                self._note_gap(segment)
                size = self._size if segment is self._segments[-1] else segment.size
                yield from self._replay(segment, segment.position_of(start), size, start)
        self._producers.end_offset = self._end

    def _load_snapshot(self) -> int:
        log, oldest = self._log, self._segments[0].base_offset
        self._producers.clear(oldest)
        for offset in reversed(snapshot_offsets(log.fs.listdir(log.dir))):
            if oldest <= offset <= self._first:
                raw = read_file(log.fs, f"{log.dir}/{file_stem(offset)}{SNAPSHOT_SUFFIX}")
                try:
                    self._producers.load_snapshot(raw or b"", offset, self._now_ms)
                except CorruptSnapshot:
                    continue
                return offset
        return oldest

    def _note_gap(self, segment: LogSegment) -> None:
        if 0 <= self._read_to < segment.base_offset > self._first:
            self._snapshots.append((segment.base_offset, self._producers.encode_snapshot()))

    def _replay(self, segment: LogSegment, position: int, end: int, start: int) -> Iterator[int]:
        read = 0
        for first, last in readable_parts(segment.rotten, position, end):
            for header, batch in iter_batches(segment.file, first, last, STEP_BYTES):
                if header.producer_id >= 0 and header.base_offset >= start:
                    self._note(batch, header, segment)
                self._read_to = header.next_offset
                read += header.size
                if read >= STEP_BYTES:
                    yield read
                    read = 0

    def _note(self, batch: memoryview, header: BatchHeader, segment: LogSegment) -> None:
        entry = note_producer(self._producers, batch, header)
        if entry is not None and segment.base_offset >= self._first:
            self._aborted[segment.base_offset].append(entry)

    @property
    def stands(self) -> bool:
        """Whether the log has only grown since: otherwise ``install`` must not be called."""
        log = self._log
        unchanged = self._at_or_after(log)[: len(self._before)] == self._before
        return log.failure is None and log.files.segments.cuts == self._cuts and unchanged

    def _at_or_after(self, log: UnifiedLog) -> list[LogSegment]:
        return [each for each in log.segments if each.base_offset >= self._first]

    def install(self) -> None:
        """Replaces the log's state. Reads what was appended meanwhile and blocks for a sync of each transaction index that was
        wrong. Raises OSError."""
        assert self.stands
        log = self._log
        last = self._segments[-1]
        deque(self._replay(last, self._size, last.size, self._end), maxlen=0)
        for segment in self._at_or_after(log)[len(self._before) :]:
            self._note_gap(segment)
            deque(self._replay(segment, 0, segment.size, self._end), maxlen=0)
        state = self._producers
        state.end_offset = log.log_end_offset
        for segment in self._at_or_after(log):
            self._correct(segment)
        for offset in snapshot_offsets(log.fs.listdir(log.dir)):
            if offset > self._first:
                log.fs.remove(f"{log.dir}/{file_stem(offset)}{SNAPSHOT_SUFFIX}")
        unflushed = log.files.unflushed
        unflushed.forget_snapshots(self._first)
        unflushed.found_snapshot(-1)
        for offset, content in self._snapshots:
            if offset < log.log_end_offset:
                unflushed.add_snapshot(offset, content)
        unflushed.add_snapshot(log.log_end_offset, state.encode_snapshot())
        unflushed.note_names()
        log.producers.take_over(state)
        log.producers.high_watermark_moved(log.high_watermark)

    def _correct(self, segment: LogSegment) -> None:
        entries = self._aborted[segment.base_offset]
        if entries != segment.transactions():
            segment.aborted.replace(segment.file_system, segment.path(TXN_INDEX_SUFFIX), entries)
            if entries:
                self._log.files.segments.note_aborting(segment)
        replayed = self._mended if segment is self._segment else segment
        segment.aborted.incomplete = bool(replayed.rotten)
