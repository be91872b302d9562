"""Splits an atomic group of metadata records into batches: one, or a transaction of several when it is too large (KIP-868)."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.metadata.records import MetadataRecord, encode_record
from tidelog.metadata.supported_features import TRANSACTIONS_MV
from tidelog.protocol.messages.begin_transaction_record import BeginTransactionRecord
from tidelog.protocol.messages.end_transaction_record import EndTransactionRecord
from tidelog.records.batch import HEADER_SIZE

RECORD_OVERHEAD = 24
"""Upper bound of a record's own framing in bytes; the values are counted exactly."""


def encoded_batches(records: Sequence[MetadataRecord], metadata_version: int, max_batch_bytes: int) -> list[list[bytes]]:
    """The values of the records, one list per batch."""
    values = [encode_record(record, metadata_version) for record in records]
    limit = max_batch_bytes - HEADER_SIZE
    if sum(map(len, values)) + RECORD_OVERHEAD * len(values) > limit:
        assert metadata_version >= TRANSACTIONS_MV, (
            f"metadata.version {metadata_version} has no transactions for {len(values)} records"
        )
        begin, end = BeginTransactionRecord(name="Large group of records"), EndTransactionRecord()
        values = [encode_record(begin, metadata_version), *values, encode_record(end, metadata_version)]
    return _split(values, limit)


def _split(values: Sequence[bytes], limit: int) -> list[list[bytes]]:
    batches: list[list[bytes]] = [[]]
    size = 0
    for value in values:
        if batches[-1] and size + len(value) + RECORD_OVERHEAD > limit:
            batches.append([])
            size = 0
        batches[-1].append(value)
        size += len(value) + RECORD_OVERHEAD
    return batches
