"""The header of a record batch, magic 2: read, checked and patched in place; records stay opaque bytes.

Layout (Kafka's message format v2, KIP-98), big-endian: base_offset i64, batch_length i32 (the bytes after this field),
partition_leader_epoch i32, magic i8, crc u32 over everything after it, attributes i16, last_offset_delta i32, base_timestamp i64,
max_timestamp i64, producer_id i64, producer_epoch i16, base_sequence i32, records_count i32, then the records.

Invariants: base_offset and leader epoch lie outside the CRC, so assigning them never touches it. A ``BatchHeader`` that came
from here describes a batch that lies whole inside the buffer it was read from; what its numbers mean is judged elsewhere
(``storage.validation``). Anything else raises ``CorruptBatch``, and nothing but ``CorruptBatch``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from tidelog.records.checksum import crc32c

HEADER_SIZE = 61
"""Bytes of a batch before its first record."""
LOG_OVERHEAD = 12
"""Bytes before those that ``batch_length`` counts."""
MAGIC = 2
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21
FLAGS_POSITION = 22
"""The low byte of the attributes, which holds the codec and all bits below."""
CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40
MAX_SEQUENCE = 0x7FFFFFFF

HEADER = Struct(">qiibIhiqqqhii")
SPAN = Struct(">qi11xi8xq")
"""Base offset, batch length, last offset delta and max timestamp: the fields that a search for an offset or a time needs."""
PRODUCER_POSITION = 43
PRODUCER = Struct(">qhi")
"""Producer id, producer epoch and base sequence, from ``PRODUCER_POSITION`` on."""
_OFFSET = Struct(">q")
_EPOCH = Struct(">i")
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_MAX_TIMESTAMP_POSITION = 35

Buffer = bytes | bytearray | memoryview


class CorruptBatch(ValueError):
    """Bytes that are no record batch; the text says which rule they break and where."""


class TruncatedBatch(CorruptBatch):
    """A batch that begins inside the buffer and does not end in it: the torn tail of a log, or a read cut short."""


@dataclass(slots=True)
class BatchHeader:
    """The header's fields, and where in its buffer the batch starts. Mutable: patching the bytes updates the header too.

    ``size`` is the whole batch in bytes (batch_length + 12). ``crc`` is what the batch claims, not what was computed.
    """

    position: int
    base_offset: int
    size: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def end_position(self) -> int:
        """The first byte after the batch."""
        return self.position + self.size

    @property
    def codec(self) -> int:
        """The codec's number, 0 to 7; ``compression.Codec`` knows 0 to 4."""
        return self.attributes & CODEC_MASK

    @property
    def log_append_time(self) -> bool:
        """Whether every record's timestamp is ``max_timestamp``, the broker's clock."""
        return self.attributes & LOG_APPEND_TIME_BIT != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        """Whether ``base_timestamp`` is the time from which tombstones in this batch may go (KIP-534)."""
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id >= 0

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record, wrapping from 2^31-1 to 0; -1 when the batch carries none."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & MAX_SEQUENCE


def read_header(buf: Buffer, pos: int = 0) -> BatchHeader:
    """The header of the batch at ``pos``. TruncatedBatch when it does not end in ``buf``, CorruptBatch when it is no batch."""
    available = len(buf) - pos
    if available < HEADER_SIZE:
        raise TruncatedBatch(f"{available} bytes at position {pos}: a batch header takes {HEADER_SIZE}")
    base_offset, length, epoch, magic, crc, attributes, last_delta, base_ts, max_ts, pid, pepoch, sequence, count = (
        HEADER.unpack_from(buf, pos)
    )
    size = length + LOG_OVERHEAD
    if magic != MAGIC:
        raise CorruptBatch(f"magic {magic} at position {pos}: only {MAGIC} is readable")
    if size < HEADER_SIZE:
        raise CorruptBatch(f"batch of {size} bytes at position {pos}: the header alone takes {HEADER_SIZE}")
    if size > available:
        raise TruncatedBatch(f"batch of {size} bytes at position {pos}: only {available} bytes are there")
    return BatchHeader(
        pos, base_offset, size, epoch, magic, crc, attributes, last_delta, base_ts, max_ts, pid, pepoch, sequence, count
    )


def read_producer(buf: Buffer) -> tuple[int, int, int]:
    """Producer id, epoch and base sequence of a batch that is not checked yet; all -1 when its header is incomplete."""
    if len(buf) < HEADER_SIZE:
        return -1, -1, -1
    producer_id, epoch, sequence = PRODUCER.unpack_from(buf, PRODUCER_POSITION)
    return producer_id, epoch, sequence


def write_producer(buf: bytearray, producer_id: int, epoch: int, sequence: int) -> None:
    """Makes the one batch in ``buf`` a transactional batch of this producer, and writes its new CRC."""
    (attributes,) = _ATTRIBUTES.unpack_from(buf, ATTRIBUTES_POSITION)
    _ATTRIBUTES.pack_into(buf, ATTRIBUTES_POSITION, attributes | TRANSACTIONAL_BIT)
    PRODUCER.pack_into(buf, PRODUCER_POSITION, producer_id, epoch, sequence)
    _CRC.pack_into(buf, CRC_POSITION, crc32c(memoryview(buf)[ATTRIBUTES_POSITION:]))


def read_max_timestamp(header: Buffer) -> int:
    """The max timestamp (ms) in the bytes of a batch header; nothing else of them is looked at."""
    (found,) = _OFFSET.unpack_from(header, _MAX_TIMESTAMP_POSITION)
    return int(found)


def iter_headers(buf: Buffer, start: int = 0) -> Iterator[BatchHeader]:
    """Every batch from ``start`` to the end; CorruptBatch (TruncatedBatch for a torn tail) where that stops being true."""
    end = len(buf)
    while start < end:
        header = read_header(buf, start)
        yield header
        start += header.size


def compute_crc(buf: Buffer, header: BatchHeader) -> int:
    """The CRC that the batch's bytes have."""
    position = header.position
    return crc32c(memoryview(buf)[position + ATTRIBUTES_POSITION : position + header.size])


def crc_is_valid(buf: Buffer, header: BatchHeader) -> bool:
    """Whether the batch's bytes have the CRC that its header claims."""
    position = header.position
    return crc32c(memoryview(buf)[position + ATTRIBUTES_POSITION : position + header.size]) == header.crc


def assign_offsets(buf: bytearray | memoryview, header: BatchHeader, base_offset: int, leader_epoch: int) -> None:
    """Gives the batch its place in the log: 12 bytes in place, outside the CRC. ``header`` follows."""
    position = header.position
    _OFFSET.pack_into(buf, position, base_offset)
    _EPOCH.pack_into(buf, position + 12, leader_epoch)
    header.base_offset = base_offset
    header.leader_epoch = leader_epoch


def set_max_timestamp(buf: bytearray | memoryview, header: BatchHeader, log_append: bool, ts: int) -> None:
    """Writes timestamp type and max_timestamp (ms), and a new CRC when that changed anything. ``header`` follows."""
    attributes = header.attributes & ~LOG_APPEND_TIME_BIT | (LOG_APPEND_TIME_BIT if log_append else 0)
    if attributes == header.attributes and ts == header.max_timestamp:
        return
    position = header.position
    _ATTRIBUTES.pack_into(buf, position + ATTRIBUTES_POSITION, attributes)
    _OFFSET.pack_into(buf, position + _MAX_TIMESTAMP_POSITION, ts)
    header.attributes = attributes
    header.max_timestamp = ts
    header.crc = compute_crc(buf, header)
    _CRC.pack_into(buf, position + CRC_POSITION, header.crc)
