"""The records of ``__share_group_state``: byte for byte those of Apache Kafka 4.3.1."""

from __future__ import annotations

import pytest

from tidelog.coordinator.share.records import ShareKey, ShareRecord, Snapshot, Update, decode, encode, read_state
from tidelog.replication.share.record_state import RecordState, StateBatch

KEY = ShareKey("gshare", bytes.fromhex("2af5c6f3d92f4530b49f43184b403c3e"), 0)
SNAPSHOT = (
    "000000066773686172652af5c6f3d92f4530b49f43184b403c3e00000000",
    "0000000000000000000200000000ffffffffffffffff000001a1fd9f939f000001a1fd9f939f0100",
)
UPDATE = ("000100066773686172652af5c6f3d92f4530b49f43184b403c3e00000000", "00000000000000000003ffffffffffffffff0100")
"""Written by Apache Kafka: the group's subscription, and the first read by the partition's leader."""


@pytest.mark.parametrize(
    ("stored", "record"),
    [
        (SNAPSHOT, ShareRecord(KEY, Snapshot(0, 2, 0, -1, -1, 1795256456095, 1795256456095))),
        (UPDATE, ShareRecord(KEY, Update(0, 3, -1, -1))),
    ],
)
def test_records_of_apache_kafka_are_read_and_written(stored: tuple[str, str], record: ShareRecord) -> None:
    key, value = map(bytes.fromhex, stored)
    assert decode(key, value) == record
    assert encode(record) == (key, value)


def test_a_record_with_batches_survives_the_log() -> None:
    batches = (StateBatch(3, 7, RecordState.ACKNOWLEDGED, 1), StateBatch(8, 8, RecordState.AVAILABLE, 2))
    for change in (Snapshot(4, 1, 2, 3, 5, 10, 20, batches), Update(4, 2, 3, 5, batches), None):
        key, value = encode(ShareRecord(KEY, change))
        assert decode(key, value) == ShareRecord(KEY, change)


def test_other_records_are_left_alone_and_broken_ones_refused() -> None:
    assert decode(b"", b"") is None
    assert decode(b"\0\7abc", b"") is None
    key = bytes.fromhex(SNAPSHOT[0])
    with pytest.raises(ValueError, match="version that is not known"):
        decode(key, b"\0\1")


def test_states_that_are_never_stored_are_refused() -> None:
    assert read_state(3) is RecordState.ARCHIVING
    for number in (1, 9):
        with pytest.raises(ValueError, match=r"acquired|9"):
            read_state(number)


def test_the_key_is_hashed_as_text() -> None:
    assert KEY.text == "gshare:KvXG89kvRTC0n0MYS0A8Pg:0"
