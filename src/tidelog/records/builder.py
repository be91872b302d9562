"""Record batches made from records: by coordinators and the controller, by recompression, and by compaction.

``build_batch`` numbers records from ``base_offset`` without gaps, as a producer does. ``rebuild_batch`` keeps what compaction
must keep: each record's own offset, the batch's base and last offset (so the last sequence number survives), producer fields,
epoch and codec; ``empty_batch`` is the header alone. Both set the delete horizon of KIP-534: attribute bit 6, with the horizon in
base_timestamp and timestamp deltas relative to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from tidelog.records.batch import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_POSITION,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL_BIT,
    BatchHeader,
)
from tidelog.records.checksum import crc32c
from tidelog.records.compression import Codec, compress
from tidelog.records.record import MAX_LONG, MIN_LONG, Headers, Record, RecordSpan, iter_spans, wrap_long

NO_TIMESTAMP = -1
_CRC = Struct(">I")
_SHORT_VARINTS = [bytes((value,)) for value in range(128)]
_NULL = b"\x01"
_NO_HEADERS = b"\x00"


class RecordData(NamedTuple):
    """What a record carries before it has an offset. ``timestamp`` in ms since the epoch, -1 for none."""

    key: bytes | None
    value: bytes | None
    timestamp: int = NO_TIMESTAMP
    headers: Headers = ()


def write_varint(value: int) -> bytes:
    """``value`` as a zig-zag varint of at most 64 bits; the difference of two longs wraps as it does in the JVM."""
    if not MIN_LONG <= value <= MAX_LONG:
        value = wrap_long(value)
    value = (value << 1) ^ (value >> 63)
    if value < 0x80:
        return _SHORT_VARINTS[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _write_headers(headers: Headers) -> bytes:
    parts = [write_varint(len(headers))]
    for key, value in headers:
        raw = key.encode("utf-8", "surrogateescape") if isinstance(key, str) else key
        parts += (write_varint(len(raw)), raw)
        parts += (_NULL,) if value is None else (write_varint(len(value)), value)
    return b"".join(parts)


def encode_record(record: RecordData | Record, offset_delta: int, timestamp_delta: int) -> bytes:
    """One record with its length prefix."""
    key, value = record.key, record.value
    parts = [b"\0", write_varint(timestamp_delta), write_varint(offset_delta)]
    parts += (_NULL,) if key is None else (write_varint(len(key)), key)
    parts += (_NULL,) if value is None else (write_varint(len(value)), value)
    parts.append(_write_headers(record.headers) if record.headers else _NO_HEADERS)
    body = b"".join(parts)
    return write_varint(len(body)) + body


def assemble(
    body: bytes,
    count: int,
    *,
    base_offset: int,
    last_offset_delta: int,
    leader_epoch: int,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
) -> bytearray:
    """A batch around ``body`` (``count`` encoded records, already compressed as ``attributes`` say), with its CRC."""
    batch = bytearray(HEADER_SIZE + len(body))
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        HEADER_SIZE + len(body) - LOG_OVERHEAD,
        leader_epoch,
        MAGIC,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    batch[HEADER_SIZE:] = body
    _CRC.pack_into(batch, CRC_POSITION, crc32c(memoryview(batch)[ATTRIBUTES_POSITION:]))
    return batch


def build_batch(
    records: Sequence[RecordData],
    *,
    base_offset: int = 0,
    codec: int = Codec.NONE,
    level: int | None = None,
    log_append_time: bool = False,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """A batch of ``records``, numbered from ``base_offset``. ValueError without records: only compaction writes empty batches."""
    if not records:
        raise ValueError("a batch of no records: give at least one, or use empty_batch")
    first = records[0].timestamp
    base_timestamp = first if delete_horizon_ms is None else delete_horizon_ms
    body = b"".join([encode_record(record, delta, record.timestamp - base_timestamp) for delta, record in enumerate(records)])
    return assemble(
        body if codec == Codec.NONE else compress(codec, body, level),
        len(records),
        base_offset=base_offset,
        last_offset_delta=len(records) - 1,
        leader_epoch=leader_epoch,
        attributes=codec
        | (LOG_APPEND_TIME_BIT if log_append_time else 0)
        | (TRANSACTIONAL_BIT if transactional else 0)
        | (CONTROL_BIT if control else 0)
        | (0 if delete_horizon_ms is None else DELETE_HORIZON_BIT),
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in records),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


def renumber_records(body: bytes, count: int) -> bytes:
    """A decompressed body whose records get the offset deltas 0, 1, 2, ...; all else in them stays as it is."""
    parts: list[bytes] = []
    for delta, span in enumerate(iter_spans(body, count)):
        head = body[span.start : span.start + 1] + write_varint(span.timestamp_delta) + write_varint(delta)
        rest = body[span.tail : span.end]
        parts += (write_varint(len(head) + len(rest)), head, rest)
    return b"".join(parts)


def rebuild_batch(
    header: BatchHeader, body: bytes, kept: Sequence[RecordSpan], *, delete_horizon_ms: int | None = None
) -> bytearray:
    """The batch of ``header`` with only the records ``kept`` of its decompressed ``body``, compressed with the same codec.

    Each keeps its offset and timestamp. ``delete_horizon_ms`` None keeps the horizon that the batch has, if any. ValueError
    when nothing is kept.
    """
    if not kept:
        raise ValueError("no records to keep: use empty_batch")
    horizon = header.delete_horizon_ms if delete_horizon_ms is None else delete_horizon_ms
    append_time = header.max_timestamp if header.log_append_time else None
    timestamps = [header.base_timestamp + span.timestamp_delta if append_time is None else append_time for span in kept]
    base_timestamp = timestamps[0] if horizon is None else horizon
    parts: list[bytes] = []
    for span, timestamp in zip(kept, timestamps, strict=True):
        head = b"\0" + write_varint(timestamp - base_timestamp) + write_varint(span.offset_delta)
        rest = body[span.tail : span.end]
        parts += (write_varint(len(head) + len(rest)), head, rest)
    rebuilt = b"".join(parts)
    return assemble(
        rebuilt if header.codec == Codec.NONE else compress(header.codec, rebuilt),
        len(kept),
        base_offset=header.base_offset,
        last_offset_delta=header.last_offset_delta,
        leader_epoch=header.leader_epoch,
        attributes=header.attributes & ~DELETE_HORIZON_BIT | (0 if horizon is None else DELETE_HORIZON_BIT),
        base_timestamp=wrap_long(base_timestamp),
        max_timestamp=wrap_long(max(timestamps)),
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )


def empty_batch(header: BatchHeader) -> bytearray:
    """The header alone: offsets, producer fields and max_timestamp of a batch whose records are all gone."""
    return assemble(
        b"",
        0,
        base_offset=header.base_offset,
        last_offset_delta=header.last_offset_delta,
        leader_epoch=header.leader_epoch,
        attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT),
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
