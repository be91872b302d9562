"""Compiled decoding of values: which are plain, and that Avro's are what the row decoder makes of them."""

from __future__ import annotations

import io
import json
import math
import random
from datetime import date, datetime
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
fastavro = pytest.importorskip("fastavro")
pytest.importorskip("tidelog.spark._values", reason="not compiled here")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from tidelog.pipeline.model import Decode, Format  # noqa: E402
from tidelog.pipeline.payloads import Decoder, arrow_type, resolve, to_arrow  # noqa: E402
from tidelog.spark.values import ValueField, Values, ValueSchema, decoder  # noqa: E402

JSON = ValueSchema(
    True,
    (
        ValueField("id", "long", required=True),
        ValueField("n", "int"),
        ValueField("x", "double"),
        ValueField("name", "text"),
        ValueField("ok", "boolean"),
        ValueField("at", "micros"),
        ValueField("day", "date"),
    ),
)


def made(schema: ValueSchema) -> Values:
    found = decoder(schema)
    assert found is not None
    return found


def rows(schema: ValueSchema, values: list[bytes | None], keys: list[bytes | None] | None = None) -> list[Any]:
    """For each value its row, or "odd"."""
    given_keys = None if keys is None else pa.array(keys, pa.binary())
    decoded = made(schema).decode(pa.array(values, pa.binary()), given_keys)
    batch = pa.RecordBatch.from_arrays(decoded.columns, [field.name for field in schema.fields])
    batch.validate(full=True)
    plain = iter(batch.to_pylist())
    found = [next(plain) if is_plain else "odd" for is_plain in decoded.plain.to_pylist()]
    assert found.count("odd") == len(values) - decoded.count
    return found


def row(text: str) -> Any:
    return rows(JSON, [text.encode()])[0]


def test_a_plain_object_becomes_a_row_whatever_the_order_and_the_blanks() -> None:
    found = row(
        ' {"x" : -1.5e3,\t"id":9223372036854775, "ok":true ,"name":"a\\u00e9\\ud83d\\ude00\\n\\"\\/", "n": -2147483648}\r\n'
    )
    assert (found["id"], found["n"], found["x"], found["ok"]) == (9223372036854775, -2147483648, -1500.0, True)
    assert found["name"] == 'aé😀\n"/'
    found = row('{"id": 0, "at": "2024-02-29T23:59:59.5Z", "day": "1969-12-31", "name": null}')
    assert str(found["at"]) == "2024-02-29 23:59:59.500000+00:00"
    assert (str(found["day"]), found["name"], found["n"]) == ("1969-12-31", None, None)


def test_a_null_is_a_row_of_nulls() -> None:
    assert rows(JSON, [None]) == [dict.fromkeys(field.name for field in JSON.fields)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "null",
        "[]",
        '[{"id": 1}]',
        "{",
        "{}",
        '{"id": 1',
        '{"id": 1}}',
        '{"id": 1} {"id": 2}',
        '{"id": 1},',
        '{"id": 1,}',
        '{"id": 1 "n": 2}',
        '{"id" 1}',
        "{'id': 1}",
        "{id: 1}",
        '{"id": null}',
        '{"id": 1, "more": 2}',
        '{"id": 1, "id": 2}',
        '{"i\\u0064": 1}',
        '{"id": 01}',
        '{"id": +1}',
        '{"id": -0}',
        '{"id": 1.0}',
        '{"id": 1e2}',
        '{"id": "1"}',
        '{"id": true}',
        '{"id": 9223372036854775808}',
        '{"id": 1, "n": 2147483648}',
        '{"id": 1, "x": NaN}',
        '{"id": 1, "x": 1.}',
        '{"id": 1, "x": .5}',
        '{"id": 1, "x": 1e999}',
        '{"id": 1, "x": 1e}',
        '{"id": 1, "x": "1"}',
        '{"id": 1, "x": -0.0}',
        '{"id": 1, "name": 5}',
        '{"id": 1, "name": {"a": 1}}',
        '{"id": 1, "name": "\n"}',
        '{"id": 1, "name": "\\x"}',
        '{"id": 1, "name": "\\ud83d"}',
        '{"id": 1, "name": "\\ude00"}',
        '{"id": 1, "name": "\\u00"}',
        '{"id": 1, "name": "a}',
        '{"id": 1, "ok": "true"}',
        '{"id": 1, "ok": 1}',
        '{"id": 1, "ok": tru}',
        '{"id": 1, "at": "2023-02-29T00:00:00Z"}',
        '{"id": 1, "at": "2024-01-01T24:00:00Z"}',
        '{"id": 1, "at": "2024-01-01T00:00:00"}',
        '{"id": 1, "at": "2024-01-01T00:00:00.Z"}',
        '{"id": 1, "at": "2024-01-01T00:00:00.1234567Z"}',
        '{"id": 1, "at": "2024-01-01 00:00:00Z"}',
        '{"id": 1, "at": 5}',
        '{"id": 1, "day": "2024-1-1"}',
        '{"id": 1, "day": "0000-01-01"}',
        '\ufeff{"id": 1}',
        '{"id": nul}',
    ],
)
def test_whatever_is_in_doubt_is_odd(text: str) -> None:
    assert row(text) == "odd"


def test_text_that_is_not_utf8_is_odd_in_a_value_and_in_a_text_key() -> None:
    bad = [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xf0\x80\x80\x80"]
    assert rows(JSON, [b'{"id": 1, "name": "' + piece + b'"}' for piece in bad]) == ["odd"] * len(bad)
    found = rows(JSON, [b'{"id": 1}'] * (len(bad) + 3), [*bad, None, b"", "grün".encode()])
    assert found[: len(bad)] == ["odd"] * len(bad)
    assert "odd" not in found[len(bad) :]


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.text(st.characters(exclude_categories=["Cs"])),
)
@settings(max_examples=300, deadline=None)
def test_numbers_and_texts_are_pythons_own_where_they_are_plain(number: float, whole: int, text: str) -> None:
    for ascii_only in (True, False):
        record = {"id": whole, "x": number, "name": text}
        found = row(json.dumps(record, ensure_ascii=ascii_only))
        if found != "odd":
            assert {name: found[name] for name in record} == record
            assert math.copysign(1, found["x"]) == math.copysign(1, number)


def test_a_slice_of_a_column_is_decoded_from_where_it_begins() -> None:
    column = pa.array([b"{}", None, b'{"id": 1}', b'{"id": 2}'], pa.binary()).slice(1, 2)
    decoded = made(JSON).decode(column)
    assert decoded.plain.to_pylist() == [True, True]
    assert decoded.columns[0].to_pylist() == [None, 1]


AVRO = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "i", "type": "int"},
        {"name": "l", "type": ["null", "long"]},
        {"name": "f", "type": "float"},
        {"name": "d", "type": ["double", "null"]},
        {"name": "s", "type": ["null", "string"]},
        {"name": "b", "type": "bytes"},
        {"name": "ok", "type": "boolean"},
        {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "us", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    ],
}
AVRO_KINDS = ("int", "long", "float", "double", "text", "bytes", "boolean", "millis", "micros", "date")
NULLS = (-1, 0, -1, 1, 0, -1, -1, -1, 0, -1)
AVRO_VALUES = ValueSchema(
    False,
    tuple(
        ValueField(str(field["name"]), kind, False, null)
        for field, kind, null in zip(AVRO["fields"], AVRO_KINDS, NULLS, strict=True)  # type: ignore[arg-type,index]
    ),
)


def avro_bytes(chance: random.Random) -> bytes:
    """A record, as it should be or with some of its bytes changed, lost or added."""
    out = io.BytesIO()
    pick = chance.choice
    bits = [1 << chance.randrange(63), -(1 << chance.randrange(63)), 0, chance.randrange(1000)]
    plain = json.loads(json.dumps(AVRO).replace("logicalType", "was"))
    record = {
        "i": max(-(1 << 31), min((1 << 31) - 1, pick(bits))),
        "l": pick([None, *bits]),
        "f": pick([0.0, 1.5, -3e38, 1e-40]),
        "d": pick([None, chance.random(), -1e300, math.inf]),
        "s": pick([None, "", "grün😀", "x" * 70]),
        "b": pick([b"", b"\xff\x00"]),
        "ok": chance.random() < 0.5,
        "ms": pick([0, -1, 253402300799999, 253402300800000, -62135596800000, -62135596800001, chance.randrange(1 << 42)]),
        "us": pick([None, 253402300799999999, 253402300800000000, -62135596800000000, -1]),
        "day": pick([0, -719162, -719163, 2932896, 2932897]),
    }
    fastavro.schemaless_writer(out, fastavro.parse_schema(plain), record)
    found = bytearray(out.getvalue())
    for _ in range(chance.choice([0, 0, 0, 1, 1, 3])):
        at = chance.randrange(len(found))
        what = chance.randrange(3)
        if what == 0:
            found[at] = chance.randrange(256)
        elif what == 1:
            del found[at]
        else:
            found.insert(at, 128)
    return bytes(found)


@pytest.mark.parametrize("seed", range(20))
def test_plain_avro_is_what_the_row_decoder_reads(seed: int) -> None:
    chance = random.Random(seed)
    values = [None if chance.random() < 0.02 else avro_bytes(chance) for _ in range(1000)]
    resolved = resolve(Decode(Format.AVRO, json.dumps(AVRO)), None)
    kind = arrow_type(resolved)
    theirs, errors = to_arrow(*Decoder(resolved).decode(values), kind)
    expected = theirs.to_pylist()
    ours = rows(AVRO_VALUES, values)
    for value, found, other, error in zip(values, ours, expected, errors, strict=True):
        if found != "odd":
            assert error is None, (value, found, error)
            assert (found if value is not None else None) == other, value
    assert 100 < len(ours) - ours.count("odd") < 900, "many of the untouched ones, and few of the others"


NUMBERS = (
    "0", "-0", "1", "-7", "2147483647", "2147483648", "-2147483649", "123456789012345678", "9223372036854775807", "1e5", "1E+5",
    "0.1", "123456789.123456789", "7.038531e-26", "8.41e-260", "1e22", "1e23", "9007199254740993", "4.9e-324", "1e400", "0e999",
    "2.2250738585072011e-308", "1.7976931348623157e308", "-0.0", "1.", ".5", "01", "+1", "NaN",
)  # fmt: skip
TEXTS = ('""', '"a"', '"é😀"', '"\\u00e9"', '"\\ud83d\\ude00"', '"\\n\\"\\/"', '"\\u0000"', '"\\ud83d"', '"\\x"')
TIMES = (
    "2024-02-29T23:59:59Z",
    "2023-02-29T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "2000-02-29T12:34:56.123456Z",
    "2024-01-01T00:00:60Z",
)
DAYS = ("2024-02-29", "1900-02-29", "0001-01-01", "9999-12-31", "2024-04-31")


def json_bytes(chance: random.Random) -> bytes:
    """An object, as it should be or with some of its bytes changed, lost or added."""
    of_kind = {
        "long": lambda: chance.choice(NUMBERS),
        "int": lambda: chance.choice(NUMBERS),
        "double": lambda: chance.choice([*NUMBERS, repr(chance.uniform(-1, 1) * 10.0 ** chance.randrange(-320, 308))]),
        "text": lambda: chance.choice(TEXTS),
        "boolean": lambda: chance.choice(["true", "false"]),
        "micros": lambda: f'"{chance.choice(TIMES)}"',
        "date": lambda: f'"{chance.choice(DAYS)}"',
    }
    fields = [field for field in JSON.fields if field.required or chance.random() < 0.4]
    chance.shuffle(fields)
    blank = chance.choice(["", " ", "\t"])
    pairs = [f'{blank}"{field.name}":{blank}{of_kind[field.kind]()}' for field in fields]
    found = bytearray(f"{{{','.join(pairs)}}}".encode())
    for _ in range(chance.choice([0, 0, 0, 1, 3])):
        at = chance.randrange(len(found))
        what = chance.randrange(3)
        if what == 0:
            found[at] = chance.choice(b'\x00\x80"\\\\{}:,0e.-')
        elif what == 1:
            del found[at]
        else:
            found.insert(at, chance.choice(b'"\\\\,0 \xff'))
    return bytes(found)


def of_python(value: bytes) -> dict[str, Any]:
    """What Python's own parsers read. They are stricter than they must be, never more lenient than a row allows."""
    pairs = json.loads(value.decode(), object_pairs_hook=list, parse_int=str, parse_float=str)
    read = dict(pairs)
    assert len(read) == len(pairs)
    makers: dict[str, Any] = {"long": int, "int": int, "double": float, "text": str, "boolean": bool}
    makers |= {"micros": datetime.fromisoformat, "date": date.fromisoformat}
    known = {field.name: None if read.get(field.name) is None else makers[field.kind](read[field.name]) for field in JSON.fields}
    assert read.keys() <= known.keys()
    return known


@pytest.mark.parametrize("seed", range(20))
def test_plain_json_is_what_pythons_parser_reads(seed: int) -> None:
    chance = random.Random(seed)
    values: list[bytes | None] = [json_bytes(chance) for _ in range(1000)]
    ours = rows(JSON, values)
    for value, found in zip(values, ours, strict=True):
        if found != "odd":
            assert value is not None
            assert [repr(x).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc") for x in found.values()] == [
                repr(x) for x in of_python(value).values()
            ], value
    assert 50 < len(ours) - ours.count("odd") < 900


@pytest.mark.parametrize("schema", [JSON, AVRO_VALUES], ids=["json", "avro"])
def test_looking_for_odd_values_finds_those_that_decoding_leaves(schema: ValueSchema) -> None:
    chance = random.Random(5)
    make = json_bytes if schema.json else avro_bytes
    values = [None if chance.random() < 0.02 else make(chance) for _ in range(500)]
    keys = [chance.choice([None, b"k", b"\xff"]) for _ in values]
    ours, theirs = pa.array(values, pa.binary()), pa.array(keys, pa.binary())
    for given_keys in (None, theirs):
        decoded = made(schema).decode(ours, given_keys)
        odd, count = made(schema).odd(ours, given_keys)
        assert odd.to_pylist() == [not is_plain for is_plain in decoded.plain.to_pylist()]
        assert 0 < count == len(values) - decoded.count


def test_framed_avro_of_another_schema_is_odd() -> None:
    schema = ValueSchema(False, (ValueField("i", "int"),), schema_id=7)
    others = [b"\x00\x00\x00\x00\x08\x02", b"\x01\x00\x00\x00\x07\x02", b"\x00\x00", b"\x02"]
    assert rows(schema, [b"\x00\x00\x00\x00\x07\x02", *others]) == [{"i": 1}, *["odd"] * 4]


def test_framed_json_of_any_id_is_decoded_behind_its_header() -> None:
    schema = ValueSchema(True, (ValueField("i", "int"),), schema_id=0)
    assert rows(schema, [b'\x00\x00\x00\x00\x08{"i": 1}', b'{"i": 1}', b"\x00\x00\x00\x00"]) == [{"i": 1}, "odd", "odd"]


def test_both_modules_have_the_same_kinds() -> None:
    from tidelog.spark import _values, values

    assert _values.KINDS == values.KINDS == tuple(values.ARROW)
