"""The records inside a batch: iterated, or walked without copying what they carry.

A record (message format v2) is: length varint, attributes i8 (unused), timestamp delta varlong, offset delta varint,
key length varint (-1 null) and key, value length varint (-1 null) and value, header count varint, and per header: key
length varint and UTF-8 key, value length varint (-1 null) and value. All varints are zig-zag. Deltas are relative to the
batch's base_timestamp and base_offset; with LogAppendTime every timestamp is the batch's max_timestamp.

Invariants: every length is checked against what is left before anything is sliced; a batch yields exactly its records_count
records and they fill it to the last byte; whatever else the bytes hold raises ``CorruptBatch``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tidelog.records.batch import HEADER_SIZE, BatchHeader, Buffer, CorruptBatch, read_header
from tidelog.records.compression import DEFAULT_MAX_DECOMPRESSED, decompress

Headers = tuple[tuple[str | bytes, bytes | None], ...]

SMALLEST_RECORD = 7
"""Bytes of a record with null key, null value and no headers; bounds how many records a body can hold."""
MIN_LONG = -(1 << 63)
MAX_LONG = (1 << 63) - 1


def wrap_long(value: int) -> int:
    """``value`` in 64 bits, as the JVM adds: a hostile timestamp delta must read here as it reads there."""
    return (value - MIN_LONG & 0xFFFFFFFFFFFFFFFF) + MIN_LONG


class Record(NamedTuple):
    """One record. ``timestamp`` in ms, -1 for none. Header keys that are not UTF-8 keep their bytes (surrogateescape)."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class RecordSpan(NamedTuple):
    """Where a record lies in its decompressed body, with what compaction and validation ask of it.

    ``start``/``end`` bound the record without its length prefix, ``tail`` is where its key length starts. ``key_start`` and
    ``key_end`` bound the key; a null key has ``key_start`` -1.
    """

    start: int
    end: int
    timestamp_delta: int
    offset_delta: int
    tail: int
    key_start: int
    key_end: int
    has_value: bool


def records_body(buf: Buffer, header: BatchHeader, max_decompressed: int = DEFAULT_MAX_DECOMPRESSED) -> bytes:
    """The batch's records, decompressed; CorruptBatch (DecompressionBomb past ``max_decompressed``)."""
    view = memoryview(buf)[header.position + HEADER_SIZE : header.position + header.size]
    body = decompress(header.codec, view, max_decompressed) if header.codec else bytes(view)
    if not 0 <= header.records_count * SMALLEST_RECORD <= len(body):
        raise CorruptBatch(f"{header.records_count} records claimed in {len(body)} bytes")
    return body


def read_varint(data: bytes, pos: int) -> tuple[int, int]:
    """A zig-zag varint of up to 64 bits and the position after it. IndexError at the end of ``data``."""
    byte = data[pos]
    pos += 1
    value = byte & 0x7F
    shift = 7
    while byte & 0x80:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > 70:
            raise CorruptBatch(f"varint of more than 10 bytes at position {pos}")
    value &= 0xFFFFFFFFFFFFFFFF
    return (value >> 1) ^ -(value & 1), pos


def read_field(data: bytes, pos: int, end: int) -> tuple[bytes | None, int]:
    """Length-prefixed bytes that must end by ``end``; -1 is null."""
    size = data[pos]
    if size & 0x80:
        size, pos = read_varint(data, pos)
    else:
        size = (size >> 1) ^ -(size & 1)
        pos += 1
    if size < 0:
        if size != -1:
            raise CorruptBatch(f"length {size} inside a record")
        return None, pos
    stop = pos + size
    if stop > end:
        raise CorruptBatch(f"field of {size} bytes in a record that has {end - pos} left")
    return data[pos:stop], stop


def _read_headers(data: bytes, pos: int, end: int) -> Headers:
    count, pos = read_varint(data, pos)
    if not 0 <= count <= (end - pos) // 2:
        raise CorruptBatch(f"{count} headers claimed in {end - pos} bytes")
    found: list[tuple[str | bytes, bytes | None]] = []
    for _ in range(count):
        key, pos = read_field(data, pos, end)
        if key is None:
            raise CorruptBatch("a header without a key")
        value, pos = read_field(data, pos, end)
        found.append((key.decode("utf-8", "surrogateescape"), value))
    if pos != end:
        raise CorruptBatch(f"record ends {end - pos} bytes before its length says")
    return tuple(found)


def iter_records(
    buf: Buffer, header: BatchHeader | None = None, *, max_decompressed: int = DEFAULT_MAX_DECOMPRESSED
) -> Iterator[Record]:
    """The records of the batch at ``header`` (at the start of ``buf`` without one), in order, checked as far as they are read."""
    if header is None:
        header = read_header(buf)
    data = records_body(buf, header, max_decompressed)
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.log_append_time else None
    pos, size = 0, len(data)
    try:
        for _ in range(header.records_count):
            length, pos = read_varint(data, pos)
            end = pos + length
            if not pos < end <= size:
                raise CorruptBatch(f"record of {length} bytes where {size - pos} are left")
            timestamp_delta, pos = read_varint(data, pos + 1)
            offset_delta, pos = read_varint(data, pos)
            key, pos = read_field(data, pos, end)
            value, pos = read_field(data, pos, end)
            headers: Headers = ()
            if pos + 1 == end and data[pos] == 0:
                pos = end
            else:
                headers = _read_headers(data, pos, end)
                pos = end
            timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
            if not MIN_LONG <= timestamp <= MAX_LONG:
                timestamp = wrap_long(timestamp)
            yield Record(base_offset + offset_delta, timestamp, key, value, headers)
    except IndexError:
        raise CorruptBatch("records end inside a record") from None
    if pos != size:
        raise CorruptBatch(f"{size - pos} bytes after the last of {header.records_count} records")


def iter_spans(data: bytes, count: int) -> Iterator[RecordSpan]:
    """The ``count`` records of a decompressed body without copying keys, values or headers; every length is checked.

    Compaction goes through millions of records here: varints of one byte are read in line, and tuples made without their
    class's own constructor.
    """
    pos, size = 0, len(data)
    make = tuple.__new__
    try:
        for _ in range(count):
            length = data[pos]
            if length & 0x80:
                length, pos = read_varint(data, pos)
            else:
                length = (length >> 1) ^ -(length & 1)
                pos += 1
            start, end = pos, pos + length
            if not start < end <= size:
                raise CorruptBatch(f"record of {length} bytes where {size - start} are left")
            timestamp_delta = data[pos + 1]
            if timestamp_delta & 0x80:
                timestamp_delta, pos = read_varint(data, pos + 1)
            else:
                timestamp_delta = (timestamp_delta >> 1) ^ -(timestamp_delta & 1)
                pos += 2
            offset_delta, tail = read_varint(data, pos) if data[pos] & 0x80 else ((data[pos] >> 1) ^ -(data[pos] & 1), pos + 1)
            key_size, pos = read_varint(data, tail) if data[tail] & 0x80 else ((data[tail] >> 1) ^ -(data[tail] & 1), tail + 1)
            key_start, key_end = (-1, pos) if key_size == -1 else (pos, pos + key_size)
            value_size, pos = read_varint(data, key_end)
            after = pos + value_size if value_size > 0 else pos
            if key_size < -1 or value_size < -1 or after >= end:
                raise CorruptBatch(f"key of {key_size} and value of {value_size} bytes in a record of {length}")
            if data[after] or after + 1 != end:
                _skip_headers(data, after, end)
            yield make(RecordSpan, (start, end, timestamp_delta, offset_delta, tail, key_start, key_end, value_size >= 0))
            pos = end
    except IndexError:
        raise CorruptBatch("records end inside a record") from None
    if pos != size:
        raise CorruptBatch(f"{size - pos} bytes after the last of {count} records")


def _skip_headers(data: bytes, pos: int, end: int) -> None:
    """Checks that headers lie between ``pos`` and ``end`` and fill it."""
    count, pos = read_varint(data, pos)
    if not 0 <= count <= (end - pos) // 2:
        raise CorruptBatch(f"{count} headers claimed in {end - pos} bytes")
    for _ in range(count):
        key_size, pos = read_varint(data, pos)
        if not 0 <= key_size < end - pos:
            raise CorruptBatch(f"header key of {key_size} bytes where {end - pos} are left")
        value_size, pos = read_varint(data, pos + key_size)
        if not -1 <= value_size <= end - pos:
            raise CorruptBatch(f"header value of {value_size} bytes where {end - pos} are left")
        pos += max(value_size, 0)
    if pos != end:
        raise CorruptBatch(f"record ends {end - pos} bytes before its length says")


class RecordScan(NamedTuple):
    """What a walk over a batch's records found; indexes count from 0.

    ``consecutive``: offset deltas are 0, 1, 2, ... ``max_timestamp``: the latest in ms, -1 without any. ``keyless``: records
    without a key. ``out_of_bounds``: (index, timestamp) of those outside the bounds given.
    """

    consecutive: bool
    max_timestamp: int
    keyless: tuple[int, ...]
    out_of_bounds: tuple[tuple[int, int], ...]


def validate_records(body: bytes, header: BatchHeader, *, oldest_ms: int, newest_ms: int) -> RecordScan:
    """Walks every record of a decompressed body. CorruptBatch when they are not what the header says.

    A timestamp of -1 (none) is in bounds, as in Kafka.
    """
    consecutive = True
    max_timestamp = -1
    keyless: list[int] = []
    outside: list[tuple[int, int]] = []
    base_timestamp = header.base_timestamp
    append_time = header.max_timestamp if header.log_append_time else None
    for index, span in enumerate(iter_spans(body, header.records_count)):
        if span.offset_delta != index:
            consecutive = False
        if span.key_start < 0:
            keyless.append(index)
        timestamp = base_timestamp + span.timestamp_delta if append_time is None else append_time
        if not MIN_LONG <= timestamp <= MAX_LONG:
            timestamp = wrap_long(timestamp)
        max_timestamp = max(max_timestamp, timestamp)
        if not oldest_ms <= timestamp <= newest_ms and timestamp != -1:
            outside.append((index, timestamp))
    return RecordScan(consecutive, max_timestamp, tuple(keyless), tuple(outside))
