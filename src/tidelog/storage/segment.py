"""LogSegment: one ``.log`` file, its indexes, and the rule for adding index entries.

This module decides where a batch is written, when it gets index entries, when the segment is full, and where in the file an
offset is. Invariants: ``size`` is the end of the last whole batch; ``next_offset`` is one past its last offset; index entries
point at starts of batches below ``size``. Entries of the active segment are kept in memory and written at flush, roll and close:
an append is one write to one file.

Elsewhere: which segment (log.py), crash recovery (recovery.py), retention (retention.py).
"""

from __future__ import annotations

import logging

from tidelog.model.ports import Buffer, File, FileSystem
from tidelog.records.batch import HEADER_SIZE, LOG_OVERHEAD, SPAN
from tidelog.storage.batch_positions import RecentBatches
from tidelog.storage.batch_span import BatchSpan, span_of_rotten
from tidelog.storage.checkpoints import read_file
from tidelog.storage.index import (
    MAX_RELATIVE_OFFSET,
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    AbortedTransaction,
    CorruptIndex,
    Indexer,
    OffsetIndex,
    TimeIndex,
    read_last_time_entry,
)
from tidelog.storage.rotten_range import RottenRange, rotten_at
from tidelog.storage.transaction_index import TransactionIndex

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
DELETED_SUFFIX = ".deleted"

_logger = logging.getLogger(__name__)

_DEFAULT_INTERVAL = 4096
_PROBE_BYTES = 8192
"""Bytes read at a time in the search for a batch: two index intervals."""

_SPAN_BYTES = SPAN.size


def file_stem(offset: int) -> str:
    """The 20-digit name of segment and snapshot files."""
    return f"{offset:020d}"


class LogSegment:
    """A run of batches from ``base_offset`` on, with its indexes."""

    __slots__ = (
        "_file",
        "_fs",
        "_offset_index",
        "_recent",
        "_time_index",
        "aborted",
        "base_offset",
        "bytes_since_index_entry",
        "created_ms",
        "dir",
        "first_timestamp",
        "index_entries",
        "max_timestamp",
        "max_timestamp_offset",
        "next_offset",
        "rotten",
        "sealed",
        "size",
        "suffix",
    )

    def __init__(self, fs: FileSystem, directory: str, base_offset: int, *, size: int = 0, created_ms: int = 0) -> None:
        self._fs = fs
        self.dir = directory
        self.base_offset = base_offset
        self.size = size
        self.next_offset = base_offset
        """One past the last offset; for a segment not read since loading, the base of the next one (set by the log)."""
        self.created_ms = created_ms
        self.suffix = ""
        self._file: File | None = None
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self.aborted = TransactionIndex(base_offset)
        self.bytes_since_index_entry = 0
        self.index_entries = 0
        """Entries of the offset index, as far as they were needed since loading; the time index never has more."""
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        self.first_timestamp: int | None = None
        """Greatest timestamp of the first batch, which decides when the segment rolls by age. None: not read yet, or empty."""
        self.sealed = False
        """Closed, with its log and indexes on stable storage: needs no recovery."""
        self.rotten: tuple[RottenRange, ...] = ()
        """Known damaged ranges, ascending: readers get the records before and after them."""
        self._recent = RecentBatches(base_offset)

    @classmethod
    def create(cls, fs: FileSystem, directory: str, base_offset: int, now_ms: int) -> LogSegment:
        """Creates an empty segment: its ``.log`` exists when this returns, its indexes when they are first written."""
        segment = cls(fs, directory, base_offset, created_ms=now_ms)
        segment._offset_index = OffsetIndex(base_offset)
        segment._time_index = TimeIndex(base_offset)
        segment.aborted = TransactionIndex(base_offset, empty=True)
        segment._file = fs.open(segment.path(LOG_SUFFIX), create=True)
        if segment._file.size():
            segment._file.truncate(0)
        return segment

    def path(self, suffix: str) -> str:
        """The path of one of the four files."""
        return f"{self.dir}/{self.base_offset:020d}{suffix}{self.suffix}"

    @property
    def file_system(self) -> FileSystem:
        """The file system of its files."""
        return self._fs

    @property
    def file(self) -> File:
        """The ``.log`` file, opened on first use."""
        if self._file is None:
            self._file = self._fs.open(self.path(LOG_SUFFIX))
        return self._file

    # --- appending -----------------------------------------------------------------------------------------------------

    def append(self, data: Buffer, size: int, base_offset: int, last_offset: int, max_timestamp: int, interval: int) -> None:
        """Appends one batch with one write. ``interval``: index.interval.bytes. An OSError leaves the segment as it was."""
        file = self._file
        if file is None:
            file = self.file
        file.write(self.size, data)
        self.note_batch(size, base_offset, last_offset, max_timestamp, interval)

    def note_batch(self, size: int, base_offset: int, last_offset: int, max_timestamp: int, interval: int) -> None:
        """Updates state after a batch was written at the end."""
        position = self.size
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if position == 0:
            self.first_timestamp = max_timestamp
        if self.bytes_since_index_entry > interval:
            self._add_index_entries(last_offset, position)
        self.bytes_since_index_entry += size
        self._recent.add(base_offset, last_offset, position)
        self.size = position + size
        self.next_offset = last_offset + 1

    def _add_index_entries(self, last_offset: int, position: int) -> None:
        index = self.offset_index()
        index.append(last_offset, position)
        self.time_index().maybe_append(self.max_timestamp, self.max_timestamp_offset)
        self.index_entries = len(index)
        self.bytes_since_index_entry = 0

    def must_roll(self, batch_bytes: int, last_offset: int, max_timestamp: int, now_ms: int, limits: RollLimits) -> bool:
        """Whether a batch of this size, last offset and timestamp needs a new segment."""
        size = self.size
        if size + batch_bytes > limits.segment_bytes or last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return size > 0 or last_offset - self.base_offset > MAX_RELATIVE_OFFSET
        if size == 0:
            return False
        first = self.first_timestamp
        if first is None:
            first = self.read_first_timestamp()
        waited = max_timestamp - first if first >= 0 else now_ms - self.created_ms
        if waited > limits.segment_ms:
            return True
        return self.index_entries >= limits.index_entries

    def read_first_timestamp(self) -> int:
        """Greatest timestamp of the first batch; -1 when the segment is empty. Read once."""
        if self.first_timestamp is None:
            span = self.span_at(0)
            if span is None:
                return -1
            self.first_timestamp = span.max_timestamp
        return self.first_timestamp

    # --- indexes -------------------------------------------------------------------------------------------------------

    def offset_index(self) -> OffsetIndex:
        """Loaded on first use; rebuilt from the log when its file is missing or malformed."""
        index = self._offset_index
        return self._load_indexes()[0] if index is None else index

    def time_index(self) -> TimeIndex:
        """Loaded on first use, like the offset index."""
        index = self._time_index
        return self._load_indexes()[1] if index is None else index

    def indexes_loaded(self) -> bool:
        """Whether a look-up reads no file."""
        return self._offset_index is not None and self._time_index is not None

    def drop_indexes(self) -> None:
        """Drops indexes that a sealed segment can load again."""
        if self.sealed:
            self._offset_index = self._time_index = None
            self.aborted.forget()
            self.forget_recent()

    def forget_recent(self) -> None:
        """Resets the remembered recent batches; they start again at ``next_offset``."""
        self._recent = RecentBatches(self.next_offset)

    def transactions(self) -> list[AbortedTransaction]:
        """Transactions that a marker in this segment aborted. CorruptIndex when the file is malformed."""
        return self.aborted.entries(self._fs, self.path(TXN_INDEX_SUFFIX))

    def add_aborted(self, entry: AbortedTransaction) -> None:
        """Adds a transaction that a marker in this segment aborted."""
        self.aborted.append(self._fs, self.path(TXN_INDEX_SUFFIX), entry)

    def _load_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        """Two readers in two threads may both load them; both results are right, and each uses its own."""
        offsets, times = (read_file(self._fs, self.path(suffix)) for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX))
        try:
            if self.size and (offsets is None or times is None):
                raise CorruptIndex("missing")
            offset_index = OffsetIndex.parse(self.base_offset, offsets or b"", self.size)
            time_index = TimeIndex.parse(self.base_offset, times or b"")
        except CorruptIndex as problem:
            _logger.warning("%s: indexes are rebuilt: %s", self.path(LOG_SUFFIX), problem)
            indexer = self._index_again()
            offset_index, time_index = indexer.offsets, indexer.times
        self._time_index, self._offset_index = time_index, offset_index
        return offset_index, time_index

    def _index_again(self) -> Indexer:
        """Rebuilds the indexes from the batch headers. Only their lengths are checked; recovery checks the rest."""
        indexer = Indexer(self.base_offset, _DEFAULT_INTERVAL)
        span = self.span_at(0)
        while span is not None:
            indexer.add(span.position, span.end - span.position, span.last_offset, span.max_timestamp)
            span = self.span_at(span.end)
        indexer.finish()
        return indexer

    def adopt_indexes(self, indexer: Indexer) -> None:
        """Replaces the content of the index files with indexes built by reading the whole file."""
        self._offset_index = indexer.offsets
        self._time_index = indexer.times
        self.max_timestamp, self.max_timestamp_offset = indexer.max_timestamp, indexer.max_timestamp_offset
        self.bytes_since_index_entry = 0

    def largest_timestamp(self) -> tuple[int, int]:
        """(timestamp, offset of its batch) of the greatest timestamp; (-1, base offset) when there is none."""
        if self.max_timestamp < 0 and self.size:
            self.max_timestamp, self.max_timestamp_offset = self._last_time_entry() or self.time_index().last()
        return self.max_timestamp, self.max_timestamp_offset

    def confirm_largest_timestamp(self) -> int:
        """Like ``largest_timestamp``, but read from the batch itself, before a deletion by age: the time index has no
        checksum, and a flipped bit could make a recent segment seem very old. Reads the file."""
        timestamp, offset = self.largest_timestamp()
        span = self.find(offset) if timestamp >= 0 else None
        if span is None or span.max_timestamp != timestamp:
            indexer = self._index_again()
            if indexer.max_timestamp != timestamp:
                _logger.warning("%s: its time index is wrong: indexes are rebuilt", self.path(LOG_SUFFIX))
                self._time_index, self._offset_index = indexer.times, indexer.offsets
                self.max_timestamp, self.max_timestamp_offset = indexer.max_timestamp, indexer.max_timestamp_offset
        return self.max_timestamp

    def _last_time_entry(self) -> tuple[int, int] | None:
        """The last entry, read from the end of the file without loading the index; None when it cannot be determined."""
        if self._time_index is not None:
            return None
        last = read_last_time_entry(self._fs, self.path(TIME_INDEX_SUFFIX), self.base_offset)
        return last if last is not None and last[1] < self.next_offset else None

    def closing_index_writes(self) -> list[tuple[File, int, bytes]]:
        """Adds the last time index entry for the greatest timestamp, and returns what the index files lack: (open file,
        position, bytes; the file ends after them). Empty for a segment whose index files are up to date."""
        index, times = self._offset_index, self._time_index
        if index is None or times is None:
            return []
        times.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        writes: list[tuple[File, int, bytes]] = []
        if not index.is_written():
            file = self._fs.open(self.path(INDEX_SUFFIX), create=True)
            writes.append((file, index.written * OFFSET_ENTRY_BYTES, index.encode(index.written)))
        if not times.is_written():
            file = self._fs.open(self.path(TIME_INDEX_SUFFIX), create=True)
            writes.append((file, times.written * TIME_ENTRY_BYTES, times.encode(times.written)))
        index.mark_written()
        times.mark_written()
        return writes

    # --- finding -------------------------------------------------------------------------------------------------------

    def span_at(self, position: int) -> BatchSpan | None:
        """The batch or rotten range that starts at ``position``; None at the end of the segment or where there is neither."""
        if position >= self.size:
            return None
        if self.rotten and (rotten := rotten_at(self.rotten, position)) is not None:
            return span_of_rotten(rotten)
        raw = self.file.read(position, _SPAN_BYTES)
        if len(raw) < _SPAN_BYTES:
            return None
        base_offset, length, delta, max_timestamp = SPAN.unpack(raw)
        end = position + LOG_OVERHEAD + length
        if length < HEADER_SIZE - LOG_OVERHEAD or end > self.size:
            return None
        return BatchSpan(position, end, base_offset, base_offset + delta, max_timestamp)

    def find(self, offset: int, start: int | None = None) -> BatchSpan | None:
        """The first batch whose last offset is at or past ``offset``, searched from ``start`` (or from the index) on."""
        position = self._indexed_start(offset) if start is None else start
        raw, raw_at, size, lengths = b"", position, self.size, SPAN.unpack_from
        while position < size:
            if self.rotten and (rotten := rotten_at(self.rotten, position)) is not None:
                if rotten.next_offset > offset:
                    return span_of_rotten(rotten)
                position = rotten.end
                continue
            at = position - raw_at
            if len(raw) - at < _SPAN_BYTES:
                raw, raw_at, at = self.file.read(position, _PROBE_BYTES), position, 0
                if len(raw) < _SPAN_BYTES:
                    return None
            base_offset, length, delta, max_timestamp = lengths(raw, at)
            end = position + LOG_OVERHEAD + length
            if length < HEADER_SIZE - LOG_OVERHEAD or end > size:
                return None
            if base_offset + delta >= offset:
                return BatchSpan(position, end, base_offset, base_offset + delta, max_timestamp)
            position = end
        return None

    def _indexed_start(self, offset: int) -> int:
        """Where the index says that a scan should start. If an entry does not match its batch (a flipped bit on the disk;
        there is no checksum), both indexes are rebuilt; otherwise records would be skipped silently."""
        position, last_offset = self.offset_index().entry_at_or_before(offset)
        if position:
            span = self.span_at(position)
            if span is None or not self.base_offset <= span.base_offset <= span.last_offset <= last_offset:
                _logger.warning("%s: its index points to a wrong position: indexes are rebuilt", self.path(LOG_SUFFIX))
                indexer = self._index_again()
                self._time_index, self._offset_index = indexer.times, indexer.offsets
                position, _ = indexer.offsets.entry_at_or_before(offset)
        return position

    def recent_position(self, offset: int) -> int:
        """The start of the first batch that ends at or past ``offset``, from memory; -1 when unknown.

        ``size`` for an offset at the end.
        """
        if offset >= self.next_offset:
            return self.size
        return self._recent.position_of(offset)

    def position_of(self, offset: int) -> int:
        """The start of the first batch whose last offset is at or past ``offset``; ``size`` when there is none."""
        position = self.recent_position(offset)
        if position < 0:
            span = self.find(offset)
            position = span.position if span is not None else self.size
        return position

    def boundary_within(self, start: int, limit: int) -> int:
        """The last batch boundary in (start, limit] known from memory or the index, else found by reading headers; the end of
        the first batch if there is none."""
        boundary = self._recent.boundary_within(start, limit)
        if boundary > 0:
            return boundary
        span = self.span_at(start)
        end = self.size if span is None else span.end
        boundary = self.offset_index().last_boundary(start, limit)
        if boundary >= end:  # a damaged entry may point into the first batch, of which a reader needs all
            return boundary
        while span is not None and span.end <= limit:
            end = span.end
            span = self.span_at(end)
        return end

    def end_offset_at(self, position: int) -> int:
        """An offset past all batches that begin before ``position``: the next batch's, as far as known without reading."""
        if position >= self.size:
            return self.next_offset
        end_offset = self._recent.end_offset_at(position)
        if end_offset >= 0:
            return end_offset
        return min(self.offset_index().last_offset_from(position, self.next_offset), self.next_offset)

    # --- changing files ------------------------------------------------------------------------------------------------

    def rename_files(self, suffix: str) -> None:
        """Replaces the suffix of its files by ``suffix``; missing files are skipped."""
        for kind in SEGMENT_SUFFIXES:
            source = self.path(kind)
            target = f"{self.dir}/{self.base_offset:020d}{kind}{suffix}"
            if self._fs.exists(source):
                self._fs.rename(source, target)
        self.suffix = suffix

    def remove_files(self) -> None:
        """Closes and removes its files, as far as they exist."""
        self.close_file()
        for kind in SEGMENT_SUFFIXES:
            if self._fs.exists(self.path(kind)):
                self._fs.remove(self.path(kind))

    def close_file(self) -> None:
        """Closes the file descriptor; the file is reopened when needed."""
        if self._file is not None:
            self._file.close()
            self._file = None


class RollLimits:
    """The limits of a segment, computed once per configuration: bytes, age less jitter in ms, index entries."""

    __slots__ = ("index_entries", "segment_bytes", "segment_ms")

    def __init__(self, segment_bytes: int, segment_ms: int, segment_index_bytes: int) -> None:
        self.segment_bytes = segment_bytes
        self.segment_ms = segment_ms
        # The time index has the larger entries, and one is reserved: closing the segment adds the greatest timestamp.
        self.index_entries = max(segment_index_bytes // TIME_ENTRY_BYTES - 1, 1)
