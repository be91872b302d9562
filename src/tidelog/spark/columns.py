"""Records of one batch appended to columns in Arrow's memory layout: the plain twin of ``_columns.pyx``, which is faster.

Both take the decompressed records of a batch and add a row to each wanted column. A test compares their buffers byte for byte,
and their errors on garbage; without a compiler this one does all the work.

Layout, little-endian, as Arrow has it: ``offset`` and ``timestamp`` (microseconds) are int64. ``key`` and ``value`` are int32
offsets (rows + 1), data and a validity bitmap (bit set: there is a value). ``headers`` is a list: int32 offsets of rows, a bitmap
of rows that have any, then the columns of all keys (UTF-8; what is not becomes U+FFFD, as Java reads it) and of all values.

Invariants: an error leaves the columns as they were; every length is checked against the record that holds it before anything
is read; a batch has exactly as many records as it says, and they fill it to the last byte.
"""

from __future__ import annotations

import sys
from array import array
from typing import NamedTuple

from tidelog.records.batch import Buffer, CorruptBatch
from tidelog.records.record import read_field, read_varint, wrap_long

MAX_COLUMN_BYTES = 0x7FFFFFFF
"""The limit of Arrow's 32-bit offsets: take the columns out before it."""
_MAX_MS = ((1 << 63) - 1) // 1000
_Record = tuple[int, int, bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]


class Wanted(NamedTuple):
    """The columns that are asked for."""

    offset: bool = True
    timestamp: bool = True
    key: bool = True
    value: bool = True
    headers: bool = False


class Strings(NamedTuple):
    """A column of bytes or text: offsets, data, validity bitmap, and how many are null."""

    offsets: bytes | bytearray
    data: bytes | bytearray
    valid: bytes | bytearray
    nulls: int


class HeaderColumn(NamedTuple):
    """A column of headers: offsets and bitmap of the lists, how many are null, and all keys and values one after another."""

    offsets: bytes | bytearray
    valid: bytes | bytearray
    nulls: int
    pairs: int
    keys: Strings
    values: Strings


class Taken(NamedTuple):
    """Columns of ``rows`` rows; None for one that was not wanted."""

    rows: int
    offset: bytes | bytearray | None
    timestamp: bytes | bytearray | None
    key: Strings | None
    value: Strings | None
    headers: HeaderColumn | None


class PlainColumns:
    """Columns that grow batch by batch until they are taken."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._clear()

    def _clear(self) -> None:
        self.rows = 0
        self.nbytes = 0
        self._offsets: list[int] = []
        self._timestamps: list[int] = []
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        self._headers: list[list[tuple[bytes, bytes | None]]] = []

    def expect(self, rows: int, size: int) -> None:
        """About how many rows and bytes come before the next ``take``: the compiled twin makes room for them at once."""

    def append(
        self,
        body: Buffer,
        count: int,
        base_offset: int,
        base_timestamp: int,
        append_time: int | None,
        first_offset: int,
        end_offset: int,
    ) -> int:
        """Add those of the ``count`` records of ``body`` that are from ``first_offset`` to before ``end_offset``; how many were.

        ``append_time`` (ms) is every record's timestamp where the broker's clock counts. CorruptBatch, and nothing is added, when
        ``body`` does not hold that many records; OverflowError when the columns must be taken out first.
        """
        data = bytes(body)
        if not 0 <= count <= len(data):
            raise CorruptBatch(f"{count} records claimed in {len(data)} bytes")
        if self.nbytes + len(data) > MAX_COLUMN_BYTES:
            raise OverflowError(f"{self.nbytes} bytes of columns and {len(data)} more: take the columns out first")
        records = [
            (offset, _micros(append_time if append_time is not None else base_timestamp + delta), key, value, headers)
            for delta, offset_delta, key, value, headers in _records(data, count)
            if first_offset <= (offset := wrap_long(base_offset + offset_delta)) < end_offset
        ]
        wanted = self._wanted
        if wanted.offset:
            self._offsets += [record[0] for record in records]
        if wanted.timestamp:
            self._timestamps += [record[1] for record in records]
        if wanted.key:
            self._keys += [record[2] for record in records]
        if wanted.value:
            self._values += [record[3] for record in records]
        if wanted.headers:
            self._headers += [record[4] for record in records]
        self.rows += len(records)
        if records:
            self.nbytes += len(data)
        return len(records)

    def take(self) -> Taken:
        """The columns; the next rows begin new ones."""
        wanted = self._wanted
        taken = Taken(
            self.rows,
            _packed("q", self._offsets) if wanted.offset else None,
            _packed("q", self._timestamps) if wanted.timestamp else None,
            _strings(self._keys) if wanted.key else None,
            _strings(self._values) if wanted.value else None,
            _header_column(self._headers) if wanted.headers else None,
        )
        self._clear()
        return taken


def _records(data: bytes, count: int) -> list[_Record]:
    """(timestamp delta, offset delta, key, value, headers) of each record."""
    found: list[_Record] = []
    pos, size = 0, len(data)
    try:
        for _ in range(count):
            length, pos = read_varint(data, pos)
            end = pos + length
            if not pos < end <= size:
                raise CorruptBatch(f"record of {length} bytes where {size - pos} are left")
            timestamp_delta, pos = read_varint(data, pos + 1)
            offset_delta, pos = read_varint(data, pos)
            key, pos = read_field(data, pos, end)
            value, pos = read_field(data, pos, end)
            headers, pos = _read_headers(data, pos, end)
            if pos != end:
                raise CorruptBatch(f"record ends {end - pos} bytes before its length says")
            found.append((timestamp_delta, offset_delta, key, value, headers))
    except IndexError:
        raise CorruptBatch("records end inside a record") from None
    if pos != size:
        raise CorruptBatch(f"{size - pos} bytes after the last of {count} records")
    return found


def _read_headers(data: bytes, pos: int, end: int) -> tuple[list[tuple[bytes, bytes | None]], int]:
    count, pos = read_varint(data, pos)
    if not 0 <= count <= (end - pos) // 2:
        raise CorruptBatch(f"{count} headers claimed in {end - pos} bytes")
    headers = []
    for _ in range(count):
        key, pos = read_field(data, pos, end)
        if key is None:
            raise CorruptBatch("a header without a key")
        value, pos = read_field(data, pos, end)
        headers.append((key, value))
    return headers, pos


def _micros(timestamp: int) -> int:
    """Microseconds for milliseconds, clamped to 64 bits."""
    return max(-_MAX_MS, min(_MAX_MS, wrap_long(timestamp))) * 1000


def _packed(kind: str, numbers: list[int]) -> bytes:
    packed = array(kind, numbers)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def _bitmap(there: list[bool]) -> bytes:
    bits = bytearray((len(there) + 7) // 8)
    for index, is_there in enumerate(there):
        if is_there:
            bits[index >> 3] |= 1 << (index & 7)
    return bytes(bits)


def _strings(values: list[bytes | None]) -> Strings:
    ends = [0]
    position = 0
    for value in values:
        if value is not None:
            position += len(value)
        ends.append(position)
    there = [value is not None for value in values]
    return Strings(_packed("i", ends), b"".join(filter(None, values)), _bitmap(there), there.count(False))


def utf8(key: bytes) -> bytes:
    """The key of a header as UTF-8: malformed bytes become U+FFFD."""
    return key.decode("utf-8", "replace").encode()


def _header_column(rows: list[list[tuple[bytes, bytes | None]]]) -> HeaderColumn:
    ends = [0]
    for headers in rows:
        ends.append(ends[-1] + len(headers))
    there = [bool(headers) for headers in rows]
    keys: list[bytes | None] = [utf8(key) for headers in rows for key, _ in headers]
    values = [value for headers in rows for _, value in headers]
    return HeaderColumn(_packed("i", ends), _bitmap(there), there.count(False), ends[-1], _strings(keys), _strings(values))


def columns(wanted: Wanted) -> PlainColumns:
    """The compiled columns if they were built, else the plain ones."""
    try:
        from tidelog.spark._columns import CompiledColumns
    except ImportError:
        return PlainColumns(wanted)
    compiled: PlainColumns = CompiledColumns(wanted)
    return compiled
