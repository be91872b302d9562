"""The header of Confluent's serializers."""

from __future__ import annotations

import pytest

from tidelog.pipeline.wire_format import NotFramed, skip_message_index, split_header


def test_the_header_is_a_zero_and_the_id() -> None:
    schema_id, rest = split_header(b"\x00\x00\x00\x01\x02abc")
    assert (schema_id, bytes(rest)) == (258, b"abc")


@pytest.mark.parametrize(("data", "says"), [(b"", "0 bytes are too few"), (b"\x00\x00", "2 bytes"), (b'{"a":1}', "byte 123")])
def test_other_bytes_are_told(data: bytes, says: str) -> None:
    with pytest.raises(NotFramed, match=says):
        split_header(data)


@pytest.mark.parametrize(
    ("data", "path", "rest"),
    [(b"\x00x", (0,), b"x"), (b"\x02\x04x", (2,), b"x"), (b"\x04\x02\x80\x02x", (1, 128), b"x")],
)
def test_the_message_index_is_a_path_of_zigzag_numbers(data: bytes, path: tuple[int, ...], rest: bytes) -> None:
    found, left = skip_message_index(memoryview(data))
    assert (found, bytes(left)) == (path, rest)


@pytest.mark.parametrize("data", [b"", b"\x02", b"\x80\x80\x80\x80\x80\x80", b"\x01", b"\xff\x01"])
def test_an_index_that_is_cut_off_or_absurd_is_told(data: bytes) -> None:
    with pytest.raises(NotFramed):
        skip_message_index(memoryview(data))
