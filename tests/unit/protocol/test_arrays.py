"""Arrays at their edges."""

from __future__ import annotations

import pytest

from tidelog.model.errors import ProtocolViolation
from tidelog.protocol import arrays


@pytest.mark.parametrize("length", [0, 1, 16, 17, 126, 127, 128, 300])
@pytest.mark.parametrize("flexible", [False, True])
def test_counts_of_one_and_of_two_bytes(length: int, flexible: bool) -> None:
    out = bytearray()
    arrays.write_numbers(out, [7] * length, "b", flexible)
    assert len(out) == length + (4 if not flexible else 1 if length < 127 else 2)
    assert arrays.read_numbers(out, 0, "b", 1, flexible) == ([7] * length, len(out))


@pytest.mark.parametrize(("flexible", "data"), [(False, b"\xff\xff\xff\xff"), (True, b"\x00")])
def test_a_null_array_is_a_violation_where_it_must_not_be(flexible: bool, data: bytes) -> None:
    out = bytearray()
    arrays.write_structs(out, 0, None, flexible)
    assert out == data
    assert arrays.read_nullable_numbers(data, 0, "i", 4, flexible) == (None, len(data))
    assert arrays.read_nullable_strings(data, 0, flexible) == (None, len(data))
    assert arrays.read_nullable_uuids(data, 0, flexible) == (None, len(data))
    for read in (arrays.read_strings, arrays.read_uuids):
        with pytest.raises(ProtocolViolation, match="null for a array"):
            read(data, 0, flexible)
    with pytest.raises(ProtocolViolation, match="null for a array"):
        arrays.read_numbers(data, 0, "i", 4, flexible)


def test_a_count_is_compared_with_the_smallest_elements_that_could_follow() -> None:
    assert arrays.read_count(b"\x00\x00\x00\x02" + b"1234", 0, 2, False) == (2, 4)
    assert arrays.read_count(b"\x03" + b"1234", 0, 2, True) == (2, 1)
    assert arrays.read_count(b"\x00", 0, 2, True) == (-1, 1)
    for data, flexible in ((b"\x00\x00\x00\x03" + b"1234", False), (b"\x04" + b"1234", True), (b"\xff\xff\xff\xfe", False)):
        with pytest.raises(ProtocolViolation, match="elements"):
            arrays.read_count(data, 0, 2, flexible)


def test_arrays_of_numbers_uuids_and_strings() -> None:
    for flexible in (False, True):
        out = bytearray()
        arrays.write_numbers(out, [1, -2], "i", flexible)
        arrays.write_uuids(out, [b"u" * 16], flexible)
        arrays.write_strings(out, ["a", ""], flexible)
        arrays.write_strings(out, None, flexible)
        numbers, pos = arrays.read_numbers(out, 0, "i", 4, flexible)
        uuids, pos = arrays.read_uuids(out, pos, flexible)
        strings, pos = arrays.read_strings(out, pos, flexible)
        none, pos = arrays.read_nullable_strings(out, pos, flexible)
        assert (numbers, uuids, strings, none, pos) == ([1, -2], [b"u" * 16], ["a", ""], None, len(out))
