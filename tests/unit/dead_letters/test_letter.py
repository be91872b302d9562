from __future__ import annotations

import pytest

from tests.unit.dead_letters.samples import REJECTED, headers, letter
from tidelog.dead_letters.letter import Source, bytes_json, bytes_text, headers_json, letter_of, time_text
from tidelog.records.record import Headers, Record


def test_the_headers_say_where_a_record_came_from_and_why() -> None:
    found = letter(5)
    assert found.source == Source("workers", "jobs", 1, 40)
    assert (found.offset, found.delivery_count, found.reason, found.copied) == (5, 3, REJECTED, True)
    assert found.as_json()["time"] == "1970-01-01T00:00:01.000Z"
    assert found.as_json()["headers"][1] == {"name": "__dlq.errors.partition", "value": "1"}


def test_count_and_reason_may_be_missing() -> None:
    found = letter_of(0, Record(1, 2, None, None, headers("t", 0, 3)[:4]))
    assert found is not None
    assert (found.delivery_count, found.reason, found.copied) == (None, None, False)


@pytest.mark.parametrize(
    "wrong",
    [
        (),
        headers("t", 0, 3)[1:],
        (*headers("t", 0, 3), ("__dlq.errors.offset", b"-1")),
        (*headers("t", 0, 3), ("__dlq.errors.offset", b"9" * 5000)),
        (*headers("t", 0, 3), ("__dlq.errors.offset", "\u0663".encode())),
        (*headers("t", 0, 3), ("__dlq.errors.group", b"\xff")),
        (*headers("t", 0, 3), ("__dlq.errors.topic", None)),
    ],
)
def test_a_record_that_does_not_say_it_is_no_dead_letter(wrong: Headers) -> None:
    assert letter_of(0, Record(1, 2, b"k", b"v", wrong)) is None


def test_bytes_are_text_where_they_can_be() -> None:
    assert (bytes_json("é".encode()), bytes_json(b"\xff"), bytes_json(None)) == ("é", {"base64": "/w=="}, None)
    assert bytes_text(b"a\xff") == "a\\xff"
    assert headers_json((("a", b"1"), ("a", None), (b"\xff", b"2")))[1:] == [
        {"name": "a", "value": None},
        {"name": "\\xff", "value": "2"},
    ]


def test_a_time_that_is_no_date_is_none() -> None:
    assert time_text(1 << 62) is None
