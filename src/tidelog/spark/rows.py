"""Rows in Arrow's memory layout into the records of a batch: the plain twin of ``_rows.pyx``, which is faster.

Both take columns in Arrow's layout and append the encoded records of chosen rows to the body of a batch. A test compares the two
byte for byte; without a compiler this one does all the work.

Invariants: a record is appended whole or not at all; no offset outside of the data is followed.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from tidelog.client.partitioning import partition_of
from tidelog.model.ports import Buffer
from tidelog.records.builder import RecordData, encode_record

RowHeaders = Sequence[tuple[bytes, bytes | None]]


class Bytes(NamedTuple):
    """A column of bytes or text: int32 offsets (rows + 1), data, and the validity bitmap or None when nothing is null."""

    offsets: Buffer
    data: Buffer
    valid: Buffer | None


class Rows(NamedTuple):
    """The columns of ``rows`` rows. ``timestamps``: int64 milliseconds. None: a column of nulls, or no headers."""

    rows: int
    timestamps: Buffer
    key: Bytes | None
    value: Bytes | None
    headers: Sequence[RowHeaders | None] | None


class BadRows(ValueError):
    """Columns that contradict themselves."""


def _reader(column: Bytes | None, count: int) -> Any:
    if column is None:
        return lambda row: None
    offsets, data, valid = memoryview(column.offsets).cast("B").cast("i"), memoryview(column.data), column.valid
    if len(offsets) <= count:
        raise BadRows(f"{len(offsets)} offsets for {count} rows")
    bits = None if valid is None else memoryview(valid)

    def read(row: int) -> bytes | None:
        if bits is not None and not bits[row >> 3] >> (row & 7) & 1:
            return None
        start, end = offsets[row], offsets[row + 1]
        if not 0 <= start <= end <= len(data):
            raise BadRows(f"row {row} lies at {start} to {end} of {len(data)} bytes")
        return bytes(data[start:end])

    return read


def plain_partitions(key: Bytes | None, count: int, partitions: int) -> array[int]:
    """The partition of each key in Java's producer; -1 for rows without a key."""
    read = _reader(key, count)
    found = array("i")
    for row in range(count):
        value = read(row)
        found.append(-1 if value is None else partition_of(value, partitions))
    return found


class PlainEncoder:
    """Encodes rows of one Arrow batch."""

    def __init__(self, rows: Rows) -> None:
        self._key, self._value = _reader(rows.key, rows.rows), _reader(rows.value, rows.rows)
        self._timestamps = memoryview(rows.timestamps).cast("B").cast("q")
        self._headers = rows.headers
        self._rows = rows.rows
        if len(self._timestamps) < rows.rows:
            raise BadRows(f"{len(self._timestamps)} timestamps for {rows.rows} rows")

    def append(
        self, body: bytearray, chosen: array[int], start: int, base_timestamp: int, first_delta: int, max_bytes: int
    ) -> tuple[int, int]:
        """Append records for the rows ``chosen[start:]`` while ``body`` has ``max_bytes`` at most, and at least its first
        record.

        Returns (how many of ``chosen`` are done, the highest timestamp that was appended, -2**63 for none). The first one gets
        the offset delta ``first_delta``.
        """
        highest = -(1 << 63)
        position = start
        while position < len(chosen):
            row = chosen[position]
            if not 0 <= row < self._rows:
                raise BadRows(f"there is no row {row} among {self._rows}")
            timestamp = self._timestamps[row]
            headers = () if self._headers is None else self._headers[row] or ()
            if any(key is None for key, _ in headers):
                raise BadRows("a header without a key")
            record = RecordData(self._key(row), self._value(row), timestamp, tuple(headers))
            encoded = encode_record(record, first_delta + position - start, timestamp - base_timestamp)
            if body and len(body) + len(encoded) > max_bytes:
                break
            body += encoded
            highest = max(highest, timestamp)
            position += 1
        return position, highest


try:
    # At the end: it needs what is above.
    import tidelog.spark._rows as _compiled
except ImportError:
    _compiled = None


def encoder(rows: Rows) -> Any:
    """The fastest encoder that is installed."""
    return PlainEncoder(rows) if _compiled is None else _compiled.Encoder(rows)


def partitions_of(key: Bytes | None, count: int, partitions: int) -> Any:
    """``plain_partitions``, as fast as the installation allows."""
    return plain_partitions(key, count, partitions) if _compiled is None else _compiled.partitions_of(key, count, partitions)
