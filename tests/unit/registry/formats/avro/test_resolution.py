"""Schema resolution in Avro: cases, and a comparison with really decoding data."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.schema import UnknownType
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.registry.errors import InvalidSchema
from tidelog.registry.formats import Document
from tidelog.registry.formats.avro.schema_format import canonical, compare


def text(schema: Any) -> str:
    return json.dumps(schema)


def made(schema: Any) -> str:
    return canonical(Document(text(schema)), normalize=False, new=True)


def kinds(reader: Any, writer: Any) -> list[str]:
    return [each.kind for each in compare(Document(text(reader)), Document(text(writer)), lenient=False)]


def rec(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [f if isinstance(f, dict) else {"name": f[0], "type": f[1]} for f in fields],
        **more,
    }


@pytest.mark.parametrize(
    ("reader", "writer", "wanted"),
    [
        ("long", "int", []),
        ("double", "long", []),
        ("float", "long", []),
        ("bytes", "string", []),
        ("string", "bytes", []),
        ("int", "long", ["TYPE_MISMATCH"]),
        ("string", "int", ["TYPE_MISMATCH"]),
        (["null", "long"], "int", []),
        (["null", "string"], "int", ["MISSING_UNION_BRANCH"]),
        ("int", ["int"], []),
        ("int", ["int", "string"], ["TYPE_MISMATCH"]),
        (["int"], ["int", "string"], ["MISSING_UNION_BRANCH"]),
        (rec(("a", "int")), rec(("a", "int"), ("b", "int")), []),
        (rec(("a", "int"), ("b", "int")), rec(("a", "int")), ["READER_FIELD_MISSING_DEFAULT_VALUE"]),
        (rec({"name": "b", "type": "int", "default": 0}), rec(), []),
        (rec({"name": "b", "type": "int", "aliases": ["a"]}), rec(("a", "int")), []),
        (rec(name="x.R"), rec(name="y.R"), []),
        (rec(name="S"), rec(name="R"), ["NAME_MISMATCH"]),
        (rec(name="S", aliases=["R"]), rec(name="R"), []),
        ({"type": "fixed", "name": "F", "size": 1}, {"type": "fixed", "name": "F", "size": 2}, ["FIXED_SIZE_MISMATCH"]),
        (
            {"type": "enum", "name": "E", "symbols": ["A"]},
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            ["MISSING_ENUM_SYMBOLS"],
        ),
        ({"type": "enum", "name": "E", "symbols": ["A"], "default": "A"}, {"type": "enum", "name": "E", "symbols": ["B"]}, []),
        ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}, []),
        ({"type": "map", "values": "int"}, {"type": "map", "values": "long"}, ["TYPE_MISMATCH"]),
        ({"type": "map", "values": "int"}, {"type": "array", "items": "int"}, ["TYPE_MISMATCH"]),
    ],
)
def test_resolution(reader: Any, writer: Any, wanted: list[str]) -> None:
    assert kinds(reader, writer) == wanted


def test_types_that_contain_themselves_end() -> None:
    tree = rec(("v", "int"), ("next", ["null", "R"]))
    wider = rec(("v", "long"), ("next", ["null", "R"]))
    assert kinds(wider, tree) == []
    assert "TYPE_MISMATCH" in kinds(tree, wider)


def test_a_failure_found_inside_a_cycle_counts_where_it_was_assumed_away() -> None:
    """B is read while A is in progress; A fails later, behind a union, so B must not be taken for readable."""
    writer = rec(("b", rec(("a", ["null", "A"]), name="B")), ("x", "long"), name="A")
    reader = rec(("b", rec(("a", ["null", "A"]), name="B")), ("x", "int"), name="A")
    outer_writer = rec(("u", writer), ("again", "B"), name="Outer")
    outer_reader = rec(("u", ["null", reader]), ("again", "B"), name="Outer")
    assert "MISSING_UNION_BRANCH" in kinds(outer_reader, outer_writer)
    assert len(compare(Document(text(outer_reader)), Document(text(outer_writer)), lenient=False)) >= 2


PLAIN = st.sampled_from(["null", "boolean", "int", "long", "float", "double", "bytes", "string"])


def _schemas(depth: int) -> st.SearchStrategy[Any]:
    if not depth:
        return PLAIN
    inner = _schemas(depth - 1)
    unions = st.lists(inner, min_size=1, max_size=3).filter(_is_union)
    default = st.sampled_from([None, 1])

    def as_field(name: str, kind: Any, with_default: Any) -> dict[str, Any]:
        known = {"int": 0, "long": 0, "string": "", "null": None, "boolean": False, "double": 0.5}
        more = {"default": known[kind]} if with_default and isinstance(kind, str) and kind in known else {}
        return {"name": name, "type": kind, **more}

    records = st.lists(
        st.builds(as_field, st.sampled_from("abc"), inner, default), max_size=3, unique_by=lambda f: f["name"]
    ).map(lambda fields: {"type": "record", "name": f"R{depth}", "fields": fields})
    enums = st.lists(st.sampled_from("XYZ"), min_size=1, max_size=3, unique=True).map(
        lambda symbols: {"type": "enum", "name": f"E{depth}", "symbols": symbols}
    )
    return st.one_of(
        inner,
        unions,
        records,
        enums,
        inner.map(lambda kind: {"type": "array", "items": kind}),
        inner.map(lambda kind: {"type": "map", "values": kind}),
    )


def _is_union(branches: list[Any]) -> bool:
    names = [
        each if isinstance(each, str) else each.get("name", each["type"]) if isinstance(each, dict) else "" for each in branches
    ]
    return "" not in names and len(set(names)) == len(names)


def _values(schema: Any) -> st.SearchStrategy[Any]:
    if isinstance(schema, list):
        return st.one_of([_values(each) for each in schema])
    if isinstance(schema, dict):
        match schema["type"]:
            case "array":
                return st.lists(_values(schema["items"]), max_size=2)
            case "map":
                return st.dictionaries(st.sampled_from("kl"), _values(schema["values"]), max_size=2)
            case "enum":
                return st.sampled_from(schema["symbols"])
            case "record":
                return st.fixed_dictionaries({f["name"]: _values(f["type"]) for f in schema["fields"]})
    return {
        "null": st.none(),
        "boolean": st.booleans(),
        "int": st.integers(-(1 << 31), (1 << 31) - 1),
        "long": st.integers(-(1 << 63), (1 << 63) - 1),
        "float": st.floats(width=32, allow_nan=False),
        "double": st.floats(allow_nan=False),
        "bytes": st.binary(max_size=3).filter(_is_text),
        "string": st.text(max_size=3),
    }[schema]


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_what_is_said_to_be_readable_is_read_by_fastavro(data: st.DataObject) -> None:
    try:
        writer = data.draw(_schemas(2))
        reader = data.draw(st.one_of(st.just(writer), _schemas(2)))
        parsed = [parse_schema(json.loads(made(each))) for each in (writer, reader)]
    except (InvalidSchema, UnknownType):
        return  # a name twice
    if kinds(reader, writer):
        return
    value = data.draw(_values(writer))
    raw = io.BytesIO()
    schemaless_writer(raw, parsed[0], value)
    schemaless_reader(io.BytesIO(raw.getvalue()), parsed[0], parsed[1])
