"""The three index files of a segment, held in memory as compact arrays, in Kafka's file format.

This module defines the entries and the look-up. The segment decides when an entry is added.

- ``.index``: int32 offset relative to the segment's base, int32 position. The offset is the *last* offset of the batch that
  starts at the position, so a search for the greatest entry at or below an offset gives a safe place to start.
- ``.timeindex``: int64 timestamp, int32 relative offset of the batch that carried it; both only grow.
- ``.txnindex``: 34 bytes per aborted transaction, in the segment that holds the marker (KIP-98).

Files may have a tail of zeroes (Kafka preallocates them and trims at close): it is no part of the index. What we write has
exactly the size of its entries. Numbers are big-endian; arrays are swapped in one step, so loading 2 MiB takes milliseconds.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from tidelog.model.ports import FileSystem

OFFSET_ENTRY_BYTES = 8
TIME_ENTRY_BYTES = 12
TXN_ENTRY_BYTES = 34
MAX_RELATIVE_OFFSET = (1 << 31) - 1

_TXN_ENTRY = struct.Struct(">hqqqq")
_LITTLE = sys.byteorder == "little"


class CorruptIndex(Exception):
    """An index file does not match its segment; it is rebuilt from the log."""


def _without_zero_tail(raw: bytes, entry_bytes: int) -> bytes:
    """``raw`` up to its last entry that is not all zeroes. CorruptIndex when the rest is not a whole number of entries."""
    used = len(raw.rstrip(b"\0"))
    length = -(-used // entry_bytes) * entry_bytes
    if length > len(raw):
        raise CorruptIndex(f"{len(raw)} bytes are no multiple of {entry_bytes}")
    return raw[:length]


def _from_big_endian(raw: bytes) -> array[int]:
    numbers = array("i")
    numbers.frombytes(raw)
    if _LITTLE:
        numbers.byteswap()
    return numbers


def _to_big_endian(numbers: array[int]) -> bytes:
    if _LITTLE:
        numbers.byteswap()
    return numbers.tobytes()


class OffsetIndex:
    """Maps offsets to file positions, with one entry per ``index.interval.bytes``."""

    __slots__ = ("base_offset", "exact", "positions", "relative_offsets", "written")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.relative_offsets = array("i")
        self.positions = array("i")
        self.written = 0
        """How many of the entries are in the file."""
        self.exact = False
        """Whether the file ends after them."""

    @classmethod
    def parse(cls, base_offset: int, raw: bytes, log_size: int) -> OffsetIndex:
        """Parses a file. CorruptIndex unless the entries are whole, end in ascending order and lie inside the log."""
        numbers = _from_big_endian(_without_zero_tail(raw, OFFSET_ENTRY_BYTES))
        index = cls(base_offset)
        index.relative_offsets = numbers[0::2]
        index.positions = numbers[1::2]
        index.written = len(index.positions)
        index.exact = index.written * OFFSET_ENTRY_BYTES == len(raw)
        if index.written:
            relative, position = index.relative_offsets[-1], index.positions[-1]
            if relative < 0 or not 0 < position < log_size:
                raise CorruptIndex(f"last entry (offset +{relative}, position {position}) lies outside a log of {log_size} bytes")
            if index.written > 1 and (index.relative_offsets[0] > relative or index.positions[0] >= position):
                raise CorruptIndex("entries do not ascend")
        return index

    def __len__(self) -> int:
        return len(self.positions)

    def is_written(self) -> bool:
        """Whether the file has exactly these entries."""
        return self.exact and self.written == len(self.positions)

    def mark_written(self) -> None:
        """The caller will write exactly these entries."""
        self.written = len(self.positions)
        self.exact = True

    def append(self, offset: int, position: int) -> None:
        """``offset``: the last offset of the batch that starts at ``position``."""
        # The list that is searched is extended last: a search in another thread that finds an entry finds its position as well.
        self.positions.append(position)
        self.relative_offsets.append(offset - self.base_offset)

    def entry_at_or_before(self, offset: int) -> tuple[int, int]:
        """(The start of a batch from which a forward scan finds ``offset``, that batch's last offset); (0, -1) when there is
        no entry that early."""
        found = bisect_right(self.relative_offsets, offset - self.base_offset) - 1
        return (self.positions[found], self.relative_offsets[found] + self.base_offset) if found >= 0 else (0, -1)

    def last_boundary(self, above: int, limit: int) -> int:
        """The greatest indexed batch start in (above, limit]; -1 when there is none."""
        found = bisect_right(self.positions, limit) - 1
        if found < 0 or self.positions[found] <= above:
            return -1
        return self.positions[found]

    def last_offset_from(self, position: int, otherwise: int) -> int:
        """One past the last offset of the first indexed batch at or past ``position``; ``otherwise`` when there is none."""
        found = bisect_left(self.positions, position)
        return self.relative_offsets[found] + self.base_offset + 1 if found < len(self.relative_offsets) else otherwise

    def truncate_to_position(self, position: int) -> None:
        """Removes entries at or past ``position``."""
        keep = bisect_left(self.positions, position)
        del self.positions[keep:]
        del self.relative_offsets[keep:]
        if keep < self.written:
            self.written, self.exact = keep, False

    def encode(self, start: int = 0) -> bytes:
        """Entries from index ``start`` on, in file format."""
        count = len(self.positions) - start
        numbers = array("i", bytes(8 * count))
        numbers[0::2] = self.relative_offsets[start:]
        numbers[1::2] = self.positions[start:]
        return _to_big_endian(numbers)


class TimeIndex:
    """The greatest timestamp so far and the offset of its batch, recorded where the offset index has entries."""

    __slots__ = ("base_offset", "exact", "relative_offsets", "timestamps", "written")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.timestamps = array("q")
        self.relative_offsets = array("i")
        self.written = 0
        self.exact = False

    @classmethod
    def parse(cls, base_offset: int, raw: bytes) -> TimeIndex:
        """Parses a file. CorruptIndex unless the entries are whole and ascending."""
        numbers = _from_big_endian(_without_zero_tail(raw, TIME_ENTRY_BYTES))
        index = cls(base_offset)
        index.relative_offsets = numbers[2::3]
        count = index.written = len(index.relative_offsets)
        index.exact = count * TIME_ENTRY_BYTES == len(raw)
        halves = array("i", bytes(8 * count))
        halves[0::2], halves[1::2] = (numbers[1::3], numbers[0::3]) if _LITTLE else (numbers[0::3], numbers[1::3])
        index.timestamps.frombytes(halves.tobytes())
        if count:
            last = (index.timestamps[-1], index.relative_offsets[-1])
            if last[1] < 0 or last < (index.timestamps[0], index.relative_offsets[0]):
                raise CorruptIndex(f"last entry (timestamp {last[0]}, offset +{last[1]}) lies before the first")
        return index

    def __len__(self) -> int:
        return len(self.timestamps)

    def is_written(self) -> bool:
        """Whether the file has exactly these entries."""
        return self.exact and self.written == len(self.timestamps)

    def mark_written(self) -> None:
        """The caller will write exactly these entries."""
        self.written = len(self.timestamps)
        self.exact = True

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Adds an entry if the timestamp is new; a segment's greatest timestamp so far never decreases."""
        if timestamp > (self.timestamps[-1] if self.timestamps else -1):
            self.relative_offsets.append(offset - self.base_offset)
            self.timestamps.append(timestamp)

    def last(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (-1, base offset) without entries."""
        if not self.timestamps:
            return -1, self.base_offset
        return self.timestamps[-1], self.base_offset + self.relative_offsets[-1]

    def offset_before(self, timestamp: int) -> int:
        """An offset before which no batch reaches ``timestamp``: that of the last entry at or below it."""
        found = bisect_right(self.timestamps, timestamp) - 1
        return self.base_offset + (self.relative_offsets[found] if found >= 0 else 0)

    def truncate_to_offset(self, offset: int) -> None:
        """Removes entries whose batch is at or past ``offset``."""
        keep = bisect_left(self.relative_offsets, offset - self.base_offset)
        del self.timestamps[keep:]
        del self.relative_offsets[keep:]
        if keep < self.written:
            self.written, self.exact = keep, False

    def encode(self, start: int = 0) -> bytes:
        """Entries from index ``start`` on, in file format."""
        count = len(self.timestamps) - start
        halves = array("i")
        halves.frombytes(self.timestamps[start:].tobytes())
        numbers = array("i", bytes(12 * count))
        numbers[0::3] = halves[1::2] if _LITTLE else halves[0::2]
        numbers[1::3] = halves[0::2] if _LITTLE else halves[1::2]
        numbers[2::3] = self.relative_offsets[start:]
        return _to_big_endian(numbers)


class Indexer:
    """Builds a segment's indexes from its batches, by the rule of ``LogSegment.note_batch``."""

    __slots__ = ("_interval", "_since", "max_timestamp", "max_timestamp_offset", "offsets", "times")

    def __init__(self, base_offset: int, interval: int) -> None:
        self.offsets = OffsetIndex(base_offset)
        self.times = TimeIndex(base_offset)
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        self._interval = interval
        self._since = 0

    def add(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Adds the next batch of the file."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = max_timestamp, last_offset
        if self._since > self._interval:
            self.offsets.append(last_offset, position)
            self.times.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self._since = 0
        self._since += size

    def finish(self) -> None:
        """Adds the last entry of the time index."""
        self.times.maybe_append(self.max_timestamp, self.max_timestamp_offset)


class AbortedTransaction(NamedTuple):
    """One entry of a ``.txnindex``: a read_committed reader drops this producer's records in [first_offset, last_offset]."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int

    def encode(self) -> bytes:
        """The 34 bytes of an entry, version 0."""
        return _TXN_ENTRY.pack(0, *self)


def parse_transaction_index(base_offset: int, raw: bytes) -> list[AbortedTransaction]:
    """The entries of a ``.txnindex``. CorruptIndex when they are incomplete, of another version or out of order."""
    if len(raw) % TXN_ENTRY_BYTES:
        raise CorruptIndex(f"{len(raw)} bytes are no multiple of {TXN_ENTRY_BYTES}")
    entries: list[AbortedTransaction] = []
    for version, *fields in _TXN_ENTRY.iter_unpack(raw):
        entry = AbortedTransaction(*fields)
        if version != 0 or entry.last_offset < base_offset or (entries and entry.last_offset <= entries[-1].last_offset):
            raise CorruptIndex(f"entry {entry} of version {version} does not fit a segment from offset {base_offset}")
        entries.append(entry)
    return entries


def read_last_time_entry(fs: FileSystem, path: str, base_offset: int) -> tuple[int, int] | None:
    """(timestamp, offset) of a time index's last entry, read from the end of its file; None when it cannot be determined."""
    if not fs.exists(path):
        return None
    file = fs.open(path, write=False)
    size = file.size()
    raw = file.read(size - TIME_ENTRY_BYTES, TIME_ENTRY_BYTES) if size >= TIME_ENTRY_BYTES else b""
    file.close()
    if size % TIME_ENTRY_BYTES or not raw.strip(b"\0"):
        return None
    last = TimeIndex.parse(base_offset, raw).last()
    return last if last[0] >= 0 else None
