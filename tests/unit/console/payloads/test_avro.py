from __future__ import annotations

import datetime
import io
import json
import uuid
from contextlib import suppress
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.console.payloads.avro import MAX_SCHEMA_DEPTH, reader
from tidelog.console.payloads.framed import Refused

ADDRESS = {"type": "record", "name": "Address", "namespace": "z", "fields": [{"name": "city", "type": "string"}]}
PERSON = {
    "type": "record",
    "name": "Person",
    "namespace": "z",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "home", "type": ["null", "z.Address"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "raw", "type": "bytes"},
        {"name": "score", "type": "double"},
    ],
}


def written(schema: Any, value: Any, *references: Any) -> bytes:
    named: dict[str, Any] = {}
    for each in references:
        fastavro.parse_schema(each, named_schemas=named)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema, named_schemas=named), value)
    return out.getvalue()


def test_values_are_exact_and_names_come_from_references() -> None:
    value = {"id": 9007199254740993, "home": {"city": "Köln"}, "tags": ["a"], "raw": b"\x00\xff", "score": float("inf")}
    text = reader(json.dumps(PERSON), [json.dumps(ADDRESS)])(written(PERSON, value, ADDRESS))
    assert text == '{"id":9007199254740993,"home":{"city":"Köln"},"tags":["a"],"raw":"\\u0000ÿ","score":"inf"}'


def test_logical_types_are_texts() -> None:
    fields: list[tuple[str, Any, Any, str]] = [
        ("a", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, Decimal("1.10"), "1.10"),
        ("b", {"type": "int", "logicalType": "date"}, datetime.date(2026, 11, 28), "2026-11-28"),
        (
            "c",
            {"type": "long", "logicalType": "timestamp-millis"},
            datetime.datetime(2026, 11, 28, tzinfo=datetime.UTC),
            "2026-11-28T00:00:00Z",
        ),
        ("e", {"type": "int", "logicalType": "time-millis"}, datetime.time(1, 2, 3, 4000), "01:02:03.004"),
        ("d", {"type": "string", "logicalType": "uuid"}, uuid.UUID(int=1), str(uuid.UUID(int=1))),
    ]
    schema = {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind, _, _ in fields]}
    text = reader(json.dumps(schema))(written(schema, {name: value for name, _, value, _ in fields}))
    assert json.loads(text) == {name: shown for name, _, _, shown in fields}


@pytest.mark.parametrize("body", [b"", b"\x02", b"\x02\x04xx\x00\x00\x00"])
def test_bytes_that_do_not_fit_are_refused(body: bytes) -> None:
    with pytest.raises(Refused):
        reader(json.dumps(PERSON), [json.dumps(ADDRESS)])(body)


def test_bytes_behind_the_value_are_refused() -> None:
    with pytest.raises(Refused, match="1 bytes follow"):
        reader('"long"')(b"\x02\x00")


@pytest.mark.parametrize(
    "items",
    ["null", {"type": "record", "name": "E", "fields": []}, {"type": "fixed", "name": "F", "size": 0}],
)
def test_an_array_of_nothing_cannot_claim_any_length(items: Any) -> None:
    read = reader(json.dumps({"type": "array", "items": items}))
    assert len(json.loads(read(b"\x06\x00"))) == 3
    with pytest.raises(Refused, match="values"):
        read(b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00")


def test_records_of_themselves_are_read_to_a_depth() -> None:
    schema = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}
    assert reader(json.dumps(schema))(b"\x02\x02\x00") == '{"next":{"next":{"next":null}}}'
    with pytest.raises(Refused, match="levels"):
        reader(json.dumps(schema))(b"\x02" * 100_000)
    endless = {"type": "record", "name": "L", "fields": [{"name": "next", "type": "L"}]}
    with pytest.raises(Refused, match="levels"):
        reader(json.dumps(endless))(b"")


VALUES = st.fixed_dictionaries(
    {
        "id": st.integers(-(1 << 63), (1 << 63) - 1),
        "home": st.none() | st.fixed_dictionaries({"city": st.text()}),
        "tags": st.lists(st.text(max_size=5), max_size=5),
        "raw": st.binary(max_size=9),
        "score": st.floats(allow_nan=False, allow_infinity=False),
    }
)


@given(VALUES)
def test_what_fastavro_writes_is_read(value: dict[str, Any]) -> None:
    text = reader(json.dumps(PERSON), [json.dumps(ADDRESS)])(written(PERSON, value, ADDRESS))
    assert json.loads(text) == {**value, "raw": value["raw"].decode("latin-1")}


def test_maps_enums_fixed_and_blocks_with_a_size() -> None:
    suit = {"type": "enum", "name": "Suit", "symbols": ["A", "B"]}
    schema = {"type": "map", "values": ["null", suit, {"type": "fixed", "name": "Two", "size": 2}, "boolean", "float"]}
    value = {"a": None, "b": "B", "c": b"\x00\xff", "d": True, "e": 1.5}
    found = json.loads(reader(json.dumps(schema))(written(schema, value)))
    assert found == {**value, "c": "\x00\xff"}
    assert reader('{"type":"array","items":"long"}')(b"\x03\x04\x02\x04\x00") == "[1,2]"
    for body in (b"\x02\x02a\x0c\x00", b"\x02\x02a\x02\x04\x00", b"\x02\x02\xff\x00\x00"):
        with pytest.raises(Refused):
            reader(json.dumps(schema))(body)


@pytest.mark.parametrize(
    "schema",
    ["{", '"nothing"', '{"type": "record"}', "[]", '{"type":"record","name":"R","fields":[{"name":"a","type":"X"}]}'],
)
def test_a_schema_that_cannot_be_used_is_refused(schema: str) -> None:
    try:
        read = reader(schema)
    except Refused:
        return
    with pytest.raises(Refused):
        read(b"\x00")


@given(st.binary(max_size=60))
def test_any_bytes_are_json_or_refused(body: bytes) -> None:
    read = reader(json.dumps(PERSON), [json.dumps(ADDRESS)])
    with suppress(Refused):
        json.loads(read(body))


def test_decimals_keep_all_their_digits() -> None:
    schema = json.dumps({"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 2})
    number = 10**50 + 1
    size = 22
    body = bytes([2 * size]) + number.to_bytes(size, "big", signed=True)
    assert reader(schema)(body) == f'"{str(number)[:-2]}.01"'


def test_a_few_bytes_claim_few_values() -> None:
    nulls = reader(json.dumps({"type": "array", "items": "null"}))
    assert json.loads(nulls(b"\xd0\x0f\x00")) == [None] * 1000
    with pytest.raises(Refused, match="values"):
        nulls(b"\xc0\x9a\x0c\x00")


def test_a_schema_of_many_levels_is_not_given_to_the_compiled_parser() -> None:
    levels = MAX_SCHEMA_DEPTH
    with pytest.raises(Refused, match="levels"):
        reader('{"type":"array","items":' * levels + '"int"' + "}" * levels)
    assert reader('{"type":"array","items":' * 50 + '"int"' + "}" * 50)(b"\x00") == "[]"
