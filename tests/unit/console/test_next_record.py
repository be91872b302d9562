"""What is learned of the next record from fetched bytes."""

from __future__ import annotations

import pytest

from tidelog.console.next_record import MOST_PARSED, kind_of, kinds_before, next_record
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.compression import Codec
from tidelog.records.control import EndTxnMarker, end_txn_marker_batch

VALUES = [b'{"a": 1}', b"[1]", b"\xff\xfe"]
BATCH = bytes(build_batch([RecordData(None, value, timestamp=900 + at) for at, value in enumerate(VALUES)], base_offset=10))
MARKER = bytes(end_txn_marker_batch(EndTxnMarker(True, 0), producer_id=7, producer_epoch=0, timestamp_ms=0, base_offset=9))


def test_it_is_the_first_record_from_the_offset_on() -> None:
    found = next_record(MARKER + BATCH, 9, 13)
    assert found is not None
    assert (found.offset, found.kind, found.batch_bytes, found.timestamp_ms) == (10, "JSON", len(BATCH), 902)
    last = next_record(BATCH, 12, 13)
    assert last is not None and (last.offset, last.kind) == (12, "binary")
    assert next_record(BATCH, 13, 20) is None
    assert next_record(MARKER, 9, 10) is None
    assert next_record(BATCH[:-1], 10, 13) is None, "a part of a batch"
    assert next_record(b"\0" * 80, 0, 1) is None


def test_a_damaged_batch_is_named_and_not_read() -> None:
    damaged = bytearray(BATCH)
    damaged[-2] ^= 1
    found = next_record(damaged, 10, 13)
    assert found is not None and found.corrupt is not None and found.kind == ""


def test_compressed_records_are_read_up_to_a_bound() -> None:
    small = bytes(build_batch([RecordData(None, b"{}")], codec=Codec.GZIP))
    found = next_record(small, 0, 1)
    assert found is not None and found.kind == "JSON"
    bomb = bytes(build_batch([RecordData(None, bytes(5 << 20))], codec=Codec.GZIP))
    large = next_record(bomb, 0, 1)
    assert large is not None and (large.kind, large.corrupt) == ("", None)


def test_the_kinds_of_the_records_before_it() -> None:
    assert kinds_before(BATCH, 12) == ("JSON", "JSON")
    assert kinds_before(MARKER + BATCH, 10) == ()
    assert kinds_before(BATCH[:-1], 12) == ()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, ("empty", None)),
        (b"", ("empty", None)),
        (b"\0\0\0\0\x07x", ("framed", 7)),
        (b"\0\xff\xff\xff\xffx", ("binary", None)),
        (b"\0\0", ("text", None)),
        (b'{"a"', ("text", None)),
        (b"42", ("text", None)),
        (b"[" * 100_000, ("text", None)),
        (b"x" * (MOST_PARSED + 1), ("", None)),
    ],
)
def test_kinds(value: bytes | None, kind: tuple[str, int | None]) -> None:
    assert kind_of(value) == kind
