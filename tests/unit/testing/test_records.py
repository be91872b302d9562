from __future__ import annotations

import pytest

from tidelog.records.batch import read_header
from tidelog.records.builder import RecordData, build_batch
from tidelog.testing.records import Message, of_batch, to_records


def test_values_pairs_and_messages_become_records() -> None:
    made = to_records(["a", b"b", None, ("k", "v"), (None, b"v"), Message(b"m", b"k", {"h": b"1"}, timestamp_ms=5)], now_ms=9)
    assert made == [
        RecordData(None, b"a", 9),
        RecordData(None, b"b", 9),
        RecordData(None, None, 9),
        RecordData(b"k", b"v", 9),
        RecordData(None, b"v", 9),
        RecordData(b"k", b"m", 5, (("h", b"1"),)),
    ]


def test_what_is_no_record_is_refused_and_not_cut() -> None:
    with pytest.raises(ValueError, match="has 3 parts; a Message has headers"):
        to_records([("k", "v", {"h": b"1"})], now_ms=9)  # type: ignore[list-item]
    for wrong in (5, {"a": 1}, ("k", 5)):
        with pytest.raises(TypeError, match="keys and values are str, bytes or None, not "):
            to_records([wrong], now_ms=9)  # type: ignore[list-item]


def test_a_batch_becomes_messages() -> None:
    data = bytes(build_batch([RecordData(b"k", b"v", 7, (("h", None),))], base_offset=4))
    assert list(of_batch(data, read_header(data), 2)) == [Message(b"v", b"k", {"h": None}, 2, 4, 7)]


def test_text_is_read_as_utf_8_and_null_stays_null() -> None:
    assert (Message("ä".encode(), b"k").text, Message(None, b"k").text) == ("ä", None)
    assert (Message(b"", b"k").key_text, Message(b"").key_text) == ("k", None)
