"""Validates records for an append and rewrites them where needed (LogValidator and UnifiedLog in Kafka).

``validate`` reads the header and the CRC, which is enough for an ordinary topic. It returns a ``Verdict``: an error, or the
header of a batch that may be placed, or a ``DeepValidation`` to run first. That walks every record, and is needed when the header
is not enough: keys of compacted topics, timestamps near a bound, another codec than the topic's, strict mode. It only reads the
records, so it may run in another thread. ``place`` then sets the batch's offset, leader epoch and timestamp in place.

Kafka always walks every record; here that is ``strict``. Only strict mode notices these in an ordinary topic: a record count that
differs from the header, offsets inside a batch that are not 0, 1, 2, ..., and a max_timestamp that no record has.

Elsewhere: sequence numbers and transactions (producer_state.py), offsets and files (log.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tidelog.model.errors import ErrorCode
from tidelog.records.batch import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
    CorruptBatch,
    TruncatedBatch,
    assign_offsets,
    crc_is_valid,
    iter_headers,
    read_header,
    set_max_timestamp,
)
from tidelog.records.builder import assemble, renumber_records
from tidelog.records.checksum import crc32c
from tidelog.records.compression import DEFAULT_MAX_DECOMPRESSED, Codec, codec_from_name, compress
from tidelog.records.record import SMALLEST_RECORD, RecordScan, records_body, validate_records
from tidelog.storage.log_config import NEVER_MS, LogConfig, Origin

WALK_RECORDS = 64
"""A batch of at most this many records is quickly walked (a few microseconds each)."""
WALK_BYTES = 32 * 1024
WALK_COMPRESSED_BYTES = 2 * 1024
"""The limit for compressed batches: a small one may grow a thousandfold."""
MAX_RECORD_ERRORS = 100
"""Records named in one answer; a hostile batch could have 150,000 wrong ones."""
LAST_OFFSET = 2**63 - 1
"""Greater than any record's offset: the next offset would not exist."""
_DECOMPRESSED_PER_MESSAGE_BYTE = 8
# Looking up a member of an enum costs 50 ns, a global 10; the path of every batch uses globals.
_CLIENT = Origin.CLIENT
_RAFT = Origin.RAFT
_ZSTD = int(Codec.ZSTD)
_NOT_FOR_CLIENTS = CONTROL_BIT | TRANSACTIONAL_BIT


class RecordError(NamedTuple):
    """One record of a refused batch: its index in the batch, and why."""

    batch_index: int
    message: str


@dataclass(frozen=True, slots=True)
class Rules:
    """A topic's requirements for a batch, computed once from its settings."""

    compacted: bool
    codec: int | None
    """The codec every batch is stored with; None keeps the producer's."""
    level: int | None
    log_append_time: bool
    before_max_ms: int
    after_max_ms: int
    max_message_bytes: int
    segment_bytes: int
    max_decompressed: int
    walk_always: bool
    """Whether the header is never enough for a client's batch."""

    @classmethod
    def of(cls, config: LogConfig, *, strict: bool = False) -> Rules:
        """The rules of a log. ``strict`` walks every record of every client's batch, as Kafka does."""
        codec = codec_from_name(config.compression_type)
        levels = {
            Codec.GZIP: config.compression_gzip_level,
            Codec.LZ4: config.compression_lz4_level,
            Codec.ZSTD: config.compression_zstd_level,
        }
        return cls(
            compacted=config.compact,
            codec=codec,
            level=None if codec is None else levels.get(codec),
            log_append_time=config.log_append_time,
            before_max_ms=config.message_timestamp_before_max_ms,
            after_max_ms=config.message_timestamp_after_max_ms,
            max_message_bytes=config.max_message_bytes,
            segment_bytes=config.segment_bytes,
            max_decompressed=max(DEFAULT_MAX_DECOMPRESSED, _DECOMPRESSED_PER_MESSAGE_BYTE * config.max_message_bytes),
            walk_always=strict
            or config.compact
            or (config.message_timestamp_before_max_ms < NEVER_MS and not config.log_append_time),
        )


class Verdict:
    """The result. With ``error`` NONE and ``deep`` None, ``header`` describes the batch in ``records``, ready for ``place``.

    ``max_timestamp``: what the batch must carry when timestamps are the producers'. ``records``: the given buffer or a new one.
    Plain and mutable: one is made for every batch.
    """

    __slots__ = ("deep", "error", "header", "max_timestamp", "message", "record_errors", "records")

    def __init__(
        self,
        records: bytearray | memoryview,
        header: BatchHeader | None,
        max_timestamp: int,
        error: ErrorCode = ErrorCode.NONE,
        message: str | None = None,
        record_errors: tuple[RecordError, ...] = (),
        deep: DeepValidation | None = None,
    ) -> None:
        self.records = records
        self.header = header
        self.max_timestamp = max_timestamp
        self.error = error
        self.message = message
        self.record_errors = record_errors
        self.deep = deep


def _refuse(
    records: bytearray | memoryview, error: ErrorCode, message: str, record_errors: tuple[RecordError, ...] = ()
) -> Verdict:
    return Verdict(records, None, -1, error, message, record_errors)


def validate(
    records: bytearray | memoryview, rules: Rules, *, origin: Origin = _CLIENT, now_ms: int, zstd_allowed: bool = True
) -> Verdict:
    """Validates the one batch of an append on a leader (clients, coordinators, the metadata log's leader).

    ``zstd_allowed`` is False for Produce below version 7. Errors: 2, 10, 18, 32, 76, 87, by the rules in the module docstring.
    The buffer is not written to.
    """
    try:
        header = read_header(records)
    except TruncatedBatch as error:
        return _refuse(records, ErrorCode.INVALID_RECORD, f"No whole record batch was sent: {error}.")
    except CorruptBatch as error:
        # The magic of formats 0 and 1, which Produce 3 and up may not carry, has its own error; anything else is malformed.
        old = records[16] in (0, 1)
        return _refuse(records, ErrorCode.INVALID_RECORD if old else ErrorCode.CORRUPT_MESSAGE, f"{error}.")
    size = header.size
    if size != len(records):
        return _refuse(
            records,
            ErrorCode.INVALID_RECORD,
            f"{len(records)} bytes for one partition, of which {size} are a batch: send one batch.",
        )
    if size > rules.max_message_bytes and origin != _RAFT:
        return _too_large(records, size, rules)
    if size > rules.segment_bytes:
        return _larger_than_segment(records, size, rules)
    if origin != _CLIENT:
        return Verdict(records, header, header.max_timestamp)
    if crc32c(memoryview(records)[ATTRIBUTES_POSITION:]) != header.crc:  # as crc_is_valid, one call less for each batch
        return _refuse(records, ErrorCode.CORRUPT_MESSAGE, f"The batch's checksum is not {header.crc:#010x} as it claims.")
    count = header.records_count
    attributes = header.attributes
    codec = attributes & CODEC_MASK
    if (
        header.base_offset != 0
        or count <= 0
        or header.last_offset_delta + 1 != count
        or attributes & _NOT_FOR_CLIENTS
        or (header.producer_id >= 0 and header.base_sequence < 0)
        or (codec == 0 and count * SMALLEST_RECORD > size - HEADER_SIZE)
        or codec >= _ZSTD
    ):
        refusal = _refused_header(records, header, zstd_allowed=zstd_allowed)
        if refusal is not None:
            return refusal
    if rules.log_append_time:
        walk = attributes & LOG_APPEND_TIME_BIT
    else:
        walk = header.max_timestamp > now_ms + rules.after_max_ms or attributes & LOG_APPEND_TIME_BIT
    if walk or rules.walk_always or (rules.codec is not None and rules.codec != codec):
        return Verdict(records, header, header.max_timestamp, deep=DeepValidation(records, header, rules, now_ms))
    return Verdict(records, header, header.max_timestamp)


def _too_large(records: bytearray | memoryview, size: int, rules: Rules) -> Verdict:
    return _refuse(
        records,
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The batch has {size} bytes, the topic's max.message.bytes is {rules.max_message_bytes}: send less at once or raise it.",
    )


def _larger_than_segment(records: bytearray | memoryview, size: int, rules: Rules) -> Verdict:
    return _refuse(
        records,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"The batch has {size} bytes, a segment of this topic {rules.segment_bytes}: send less at once or raise segment.bytes.",
    )


def _refused_header(records: bytearray | memoryview, header: BatchHeader, *, zstd_allowed: bool) -> Verdict | None:
    """The rule that a client's header violates, if any; called only when one may be violated."""
    count, span = header.records_count, header.last_offset_delta + 1
    if header.codec == Codec.ZSTD and not zstd_allowed:
        return _refuse(
            records,
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            "zstd needs Produce version 7 or later: choose another codec or client.",
        )
    if header.codec > _ZSTD:
        return _refuse(records, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Codec {header.codec} does not exist: 0 to 4 do.")
    reason = None
    if header.base_offset != 0:
        reason = f"The batch's base offset is {header.base_offset}: producers send 0, the broker gives the offset."
    elif count <= 0:
        reason = f"The batch claims {count} records: it needs at least one."
    elif span != count:
        reason = f"The batch claims {count} records but spans {span} offsets: both must be equal."
    elif header.is_control:
        reason = "The batch is a control batch: only brokers write those."
    elif header.has_producer_id and header.base_sequence < 0:
        reason = f"The batch has producer id {header.producer_id} but base sequence {header.base_sequence}: it must be 0 or more."
    elif header.is_transactional and not header.has_producer_id:
        reason = "The batch is transactional but has no producer id: call InitProducerId first."
    elif header.codec == Codec.NONE and count * SMALLEST_RECORD > header.size - HEADER_SIZE:
        reason = f"The batch claims {count} records in {header.size - HEADER_SIZE} bytes: they do not fit."
    return None if reason is None else _refuse(records, ErrorCode.INVALID_RECORD, reason)


class DeepValidation:
    """Walks a client's batch, and rebuilds it where codec or offsets require that.

    A job: ``run`` may be called in any thread, as long as the buffer given to ``validate`` is unchanged until then.
    It takes some microseconds per record; ``is_long`` says whether a thread is worth it.
    """

    __slots__ = ("_now_ms", "_records", "_rules", "header")

    def __init__(self, records: bytearray | memoryview, header: BatchHeader, rules: Rules, now_ms: int) -> None:
        self._records = records
        self.header = header
        self._rules = rules
        self._now_ms = now_ms

    @property
    def is_long(self) -> bool:
        """Whether walking the batch takes longer than a round trip to a thread."""
        header = self.header
        return header.records_count > WALK_RECORDS or header.size > (WALK_COMPRESSED_BYTES if header.codec else WALK_BYTES)

    def run(self) -> Verdict:
        """The final verdict: an error, or a batch ready for ``place`` (the given one, or a new one)."""
        rules, header = self._rules, self.header
        oldest_ms = self._now_ms - rules.before_max_ms
        newest_ms = self._now_ms + rules.after_max_ms
        try:
            body = records_body(self._records, header, rules.max_decompressed)
            scan = validate_records(body, header, oldest_ms=oldest_ms, newest_ms=newest_ms)
        except CorruptBatch as error:
            return _refuse(self._records, ErrorCode.INVALID_RECORD, f"The batch's records cannot be read: {error}.")
        refusal = self._refused_records(scan, oldest_ms, newest_ms)
        if refusal is not None:
            return refusal
        codec = header.codec if rules.codec is None else rules.codec
        if scan.consecutive and codec == header.codec:
            return Verdict(self._records, header, scan.max_timestamp)
        return self._rebuilt(
            body if scan.consecutive else renumber_records(body, header.records_count), codec, scan.max_timestamp
        )

    def _refused_records(self, scan: RecordScan, oldest_ms: int, newest_ms: int) -> Verdict | None:
        rules = self._rules
        keyless = scan.keyless if rules.compacted else ()
        errors = [RecordError(index, "A compacted topic takes no record without a key.") for index in keyless[:MAX_RECORD_ERRORS]]
        # As in Kafka, the timestamp of a record without a key is not checked.
        without_key = frozenset(keyless)
        stamped = [error for error in self._wrongly_stamped(scan, oldest_ms, newest_ms) if error.batch_index not in without_key]
        if not errors and not stamped:
            return None
        errors = sorted((*errors, *stamped))[:MAX_RECORD_ERRORS]
        if stamped:
            return _refuse(
                self._records,
                ErrorCode.INVALID_TIMESTAMP,
                f"Records were refused, {len(stamped)} or more for their timestamps; nothing was appended.",
                tuple(errors),
            )
        message = f"{len(keyless)} of {self.header.records_count} records have no key; nothing was appended."
        return _refuse(self._records, ErrorCode.INVALID_RECORD, message, tuple(errors))

    def _wrongly_stamped(self, scan: RecordScan, oldest_ms: int, newest_ms: int) -> list[RecordError]:
        """Records whose timestamp the topic refuses. A producer may not claim LogAppendTime."""
        if self.header.log_append_time and (self._rules.log_append_time or self.header.max_timestamp == -1):
            count = min(self.header.records_count, MAX_RECORD_ERRORS)
            return [RecordError(index, "The producer set the timestamp type to LogAppendTime.") for index in range(count)]
        if self._rules.log_append_time:
            return []
        return [
            RecordError(index, f"Timestamp {timestamp} is not within {max(oldest_ms, 0)} to {newest_ms}.")
            for index, timestamp in scan.out_of_bounds[:MAX_RECORD_ERRORS]
        ]

    def _rebuilt(self, body: bytes, codec: int, max_timestamp: int) -> Verdict:
        rules, header = self._rules, self.header
        batch = assemble(
            body if codec == Codec.NONE else compress(codec, body, rules.level),
            header.records_count,
            base_offset=header.base_offset,
            last_offset_delta=header.last_offset_delta,
            leader_epoch=header.leader_epoch,
            attributes=header.attributes & ~CODEC_MASK | codec,
            base_timestamp=header.base_timestamp,
            max_timestamp=header.max_timestamp,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
        )
        if len(batch) > rules.max_message_bytes:
            return _too_large(batch, len(batch), rules)
        if len(batch) > rules.segment_bytes:
            return _larger_than_segment(batch, len(batch), rules)
        return Verdict(batch, read_header(batch), max_timestamp)


def place(verdict: Verdict, rules: Rules, base_offset: int, leader_epoch: int, now_ms: int) -> BatchHeader:
    """Sets an accepted batch's offset, epoch and timestamp in ``verdict.records``; returns the resulting header.

    With LogAppendTime the broker's clock is the timestamp of every record; this and a wrong max_timestamp from a producer are the
    only reasons to recompute the CRC.
    """
    header = verdict.header
    assert header is not None, "a refused batch has no place"
    assign_offsets(verdict.records, header, base_offset, leader_epoch)
    if rules.log_append_time:
        set_max_timestamp(verdict.records, header, True, now_ms)
    elif verdict.max_timestamp != header.max_timestamp or header.attributes & LOG_APPEND_TIME_BIT:
        set_max_timestamp(verdict.records, header, False, verdict.max_timestamp)
    return header


class ReplicatedVerdict(NamedTuple):
    """Batches of a leader, in order; with an ``error`` other than NONE none of them may be appended."""

    headers: list[BatchHeader]
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def validate_replicated(records: Buffer, next_offset: int) -> ReplicatedVerdict:
    """Validates what a leader sent to a follower: CRCs, and offsets that continue from ``next_offset``; not sizes.

    A batch cut off at the end is left for the next fetch. Errors: 2 for malformed batches, 87 for offsets that go back.
    """
    headers: list[BatchHeader] = []
    try:
        for header in iter_headers(records):
            if not crc_is_valid(records, header):
                message = f"The batch at offset {header.base_offset} does not have the checksum it claims."
                return ReplicatedVerdict([], ErrorCode.CORRUPT_MESSAGE, message)
            impossible = header.last_offset_delta < 0 or header.records_count < 0 or header.last_offset >= LAST_OFFSET
            if header.base_offset < next_offset or impossible:
                message = f"A batch of offsets {header.base_offset} to {header.last_offset} follows offset {next_offset - 1}."
                return ReplicatedVerdict([], ErrorCode.INVALID_RECORD, message)
            headers.append(header)
            next_offset = header.next_offset
    except TruncatedBatch:
        pass
    except CorruptBatch as error:
        return ReplicatedVerdict([], ErrorCode.CORRUPT_MESSAGE, f"{error}.")
    return ReplicatedVerdict(headers)
