"""Appending one batch as the leader: checked, sequenced, placed, written by one write, and only then noted.

Decided here: the order of those steps, and what the answer says. Nothing is remembered of a batch that was not written; a write
that fails takes the log out of service (StorageFailure), since what reached the disk is unknown until the next start.

This is the hot path: plain functions over plain attributes, a microsecond counts. ``UnifiedLog`` has them as methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.model.errors import ErrorCode
from tidelog.records.batch import BatchHeader, CorruptBatch
from tidelog.records.control import EndTxnMarker, parse_end_txn_marker
from tidelog.records.record import iter_records
from tidelog.storage.log_config import Origin
from tidelog.storage.producer_state import BatchMetadata
from tidelog.storage.segment import LogSegment
from tidelog.storage.validation import RecordError, Verdict, place, validate

if TYPE_CHECKING:
    from tidelog.storage.log import UnifiedLog
    from tidelog.storage.verification import Verification

_TRANSACTIONAL = 0x10
_CONTROL = 0x20
# Looking up a member of an enum costs 50 ns, a global 10.
_NONE = ErrorCode.NONE
_CLIENT = Origin.CLIENT


class AppendResult:
    """What became of an append. Plain and mutable: it is built once per produced batch.

    ``first_offset`` and ``last_offset`` are -1 on an error; ``log_append_time_ms`` is -1 where the client's timestamps stand.
    ``duplicate``: the batch was there already, and the offsets are the original's. ``needs_flush``: flush.messages is reached.
    """

    __slots__ = (
        "duplicate",
        "error",
        "error_message",
        "first_offset",
        "last_offset",
        "log_append_time_ms",
        "log_start_offset",
        "needs_flush",
        "record_errors",
    )

    def __init__(
        self, error: ErrorCode, first_offset: int, last_offset: int, log_append_time_ms: int, log_start_offset: int
    ) -> None:
        self.error = error
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors: tuple[RecordError, ...] = ()
        self.error_message: str | None = None
        self.duplicate = False
        self.needs_flush = False


def append_as_leader(
    log: UnifiedLog,
    records: bytearray | memoryview,
    leader_epoch: int,
    now_ms: int,
    *,
    origin: Origin = _CLIENT,
    zstd_allowed: bool = True,
    transaction_version: int = 0,
    proof: Verification | None = None,
) -> AppendResult:
    """One batch of a client, coordinator or Raft leader gets the next offsets. ``records`` is patched in place.

    Everything a client can do wrong comes back as an error in the result; StorageFailure means the log dir is lost.
    A walk over all records is done here and now: who cannot wait calls ``validate`` and ``append_validated``.
    """
    verdict = validate(records, log.rules, origin=origin, now_ms=now_ms, zstd_allowed=zstd_allowed)
    if verdict.deep is not None:
        verdict = verdict.deep.run()
    return append_validated(
        log, verdict, leader_epoch, now_ms, origin=origin, transaction_version=transaction_version, proof=proof
    )


def append_validated(
    log: UnifiedLog,
    verdict: Verdict,
    leader_epoch: int,
    now_ms: int,
    *,
    origin: Origin = _CLIENT,
    transaction_version: int = 0,
    proof: Verification | None = None,
) -> AppendResult:
    """Second half of an append. ``transaction_version`` matters for markers only, ``proof`` for the first batch of a
    transaction (KIP-890)."""
    if log.failure is not None:
        raise log.failure
    header = verdict.header
    if header is None:
        refused = AppendResult(verdict.error, -1, -1, -1, log.log_start_offset)
        refused.error_message = verdict.message
        refused.record_errors = verdict.record_errors
        return refused
    data = verdict.records
    if header.producer_id >= 0:
        answer = _check_producer(log, data, header, origin, transaction_version, proof)
        if answer is not None:
            return answer
    rules = log.rules
    base_offset = log.log_end_offset
    place(verdict, rules, base_offset, leader_epoch, now_ms)
    if leader_epoch > log.leader_epochs.latest:
        log.leader_epochs.assign(leader_epoch, base_offset)
    _append(log, data, header, now_ms)
    end = log.log_end_offset
    result = AppendResult(_NONE, base_offset, end - 1, now_ms if rules.log_append_time else -1, log.log_start_offset)
    if end - log.recovery_point >= log.config.flush_messages:
        result.needs_flush = True
    return result


def _check_producer(
    log: UnifiedLog,
    data: memoryview | bytearray,
    header: BatchHeader,
    origin: Origin,
    transaction_version: int,
    proof: Verification | None,
) -> AppendResult | None:
    """None when the batch may go in; else the answer: an error, or the original of a duplicate."""
    attributes = header.attributes
    if attributes & _CONTROL:
        return _check_marker(log, data, header, transaction_version)
    found: ErrorCode | BatchMetadata
    if origin is not _CLIENT:
        if origin is not Origin.COORDINATOR or not attributes & _TRANSACTIONAL:
            return None
        found = log.producers.check_coordinated(header.producer_id, header.producer_epoch, proof)
    elif attributes & _TRANSACTIONAL:
        found = log.producers.check_transactional(header, proof)
    else:
        found = log.producers.check(header)
    if found is _NONE:
        return None
    if isinstance(found, ErrorCode):
        return _producer_error(log, found, header)
    stamp = found.timestamp if log.rules.log_append_time else -1
    original = AppendResult(_NONE, found.first_offset, found.last_offset, stamp, log.log_start_offset)
    original.duplicate = True
    return original


def _check_marker(
    log: UnifiedLog, data: memoryview | bytearray, header: BatchHeader, transaction_version: int
) -> AppendResult | None:
    marker = _marker(data, header)
    if marker is None:
        return None
    error = log.producers.check_marker(
        header.producer_id, header.producer_epoch, marker.coordinator_epoch, transaction_version=transaction_version
    )
    return AppendResult(error, -1, -1, -1, log.log_start_offset) if error else None


def _producer_error(log: UnifiedLog, error: ErrorCode, header: BatchHeader) -> AppendResult:
    result = AppendResult(error, -1, -1, -1, log.log_start_offset)
    entry = log.producers.entries.get(header.producer_id)
    seen = "knows nothing of it" if entry is None else f"has seen epoch {entry.epoch}, sequence {entry.last_sequence}"
    result.error_message = (
        f"Producer {header.producer_id} sent epoch {header.producer_epoch}, sequence {header.base_sequence} to "
        f"{log.topic_partition}, which {seen}."
    )
    if error is ErrorCode.INVALID_TXN_STATE:
        open_one = entry is not None and entry.txn_first_offset >= 0 and not header.attributes & _TRANSACTIONAL
        why = "it wrote outside of its open transaction" if open_one else "the partition is not part of an open transaction of it"
        result.error_message += f" Nothing was appended: {why}."
    return result


def _append(log: UnifiedLog, data: memoryview | bytearray, header: BatchHeader, now_ms: int) -> None:
    """One batch with its final offset: roll if due, write, then note what is now in the log."""
    size = header.size
    last_offset = header.base_offset + header.last_offset_delta
    segment = log.active
    if segment.must_roll(size, last_offset, header.max_timestamp, now_ms, log.limits):
        segment = log.roll(now_ms, at_least=header.base_offset)
    try:
        position = header.position
        whole = data if position == 0 and size == len(data) else memoryview(data)[position : position + size]
        segment.append(whole, size, header.base_offset, last_offset, header.max_timestamp, log.config.index_interval_bytes)
    except OSError as problem:
        raise log.fail(f"append to {segment.path('.log')}", problem) from problem
    log.log_end_offset = last_offset + 1
    if header.producer_id >= 0:
        note_producer(log, data, header, segment)


def note_producer(log: UnifiedLog, data: memoryview | bytearray | bytes, header: BatchHeader, segment: LogSegment) -> None:
    """Producer state follows a batch that is in the log; an abort goes to the segment's transaction index, unless replay
    meets what that holds already."""
    if not header.attributes & _CONTROL:
        log.producers.update(header)
        return
    marker = _marker(data, header)
    if marker is None:
        return
    completed = log.producers.update_marker(header, commit=marker.commit, coordinator_epoch=marker.coordinator_epoch)
    if completed is None:
        return
    entry = log.producers.complete(completed)
    if completed.aborted:
        try:
            segment.add_aborted(entry)
            log.note_aborting(segment)
        except OSError as problem:
            raise log.fail(f"transaction index of {log.dir}", problem) from problem


def _marker(data: memoryview | bytearray | bytes, header: BatchHeader) -> EndTxnMarker | None:
    return read_marker(memoryview(data)[header.position : header.position + header.size])


def read_marker(batch: memoryview | bytes) -> EndTxnMarker | None:
    """The transaction marker in a control batch; None for KRaft's control batches and for what cannot be read."""
    try:
        for record in iter_records(batch):
            return parse_end_txn_marker(record.key, record.value)
    except CorruptBatch:
        return None
    return None
