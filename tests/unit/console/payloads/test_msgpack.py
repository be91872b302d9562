from __future__ import annotations

import json
from contextlib import suppress
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.console.payloads.msgpack import NotMessagePack, as_json


def packed(value: object) -> bytes:
    """The encoding that the specification's text describes, for what these tests need."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return pack(">Bq", 0xD3, value) if value < 1 << 63 else pack(">BQ", 0xCF, value)
    if isinstance(value, float):
        return pack(">Bd", 0xCB, value)
    if isinstance(value, str):
        data = value.encode()
        return pack(">BI", 0xDB, len(data)) + data
    if isinstance(value, list):
        return pack(">BI", 0xDD, len(value)) + b"".join(map(packed, value))
    assert isinstance(value, dict)
    return pack(">BI", 0xDF, len(value)) + b"".join(packed(name) + packed(each) for name, each in value.items())


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=4), inside, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4) | st.lists(VALUES, max_size=4))
def test_maps_and_arrays_become_their_json(value: object) -> None:
    assert json.loads(as_json(packed(value))) == value


def test_the_short_forms() -> None:
    assert as_json(b"\x83\xa1a\x01\xa1b\xff\xa1c\x92\xcc\xff\xd0\x80") == '{"a":1,"b":-1,"c":[255,-128]}'
    assert as_json(b"\x91\xc4\x02\x00\xff") == '["AP8="]'
    assert as_json(b"\x91\xd6\xff\x00\x00\x00\x00") == '["1970-01-01T00:00:00Z"]'
    assert as_json(b"\x91\xd4\x05\x01") == '[{"extension":5,"data":"AQ=="}]'
    assert as_json(b"\x81\x01\x02") == '{"1":2}'


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"", "begin"),
        (b"hello", "begin"),
        (b"\x92\x01", "ends inside"),
        (b"\x91\x01\x02", "follow"),
        (b"\x91\xc1", "begins no value"),
        (b"\x91\xa1\xff", "UTF-8"),
        (b"\x82\xa1a\x01\xa1a\x02", "twice"),
        (b"\x91" * 100 + b"\x01", "levels"),
        (b"\xdd\xff\xff\xff\xff", "ends inside"),
        (b"\x91" + pack(">Bd", 0xCB, float("nan")), ""),
    ],
)
def test_what_is_none_is_refused_with_the_reason(data: bytes, part: str) -> None:
    with pytest.raises(NotMessagePack) as found:
        as_json(data)
    assert part in str(found.value)


@given(st.binary(max_size=200))
def test_any_bytes_are_json_or_refused(data: bytes) -> None:
    with suppress(NotMessagePack):
        json.loads(as_json(data))


@pytest.mark.parametrize(
    "key", [b"\x81" * 30 + b"\x80" + b"\x00" * 30, b"\x91\xa1a", b"\xd4\x05\x01"], ids=["maps", "array", "extension"]
)
def test_keys_that_are_no_scalars_are_refused(key: bytes) -> None:
    """Written as JSON inside of JSON their quotes double at each level: 61 bytes would become gigabytes."""
    with pytest.raises(NotMessagePack, match="key"):
        as_json(b"\x81" + key + b"\x00")
