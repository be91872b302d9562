"""The blocking parts of a log's compaction: reading the dirty part into an offset map, and rewriting segments.

Jobs are created on the event loop, ``run`` in any thread, and read only what appends do not change: closed, sealed segments. What
a job writes is not part of the log yet: it has the suffix ``.cleaned``, and file and name are synced when ``run`` returns. Errors
are kept in the job: ``error`` is an I/O error, ``corrupt`` says why the records cannot be compacted.

``breathe`` is called with the bytes read since the last call, a few times per millisecond of work. The caller throttles the job
there (log.cleaner.io.max.bytes.per.second), yields the interpreter to other threads, and raises ``CleaningInterrupted`` to stop
the job: the node stops, or the partition is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tidelog.model.ports import Buffer, File, FileSystem
from tidelog.records.batch import BatchHeader, CorruptBatch, read_max_timestamp
from tidelog.storage.checkpoints import replace_file
from tidelog.storage.cleaner_filter import BatchFilter, LastRecord, OffsetMap, TransactionFilter
from tidelog.storage.index import AbortedTransaction, CorruptIndex, Indexer
from tidelog.storage.producer_replay import iter_batches
from tidelog.storage.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    LogSegment,
)

CLEANED_SUFFIX = ".cleaned"
MAX_OFFSET_SPAN = (1 << 31) - 1
_WRITE_BYTES = 1 << 20
_BREATHE_BYTES = 16 * 1024

Breathe = Callable[[int], None]


def breathe_freely(_bytes_read: int) -> None:
    """Does not throttle, for use without other load."""


class Source(NamedTuple):
    """A closed segment at the start of the cleaning. ``next_offset``: the base of the segment after it."""

    segment: LogSegment
    file: File
    base_offset: int
    next_offset: int
    size: int


def source_of(segment: LogSegment) -> Source:
    """Opens the segment's file if it is not open yet."""
    return Source(segment, segment.file, segment.base_offset, segment.next_offset, segment.size)


class _Pace:
    """Counts bytes and calls ``breathe`` periodically."""

    __slots__ = ("_breathe", "_pending", "bytes_read")

    def __init__(self, breathe: Breathe) -> None:
        self._breathe = breathe
        self._pending = 0
        self.bytes_read = 0

    def read(self, size: int) -> None:
        self.bytes_read += size
        self._pending += size
        if self._pending >= _BREATHE_BYTES:
            self._breathe(self._pending)
            self._pending = 0


def _batches(source: Source, pace: _Pace) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Every batch of the segment; CorruptBatch when they do not fill it, or do not follow each other: what is damaged must not
    become a new segment in which nothing shows that."""
    path = source.segment.path(LOG_SUFFIX)
    if source.segment.rotten:
        raise CorruptBatch(f"{path} is damaged at position {source.segment.rotten[0].position}")
    position, offset, epoch = 0, source.base_offset, -1
    for header, batch in iter_batches(source.file, 0, source.size):
        if not offset <= header.base_offset <= header.last_offset < source.next_offset or 0 <= header.leader_epoch < epoch:
            raise CorruptBatch(
                f"{path}: the batch at position {position} has offsets {header.base_offset} to {header.last_offset} in epoch "
                f"{header.leader_epoch}, after offset {offset - 1} in epoch {epoch}"
            )
        offset, epoch = header.last_offset + 1, max(epoch, header.leader_epoch)
        position += header.size
        yield header, batch
        pace.read(header.size)
    if position != source.size:
        raise CorruptBatch(f"{path} has no whole batch at position {position} of {source.size}")


def aborted_between(segments: Iterable[LogSegment], start: int, end: int) -> list[AbortedTransaction]:
    """Aborted transactions that overlap [start, end); ``segments`` from the one with ``start`` to the end of the log."""
    found: list[AbortedTransaction] = []
    for segment in segments:
        for entry in segment.transactions():
            if entry.last_offset >= start and entry.first_offset < end:
                found.append(entry)
            if entry.last_stable_offset >= end:
                return found
    return found


class CleaningInterrupted(Exception):
    """Raised by ``breathe``: stops the job and the cleaning."""


class CleanerJob:
    """Base of the jobs of a cleaning."""

    __slots__ = ("corrupt", "error", "interrupted")

    def __init__(self) -> None:
        self.error: OSError | None = None
        self.corrupt: str | None = None
        self.interrupted = False

    def run(self, breathe: Breathe = breathe_freely) -> None:
        """Blocks; thread-safe."""
        try:
            self._run(breathe)
        except CleaningInterrupted:
            self.interrupted = True
        except (CorruptBatch, CorruptIndex) as problem:
            self.corrupt = str(problem)
        except OSError as problem:
            self.error = problem

    def _run(self, breathe: Breathe) -> None:
        raise AssertionError("every kind of job has its own")


class SyncJob(CleanerJob):
    """Syncs the directory between two steps of a swap."""

    __slots__ = ("_directory", "_fs")

    def __init__(self, fs: FileSystem, directory: str) -> None:
        super().__init__()
        self._fs = fs
        self._directory = directory

    def _run(self, breathe: Breathe) -> None:
        self._fs.sync_dir(self._directory)


class CheckpointJob(CleanerJob):
    """Replaces a log dir's cleaner-offset-checkpoint."""

    __slots__ = ("_content", "_fs", "_path")

    def __init__(self, fs: FileSystem, path: str, content: bytes) -> None:
        super().__init__()
        self._fs = fs
        self._path = path
        self._content = content

    def _run(self, breathe: Breathe) -> None:
        replace_file(self._fs, self._path, self._content)


class MapJob(CleanerJob):
    """Reads the dirty segments into an offset map until they end or it is full, and groups all segments up to there.

    ``groups``: runs of adjacent segments, each to become one segment. ``end_offset``: the log is clean up to there afterwards.
    """

    __slots__ = (
        "_fs",
        "_limits",
        "_segments",
        "_sources",
        "_start",
        "_upper_bound",
        "bytes_read",
        "end_offset",
        "groups",
        "offsets",
        "records_read",
    )

    def __init__(
        self,
        fs: FileSystem,
        segments: Sequence[LogSegment],
        sources: Sequence[Source],
        offsets: OffsetMap,
        *,
        start: int,
        upper_bound: int,
        segment_bytes: int,
        segment_index_bytes: int,
    ) -> None:
        """``segments``: all segments of the log. ``sources``: those below ``upper_bound``. ``start``: the first dirty offset."""
        super().__init__()
        self._fs = fs
        self._segments = segments
        self._sources = sources
        self._start = start
        self._upper_bound = upper_bound
        self._limits = (segment_bytes, segment_index_bytes)
        self.offsets = offsets
        self.end_offset = start
        self.groups: list[list[Source]] = []
        self.bytes_read = 0
        self.records_read = 0

    def _run(self, breathe: Breathe) -> None:
        pace = _Pace(breathe)
        rotten = next((source.segment for source in self._sources if source.segment.rotten), None)
        if rotten is not None:
            raise CorruptBatch(f"{rotten.path(LOG_SUFFIX)} is damaged at position {rotten.rotten[0].position}")
        dirty = [source for source in self._sources if source.next_offset > self._start]
        if dirty:
            segments = [segment for segment in self._segments if segment.base_offset >= dirty[0].base_offset]
            transactions = TransactionFilter()
            transactions.add_aborted(aborted_between(segments, self._start, self._upper_bound))
            for source in dirty:
                if not self._read(source, transactions, pace):
                    break
                self.offsets.accounted_for(source.next_offset - 1)
        self.bytes_read = pace.bytes_read
        self.end_offset = max(self.offsets.latest_offset + 1, self._start)
        if self.end_offset > self._start:
            clean_and_dirty = [source for source in self._sources if source.base_offset < self.end_offset]
            self.groups = group_sources(clean_and_dirty, *self._limits, self._index_bytes)

    def _read(self, source: Source, transactions: TransactionFilter, pace: _Pace) -> bool:
        """False when the map is full."""
        start, offsets = self._start, self.offsets
        for header, batch in _batches(source, pace):
            if header.last_offset < start:
                continue
            self.records_read += header.records_count
            if header.is_control:
                transactions.on_control(header, batch)
            elif not transactions.on_data(header) and not offsets.add_batch(header, batch, start):
                return False
            offsets.accounted_for(header.last_offset)
        return True

    def _index_bytes(self, source: Source) -> tuple[int, int]:
        segment = source.segment
        paths = (segment.path(INDEX_SUFFIX), segment.path(TIME_INDEX_SUFFIX))
        sizes = [self._fs.stat(path).size if self._fs.exists(path) else 0 for path in paths]
        return sizes[0], sizes[1]


def group_sources(
    sources: Sequence[Source], segment_bytes: int, segment_index_bytes: int, index_bytes: Callable[[Source], tuple[int, int]]
) -> list[list[Source]]:
    """Runs of adjacent segments whose size, index sizes and offset range fit one segment, as if nothing were removed."""
    groups: list[list[Source]] = []
    room = room_index = room_times = 0
    for source in sources:
        offsets, times = index_bytes(source)
        fits = (
            groups
            and source.size <= room
            and offsets <= room_index
            and times <= room_times
            and (source.size == 0 or source.next_offset - 1 - groups[-1][0].base_offset <= MAX_OFFSET_SPAN)
        )
        if not fits:
            groups.append([])
            room, room_index, room_times = segment_bytes, segment_index_bytes, segment_index_bytes
        groups[-1].append(source)
        room -= source.size
        room_index -= offsets
        room_times -= times
    return groups


class RewriteJob(CleanerJob):
    """Writes the remaining records of a group of segments into one ``.cleaned`` segment: ``cleaned``, synced and sealed."""

    __slots__ = (
        "_directory",
        "_filter",
        "_fs",
        "_interval",
        "_segments",
        "_transactions",
        "bytes_read",
        "cleaned",
        "group",
        "records_kept",
        "records_read",
    )

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        segments: Sequence[LogSegment],
        group: Sequence[Source],
        offsets: OffsetMap,
        transactions: TransactionFilter,
        last_records: Mapping[int, LastRecord],
        *,
        upper_bound: int,
        now_ms: int,
        delete_retention_ms: int,
        index_interval_bytes: int,
    ) -> None:
        """``segments``: all segments of the log, for their transaction indexes. ``transactions`` is passed from group to
        group."""
        super().__init__()
        self._fs = fs
        self._directory = directory
        self._segments = segments
        self.group = group
        self._transactions = transactions
        self._filter = BatchFilter(
            offsets, transactions, last_records, upper_bound=upper_bound, now_ms=now_ms, delete_retention_ms=delete_retention_ms
        )
        self._interval = index_interval_bytes
        self.cleaned = LogSegment(fs, directory, group[0].base_offset, created_ms=group[0].segment.created_ms)
        self.cleaned.suffix = CLEANED_SUFFIX
        self.bytes_read = 0
        self.records_read = 0
        self.records_kept = 0

    def _run(self, breathe: Breathe) -> None:
        cleaned = self.cleaned
        file = self._open_empty(LOG_SUFFIX)
        indexer = Indexer(cleaned.base_offset, self._interval)
        pace = _Pace(breathe)
        pending: list[Buffer] = []
        pending_bytes = size = 0
        for header, batch in self._kept_batches(pace):
            if size == 0:
                cleaned.first_timestamp = header.max_timestamp
            indexer.add(size, len(batch), header.last_offset, header.max_timestamp)
            size += len(batch)
            pending.append(batch)
            pending_bytes += len(batch)
            if pending_bytes >= _WRITE_BYTES:
                file.write(size - pending_bytes, pending)
                pending, pending_bytes = [], 0
        if pending:
            file.write(size - pending_bytes, pending)
        file.sync()
        indexer.finish()
        cleaned.size = size
        cleaned.next_offset = self.group[-1].next_offset
        cleaned.adopt_indexes(indexer)
        self._write_indexes(indexer)
        self._fs.sync_dir(self._directory)
        cleaned.sealed = True
        self.bytes_read = pace.bytes_read
        self.records_read, self.records_kept = self._filter.records_read, self._filter.records_kept

    def _kept_batches(self, pace: _Pace) -> Iterator[tuple[BatchHeader, Buffer]]:
        """The remaining batches. The header is the old one with the new greatest timestamp."""
        for source in self.group:
            onward = [segment for segment in self._segments if segment.base_offset >= source.base_offset]
            self._transactions.add_aborted(aborted_between(onward, source.base_offset, source.next_offset))
            for header, batch in _batches(source, pace):
                left = self._filter.filter(header, batch)
                if left is None:
                    continue
                if left is not batch:
                    header.max_timestamp = read_max_timestamp(left)
                yield header, left

    def _open_empty(self, suffix: str) -> File:
        """A file of the cleaned segment; leftovers of an earlier cleaning are removed."""
        file = self._fs.open(self.cleaned.path(suffix), create=True)
        file.truncate(0)
        return file

    def _write_indexes(self, indexer: Indexer) -> None:
        kept = self._transactions.kept
        contents = [(INDEX_SUFFIX, indexer.offsets.encode()), (TIME_INDEX_SUFFIX, indexer.times.encode())]
        if kept:
            contents.append((TXN_INDEX_SUFFIX, b"".join(entry.encode() for entry in kept)))
        elif self._fs.exists(self.cleaned.path(TXN_INDEX_SUFFIX)):
            self._fs.remove(self.cleaned.path(TXN_INDEX_SUFFIX))
        kept.clear()
        for suffix, content in contents:
            file = self._open_empty(suffix)
            file.write(0, content)
            file.sync()
            file.close()
        indexer.offsets.mark_written()
        indexer.times.mark_written()
