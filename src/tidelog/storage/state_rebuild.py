"""Rebuilds producers and transaction indexes behind batches that a replay had skipped because they were damaged.

A start after a crash replays the end of a log. If batches there are damaged, the state lacks what they say: a sequence, the first
record of a transaction, a marker. Once the batches are back, readers of committed data would get records of an aborted
transaction. So the state is rebuilt with the mended segment *before* that segment takes its place, and both change together.

The rebuild reads from the newest producer snapshot at or below the segment to the log's end, in a thread, and writes the
transaction indexes of sealed segments, which are right whether the segment is mended or not. ``install``, on the event loop,
reads the little that was appended since and replaces the state. It syncs nothing: where a flush has sealed more segments
meanwhile, or much was appended, ``ready`` is False, and ``more`` comes first.

Producer snapshots behind the segment are wrong and are removed. Where offsets are missing between two segments, because of
compaction, a new one takes the place: after a power loss it shows that nothing was lost there (segment_recovery.py).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator

from tidelog.records.batch import BatchHeader
from tidelog.storage.append_rules import note_producer
from tidelog.storage.index import AbortedTransaction
from tidelog.storage.producer_replay import iter_batches, load_newest_snapshot, snapshot_offsets
from tidelog.storage.producer_state import SNAPSHOT_SUFFIX, ProducerStateManager
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
        self._sealed = [each for each in self._before if each.sealed]
        self._written: dict[int, list[AbortedTransaction]] = {}
        """Entries of sealed segments that were wrong and are on the disk, by base offset."""

    def steps(self) -> Iterator[int]:
        """Reads the log, in steps that block, and yields the bytes of each. Raises OSError."""
        log, oldest = self._log, self._segments[0].base_offset
        names = log.fs.listdir(log.dir)
        start = load_newest_snapshot(log, names, self._producers, oldest=oldest, newest=self._first, now_ms=self._now_ms)
        for segment in self._segments:
            if segment.next_offset > start or segment is self._segments[-1]:
                size = self._size if segment is self._segments[-1] else segment.size
                yield from self._replay(segment, segment.position_of(start), size, start)
        self._producers.end_offset = self._end
        self._write_sealed()

    def more(self) -> Iterator[int]:
        """``steps`` for what was appended since. Call it on the event loop, and run what it returns in a thread."""
        assert self.stands
        parts = self._appended()
        self._sealed = [each for each in self._at_or_after(self._log) if each.sealed]

        def steps() -> Iterator[int]:
            for part in parts:
                yield from self._replay(*part)
            self._write_sealed()

        return steps()

    def _appended(self) -> list[tuple[LogSegment, int, int, int]]:
        """What to replay of the segments that were written to since; it counts as read from now on."""
        last, start = self._segments[-1], self._end
        parts = [(last, self._size, last.size, start)]
        for segment in self._at_or_after(self._log):
            if segment.base_offset > last.base_offset:
                self._segments.append(segment)
                parts.append((segment, 0, segment.size, start))
        self._end, self._size = self._log.log_end_offset, self._log.active.size
        return parts

    def _write_sealed(self) -> None:
        for segment in self._sealed:
            entries = self._aborted[segment.base_offset]
            if entries != segment.transactions():
                segment.aborted.replace(segment.file_system, segment.path(TXN_INDEX_SUFFIX), entries)
                self._written[segment.base_offset] = entries

    @property
    def ready(self) -> bool:
        """Whether ``install`` has nothing to sync and little to read: all segments that are sealed now have been written, and
        not much was appended since."""
        log, last = self._log, self._segments[-1]
        sealed = all(each in self._sealed for each in self._at_or_after(log) if each.sealed)
        return sealed and log.active in (last, self._segment) and log.active.size - self._size <= STEP_BYTES

    def _note_gap(self, segment: LogSegment) -> None:
        noted = any(offset == segment.base_offset for offset, _ in self._snapshots)
        if 0 <= self._read_to < segment.base_offset > self._first and not noted:
            self._snapshots.append((segment.base_offset, self._producers.encode_snapshot()))

    def _replay(self, segment: LogSegment, position: int, end: int, start: int) -> Iterator[int]:
        read = 0
        if position == 0:
            self._note_gap(segment)
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
        """Replaces the log's state; needs ``stands`` and ``ready``. Reads what was appended meanwhile. Raises OSError."""
        assert self.stands and self.ready
        log = self._log
        for part in self._appended():
            deque(self._replay(*part), maxlen=0)
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
        written = self._written.get(segment.base_offset)
        if written is not None:
            segment.aborted.written_elsewhere(written)
        elif entries != segment.transactions():
            segment.aborted.rewrite(segment.file_system, segment.path(TXN_INDEX_SUFFIX), entries)
        if entries:
            self._log.files.segments.note_aborting(segment)
        replayed = self._mended if segment is self._segment else segment
        segment.aborted.incomplete = bool(replayed.rotten)
