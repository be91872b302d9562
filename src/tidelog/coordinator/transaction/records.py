"""The records of ``__transaction_state``: the key is the transactional id, the value its TransactionMetadata; null removes it.

Key and value begin with an int16 version. Values are version 1 (with tagged fields) once transaction.version is at least 1;
version 0 below has neither the previous producer id nor the client's version. Source: Kafka's TransactionLogKey and
TransactionLogValue.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from tidelog.coordinator.transaction.metadata import TransactionMetadata
from tidelog.coordinator.transaction.state import TransactionState
from tidelog.model.ids import NO_PRODUCER_ID, TopicPartition
from tidelog.protocol.messages.transaction_log_key import TransactionLogKey
from tidelog.protocol.messages.transaction_log_value import PartitionsSchema, TransactionLogValue

FLEXIBLE_RECORDS_FROM = 1
"""The transaction.version since which values have tagged fields."""
LARGEST_PARTITION = 264
"""Bytes of one partition whose topic has the longest name, shared with no other partition."""
ROOM = 256
"""Bytes for a batch of one record and for the tagged fields of later states, so that every transaction that can begin can end."""
_INT16 = struct.Struct(">h")
_KEY_VERSION = 0


class TransactionRecord(NamedTuple):
    """The new state of one transactional id; None removes it. ``round`` names the markers that a decision sends; it is not in
    the log."""

    transactional_id: str
    metadata: TransactionMetadata | None
    round: int = 0


def encode_key(transactional_id: str) -> bytes:
    """The record's key."""
    return _INT16.pack(_KEY_VERSION) + TransactionLogKey(transactional_id=transactional_id).encode(_KEY_VERSION)


def decode_key(key: bytes) -> str | None:
    """The transactional id; None for a key of another kind. ProtocolViolation when it cannot be read."""
    if len(key) < 2 or _INT16.unpack_from(key)[0] != _KEY_VERSION:
        return None
    return TransactionLogKey.decode(key[2:], _KEY_VERSION).transactional_id


def encode_value(metadata: TransactionMetadata, server_version: int) -> bytes:
    """The record's value as a cluster at transaction.version ``server_version`` writes it."""
    flexible = server_version >= FLEXIBLE_RECORDS_FROM
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state,
        transaction_last_update_timestamp_ms=metadata.last_update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
        transaction_partitions=None if metadata.state is TransactionState.EMPTY else _by_topic(metadata),
    )
    if flexible:
        value.previous_producer_id = metadata.previous_producer_id
        value.next_producer_id = metadata.next_producer_id
        value.client_transaction_version = metadata.client_version
    version = int(flexible)
    return _INT16.pack(version) + value.encode(version)


def fits(metadata: TransactionMetadata, limit: int) -> bool:
    """Whether its record has at most ``limit`` bytes. Measured only when many partitions or a long name make it doubtful."""
    name_bytes = len(metadata.transactional_id.encode())
    if 2 * name_bytes + LARGEST_PARTITION * len(metadata.partitions) + ROOM < limit:
        return True
    return name_bytes + len(encode_value(metadata, FLEXIBLE_RECORDS_FROM)) + ROOM <= limit


def _by_topic(metadata: TransactionMetadata) -> list[PartitionsSchema]:
    topics: dict[str, PartitionsSchema] = {}
    for topic, partition in metadata.partitions:
        entry = topics.get(topic)
        if entry is None:
            entry = topics[topic] = PartitionsSchema(topic=topic)
        entry.partition_ids.append(partition)
    return list(topics.values())


def decode_value(transactional_id: str, raw: bytes) -> TransactionMetadata:
    """A value at any of its versions. ProtocolViolation or ValueError when it cannot be read."""
    if len(raw) < 2:
        raise ValueError(f"the value of {transactional_id!r} has {len(raw)} bytes, at least its version is expected")
    (version,) = _INT16.unpack_from(raw)
    if not 0 <= version <= TransactionLogValue.MAX_VERSION:
        raise ValueError(
            f"the value of {transactional_id!r} has version {version}; 0 to {TransactionLogValue.MAX_VERSION} are read"
        )
    value = TransactionLogValue.decode(raw[2:], version)
    state = TransactionState(value.transaction_status)
    possible = value.producer_id >= 0 and value.producer_epoch >= 0 and value.next_producer_id >= NO_PRODUCER_ID
    if not possible or state is TransactionState.PREPARE_EPOCH_FENCE:
        raise ValueError(
            f"the value of {transactional_id!r} cannot be: state {state.name}, producer {value.producer_id}, epoch "
            f"{value.producer_epoch}, next producer {value.next_producer_id}"
        )
    return TransactionMetadata(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        state,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        start_ms=value.transaction_start_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
        partitions={
            TopicPartition(topic.topic, partition): None
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        },
    )
