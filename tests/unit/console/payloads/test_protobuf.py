from __future__ import annotations

import base64
import json
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.console.payloads.protobuf_samples import EVENT, OLD, REFERENCES, classes
from tidelog.console.payloads.framed import Refused
from tidelog.console.payloads.protobuf import MAX_DEPTH, MAX_VALUES, reader

CLASSES = classes(EVENT, REFERENCES)
Event, Line, Money = CLASSES["shop.Event"], CLASSES["shop.Event.Line"], CLASSES["shop.Money"]
READ = reader(EVENT, REFERENCES)
AT_EVENT = b"\x02\x02"


def shown(message: Any) -> Any:
    return json.loads(READ(AT_EVENT + message.SerializeToString()))


def test_integers_are_exact_and_only_what_is_there_is_shown() -> None:
    event = Event(id=9007199254740993, big=(1 << 64) - 1, kind=1, raw=b"\x00\xff", ratio=0.1, score=0.1, low=-5, sure=True)
    assert READ(AT_EVENT + event.SerializeToString()) == (
        '{"id":9007199254740993,"big":18446744073709551615,"kind":"SALE","raw":"AP8=","score":0.1,"ratio":0.1,"sure":true,"low":-5}'
    )
    assert shown(Event(score=math.nan, ratio=-math.inf)) == {"score": "nan", "ratio": "-inf"}
    assert shown(Event()) == {}
    assert shown(Event(maybe=0)) == {"maybe": 0}


def test_maps_lists_and_messages_of_references() -> None:
    event = Event(counts={"a": -1, "": 2}, kinds=[0, 1, 7], deltas=[-3, 3], places=[1, 2], cash=Money(units=-9, currency="EUR"))
    event.lines[-4].CopyFrom(Line(sku="x", inner=[Line(change=-1)]))
    event.lines[5].CopyFrom(Line())
    assert shown(event) == {
        "counts": {"a": -1, "": 2},
        "lines": {"-4": {"sku": "x", "inner": [{"change": -1}]}, "5": {}},
        "kinds": ["NONE", "SALE", 7],
        "deltas": [-3, 3],
        "places": [1, 2],
        "cash": {"units": -9, "currency": "EUR"},
    }


def test_well_known_types_are_what_they_stand_for() -> None:
    event = Event()
    event.at.seconds, event.at.nanos = 1, 500_000_000
    event.took.seconds, event.took.nanos = -1, -500_000_000
    event.note.value = "n"
    event.extra.update({"list": [1.5, None, "x", True], "in": {"a": 2}})
    event.detail.Pack(Money(units=3))
    assert shown(event) == {
        "at": "1970-01-01T00:00:01.500000000Z",
        "took": "-1.5s",
        "note": "n",
        "extra": {"list": [1.5, None, "x", True], "in": {"a": 2}},
        "detail": {"@type": "type.googleapis.com/shop.Money", "units": 3},
    }
    other = Event()
    other.detail.type_url, other.detail.value = "x/not.known", b"\x01"
    assert shown(other) == {"detail": {"@type": "x/not.known", "#value": "AQ=="}}


def test_a_message_in_parts_is_merged_and_the_last_of_a_oneof_stays() -> None:
    parts = (
        Event(line=Line(sku="a"), card="c").SerializeToString()
        + Event(line=Line(change=2), cash=Money(units=1)).SerializeToString()
    )
    assert json.loads(READ(AT_EVENT + parts)) == {"line": {"sku": "a", "change": 2}, "cash": {"units": 1}}


def test_fields_that_the_schema_does_not_know_are_shown_in_their_form() -> None:
    body = (
        b"\xa0\x06\x05"
        + b"\xa0\x06\x06"
        + b"\xaa\x06\x01x"
        + b"\xb5\x06\x01\x00\x00\x00"
        + b"\xbb\x06\x08\x01\xbc\x06"
        + b"\x1a\x01x"
    )
    assert json.loads(READ(AT_EVENT + body)) == {
        "#100": [{"varint": 5}, {"varint": 6}],
        "#101": {"bytes": "eA=="},
        "#102": {"fixed32": 1},
        "#103": {"group": {"#1": {"varint": 1}}},
        "#3": {"bytes": "eA=="},
    }


def test_groups_and_extensions_of_proto2() -> None:
    old = classes(OLD)["Old"]()
    old.part.n = 1
    old.part.inner.add(s="x")
    body = old.SerializeToString() + b"\xa0\x06\x07"
    assert json.loads(reader(OLD, {})(b"\x00" + body)) == {"part": {"n": 1, "inner": [{"s": "x"}]}, "[extra]": 7}


def test_the_place_of_a_message_is_read_as_each_client_counts() -> None:
    body = Line(sku="x", change=1).SerializeToString()
    assert json.loads(READ(b"\x04\x02\x04" + body)) == {"sku": "x", "change": 1}  # Python and Go: behind two entries of maps
    assert json.loads(READ(b"\x04\x02\x00" + body)) == {"sku": "x", "change": 1}  # Java: the first that is declared
    for place in (b"\x02\x06", b"\x04\x02\x08", b"\x02\x01", b"\x03\x00", b"\x02", b"\x82\x82\x82\x82\x82\x02"):
        with pytest.raises(Refused):
            READ(place + body)


@pytest.mark.parametrize(
    "body",
    [
        b"\x18", b"\x18\x80", b"\x18" + b"\xff" * 11, b"\x52\x05x", b"\x52\x01\xff", b"\x00", b"\x1b", b"\x1c", b"\x1e",
        b"\x41\x00", b"\x62\x02\x80", b"\xbb\x06\xc4\x06",
    ],
)  # fmt: skip
def test_broken_bytes_are_refused_with_a_reason(body: bytes) -> None:
    with pytest.raises(Refused) as caught:
        READ(AT_EVENT + body)
    assert str(caught.value)


def test_depth_and_number_of_values_are_bounded() -> None:
    for nested in (b"\x1b" * 100_000, b"\xdb\x06" * 100_000):
        with pytest.raises(Refused, match=f"{MAX_DEPTH} levels"):
            READ(AT_EVENT + nested)
    line = b""
    for _ in range(MAX_DEPTH + 5):
        line = b"\x1a" + _varint(len(line)) + line
    with pytest.raises(Refused, match="levels"):
        READ(b"\x04\x02\x00" + line)
    with pytest.raises(Refused, match="values"):
        READ(AT_EVENT + b"\x62" + _varint(MAX_VALUES) + b"\x00" * MAX_VALUES)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


TEXTS = st.text(max_size=8)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "counts": st.dictionaries(TEXTS, st.integers(-(1 << 63), (1 << 63) - 1), max_size=4),
        "id": st.integers(-(1 << 63), (1 << 63) - 1),
        "big": st.integers(0, (1 << 64) - 1),
        "raw": st.binary(max_size=9),
        "score": st.floats(allow_nan=False),
        "ratio": st.floats(width=32, allow_nan=False),
        "deltas": st.lists(st.integers(-(1 << 31), (1 << 31) - 1), max_size=5),
        "places": st.lists(st.integers(0, (1 << 64) - 1), max_size=5),
        "low": st.integers(-(1 << 31), (1 << 31) - 1),
        "maybe": st.integers(-(1 << 31), (1 << 31) - 1),
        "card": TEXTS,
    },
)


@given(VALUES)
def test_what_protobuf_writes_is_read(values: dict[str, Any]) -> None:
    message = Event(**values)
    present = {field.name for field, _ in message.ListFields()}
    wanted = {name: _json(value) for name, value in values.items() if name in present}
    found = shown(message)
    assert found.keys() == wanted.keys()
    again = Event(**{name: base64.b64decode(value) if name == "raw" else _number(value) for name, value in found.items()})
    assert again.SerializeToString(deterministic=True) == message.SerializeToString(deterministic=True)


def _json(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any) -> Any:
    return float(value) if value in ("nan", "inf", "-inf") else value


SAMPLE = Event(
    counts={"a": 1}, id=5, kinds=[1, 1], card="c", deltas=[1, 2], line=Line(sku="s", inner=[Line(sku="t")]), raw=b"r"
).SerializeToString(deterministic=True)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, len(SAMPLE) - 1), st.integers(0, 255)), max_size=4), st.integers(0, len(SAMPLE)))
def test_changed_and_cut_bytes_are_json_or_refused(changes: list[tuple[int, int]], size: int) -> None:
    body = bytearray(SAMPLE)
    for position, value in changes:
        body[position] = value
    with suppress(Refused):
        json.loads(READ(AT_EVENT + bytes(body[:size])))


@given(st.binary(max_size=60))
def test_any_bytes_are_json_or_refused(body: bytes) -> None:
    with suppress(Refused):
        json.loads(READ(body))
