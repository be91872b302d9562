"""The basic types at their edges."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tidelog.model.errors import ProtocolViolation
from tidelog.protocol import primitives as p

LONGEST = 2**32 - 1


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, b"\x00"), (127, b"\x7f"), (128, b"\x80\x01"), (300, b"\xac\x02"), (LONGEST, b"\xff\xff\xff\xff\x0f")],
)
def test_unsigned_varints_have_seven_bits_a_byte_low_ones_first(value: int, data: bytes) -> None:
    out = bytearray()
    p.write_uvarint(out, value)
    assert out == data
    assert p.read_uvarint(b"\xff" + data, 1) == (value, 1 + len(data))


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff\x10", b"\x80\x80\x80\x80\x80\x01", b"\xff" * 10])
def test_a_varint_beyond_32_bits_is_a_violation(data: bytes) -> None:
    with pytest.raises(ProtocolViolation, match="32 bits"):
        p.read_uvarint(data, 0)


@pytest.mark.parametrize("value", [-1, LONGEST + 1])
def test_a_varint_out_of_range_is_not_written(value: int) -> None:
    with pytest.raises(ValueError, match="32 bits"):
        p.write_uvarint(bytearray(), value)


def test_strings_and_bytes_at_both_encodings() -> None:
    for write, read, value, data in (
        (p.write_string, p.read_string, "é", b"\x00\x02\xc3\xa9"),
        (p.write_compact_string, p.read_compact_string, "é", b"\x03\xc3\xa9"),
        (p.write_nullable_string, p.read_nullable_string, None, b"\xff\xff"),
        (p.write_compact_nullable_string, p.read_compact_nullable_string, None, b"\x00"),
        (p.write_compact_nullable_string, p.read_compact_nullable_string, "", b"\x01"),
        (p.write_bytes, p.read_bytes, b"ab", b"\x00\x00\x00\x02ab"),
        (p.write_compact_bytes, p.read_compact_bytes, b"ab", b"\x03ab"),
        (p.write_nullable_bytes, p.read_nullable_bytes, None, b"\xff\xff\xff\xff"),
        (p.write_compact_nullable_bytes, p.read_compact_nullable_bytes, None, b"\x00"),
        (p.write_compact_bytes, p.read_compact_bytes, b"x" * 127, b"\x80\x01" + b"x" * 127),
    ):
        out = bytearray()
        write(out, value)  # type: ignore[operator]
        assert out == data
        assert read(data + b"tail", 0) == (value, len(data))  # type: ignore[operator]


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (p.read_string, b"\xff\xff"),
        (p.read_compact_string, b"\x00"),
        (p.read_bytes, b"\xff\xff\xff\xff"),
        (p.read_compact_bytes, b"\x00"),
        (p.read_records, b"\xff\xff\xff\xff"),
        (p.read_compact_records, b"\x00"),
    ],
)
def test_null_where_it_must_not_be_is_a_violation(read: object, data: bytes) -> None:
    with pytest.raises(ProtocolViolation, match="null"):
        read(data, 0)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (p.read_string, b"\x00\x03ab"),
        (p.read_string, b"\xff\xfeab"),
        (p.read_compact_string, b"\x04ab"),
        (p.read_nullable_bytes, b"\x7f\xff\xff\xffab"),
        (p.read_nullable_bytes, b"\x80\x00\x00\x00ab"),
        (p.read_compact_nullable_bytes, b"\xff\xff\xff\xff\x0fab"),
        (p.read_compact_nullable_records, b"\x04ab"),
    ],
)
def test_a_length_that_the_bytes_do_not_have_is_a_violation(read: object, data: bytes) -> None:
    with pytest.raises(ProtocolViolation, match="remain"):
        read(data, 0)  # type: ignore[operator]


def test_text_that_is_not_utf8_is_broken() -> None:
    for read, data in ((p.read_string, b"\x00\x02\xff\xfe"), (p.read_compact_string, b"\x03\xff\xfe")):
        with pytest.raises(p.BROKEN):
            read(data, 0)


@pytest.mark.parametrize("length", [0, 1, 126, 127, 128, 300])
def test_compact_lengths_of_one_and_of_two_bytes(length: int) -> None:
    out = bytearray()
    p.write_compact_string(out, "x" * length)
    assert p.read_compact_string(out, 0) == ("x" * length, len(out))


@pytest.mark.parametrize("read", [p.read_compact_string, p.read_compact_nullable_string])
def test_text_longer_than_the_plain_form_can_say_is_a_violation(read: Callable[[bytes, int], tuple[str, int]]) -> None:
    out = bytearray()
    p.write_compact_string(out, "x" * 0x7FFF)
    assert read(bytes(out), 0) == ("x" * 0x7FFF, len(out))
    with pytest.raises(ValueError, match="string of length 32768"):
        p.write_compact_string(out, "x" * 0x8000)
    out.clear()
    p.write_uvarint(out, 0x8001)
    out += b"x" * 0x8000
    with pytest.raises(ProtocolViolation, match="string of length 32768"):
        read(bytes(out), 0)


def test_records_are_a_view_of_the_frame() -> None:
    frame = bytearray(b"\x00\x00\x00\x02ab")
    records, pos = p.read_nullable_records(frame, 0)
    assert records is not None and pos == 6
    records[0] = ord("z")
    assert frame[4:] == b"zb"


def test_a_uuid_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        p.checked_uuid(b"short")


def test_unknown_tags_are_passed_over() -> None:
    assert p.skip_tags(b"\x02\x05\x02ab\x07\x00rest", 0) == 7
    with pytest.raises(ProtocolViolation, match="tag 5"):
        p.skip_tags(b"\x01\x05\x09ab", 0)


def test_more_unknown_tags_than_any_client_sends_are_a_violation() -> None:
    def section(count: int) -> bytes:
        out = bytearray()
        p.write_uvarint(out, count)
        return bytes(out) + bytes(2 * count)

    most = section(p.MAX_UNKNOWN_TAGS)
    assert p.skip_tags(most, 0) == len(most)
    with pytest.raises(ProtocolViolation, match="1001 tags that this version does not have"):
        p.skip_tags(section(p.MAX_UNKNOWN_TAGS + 1), 0)
