from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.unit.coordinator.transaction.driver import P0, P1
from tidelog.coordinator.transaction.metadata import TransactionMetadata
from tidelog.coordinator.transaction.records import decode_key, decode_value, encode_key, encode_value
from tidelog.coordinator.transaction.state import TransactionState
from tidelog.model.ids import TopicPartition
from tidelog.records.batch import iter_headers
from tidelog.records.record import iter_records

GOLDEN = Path(__file__).parents[3] / "golden" / "batches" / "transaction_state.log"
KNOWN = TransactionMetadata(
    "x", 7, 3, 60_000, TransactionState.PREPARE_COMMIT, 200, 100, 6, 8, 2, 2,
    {P1: None, TopicPartition("u", 0): None, P0: None},
)  # fmt: skip


def test_kafkas_own_records_are_read_and_written_byte_for_byte() -> None:
    """A transaction of Apache Kafka 4.3.1 under transaction.version 2: initialised, two partitions, committed."""
    batch = memoryview(GOLDEN.read_bytes())
    states = []
    for header in iter_headers(batch):
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
        for record in iter_records(batch, header):
            assert record.key is not None and record.value is not None
            transactional_id = decode_key(bytes(record.key))
            assert transactional_id is not None and encode_key(transactional_id) == bytes(record.key)
            metadata = decode_value(transactional_id, bytes(record.value))
            assert encode_value(metadata, 2) == bytes(record.value)
            states.append((metadata.state.name, metadata.producer_epoch, metadata.client_version, len(metadata.partitions)))
    assert states == [
        ("EMPTY", 0, 0, 0),
        ("ONGOING", 0, 2, 1),
        ("ONGOING", 0, 2, 2),
        ("PREPARE_COMMIT", 1, 2, 2),
        ("COMPLETE_COMMIT", 1, 2, 0),
    ]


def test_everything_but_the_last_epoch_comes_back() -> None:
    read = decode_value("x", encode_value(KNOWN, 1))
    assert read == dataclasses.replace(KNOWN, last_producer_epoch=-1)


def test_a_cluster_below_transaction_version_1_writes_what_old_brokers_read() -> None:
    raw = encode_value(KNOWN, 0)
    assert raw[:2] == b"\0\0"
    read = decode_value("x", raw)
    assert (read.previous_producer_id, read.next_producer_id, read.client_version) == (-1, -1, 0)
    assert list(read.partitions) == [P1, P0, TopicPartition("u", 0)], "by topic"


def test_keys_of_other_kinds_are_told_apart() -> None:
    assert decode_key(b"\0\1\0\1x") is None
    assert decode_key(b"\0") is None


def test_a_value_of_a_version_to_come_is_refused() -> None:
    with pytest.raises(ValueError, match="version 2; 0 to 1"):
        decode_value("x", b"\0\2" + encode_value(KNOWN, 1)[2:])
    with pytest.raises(ValueError, match="0 bytes"):
        decode_value("x", b"")
