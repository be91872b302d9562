"""Append rules: whether a producer's batch is accepted, what is recorded about it afterwards, and what the response says.

The append itself is in ``UnifiedLog``: validate, check the sequence, assign the offset, write with one write, and only then
update state. This is the hot path: plain functions over plain attributes, microseconds count.
"""

from __future__ import annotations

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, BatchHeader, CorruptBatch
from tidelog.records.control import EndTxnMarker, parse_end_txn_marker
from tidelog.records.record import iter_records
from tidelog.storage.index import AbortedTransaction
from tidelog.storage.log_config import Origin
from tidelog.storage.producer_state import BatchMetadata, ProducerStateManager
from tidelog.storage.validation import RecordError
from tidelog.storage.verification_guard import Verification

# Looking up a member of an enum costs 50 ns, a global 10.
_NONE = ErrorCode.NONE
_CLIENT = Origin.CLIENT


class AppendResult:
    """The result of an append. Plain and mutable: one is built per produced batch.

    ``first_offset`` and ``last_offset`` are -1 on an error; ``log_append_time_ms`` is -1 if the client's timestamps are kept.
    ``duplicate``: the batch was in the log already, and the offsets are the original's. ``needs_flush``: flush.messages is
    reached.
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


def check_producer(
    producers: ProducerStateManager,
    data: memoryview | bytearray,
    header: BatchHeader,
    origin: Origin,
    transaction_version: int,
    proof: Verification | None,
) -> ErrorCode | BatchMetadata:
    """Checks a batch against its producer's state: NONE to accept it, an error, or the original batch that it duplicates."""
    attributes = header.attributes
    if attributes & CONTROL_BIT:
        marker = _marker(data, header)
        if marker is None:
            return _NONE
        producer_id, producer_epoch = header.producer_id, header.producer_epoch
        epoch = marker.coordinator_epoch
        return producers.check_marker(producer_id, producer_epoch, epoch, transaction_version=transaction_version)
    if origin is not _CLIENT:
        if origin is not Origin.COORDINATOR or not attributes & TRANSACTIONAL_BIT:
            return _NONE
        return producers.check_coordinated(header.producer_id, header.producer_epoch, proof)
    if attributes & TRANSACTIONAL_BIT:
        return producers.check_transactional(header, proof)
    return producers.check(header)


def refusal(producers: ProducerStateManager, partition: TopicPartition, error: ErrorCode, header: BatchHeader) -> str | None:
    """The error message for the client, in addition to ``error``; a refused marker has only the code."""
    if header.attributes & CONTROL_BIT:
        return None
    entry = producers.entries.get(header.producer_id)
    seen = "knows nothing of it" if entry is None else f"has seen epoch {entry.epoch}, sequence {entry.last_sequence}"
    text = (
        f"Producer {header.producer_id} sent epoch {header.producer_epoch}, sequence {header.base_sequence} to "
        f"{partition}, which {seen}."
    )
    if error is ErrorCode.INVALID_TXN_STATE:
        open_one = entry is not None and entry.txn_first_offset >= 0 and not header.attributes & TRANSACTIONAL_BIT
        why = "it wrote outside of its open transaction" if open_one else "the partition is not part of an open transaction of it"
        text += f" Nothing was appended: {why}."
    return text


def note_producer(
    producers: ProducerStateManager, data: memoryview | bytearray | bytes, header: BatchHeader
) -> AbortedTransaction | None:
    """Updates producer state for a batch that is in the log; returns the entry for the segment's transaction index if it is an
    abort."""
    if not header.attributes & CONTROL_BIT:
        producers.update(header)
        return None
    marker = _marker(data, header)
    if marker is None:
        return None
    completed = producers.update_marker(header, commit=marker.commit, coordinator_epoch=marker.coordinator_epoch)
    if completed is None:
        return None
    entry = producers.complete(completed)
    return entry if completed.aborted else None


def _marker(data: memoryview | bytearray | bytes, header: BatchHeader) -> EndTxnMarker | None:
    return read_marker(memoryview(data)[header.position : header.position + header.size])


def read_marker(batch: memoryview | bytes) -> EndTxnMarker | None:
    """The transaction marker in a control batch; None for KRaft's control batches and for malformed ones."""
    try:
        for record in iter_records(batch):
            return parse_end_txn_marker(record.key, record.value)
    except CorruptBatch:
        return None
    return None
