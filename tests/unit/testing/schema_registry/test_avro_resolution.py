"""The rules of Avro's schema resolution, each with a pair that it allows and one that it does not."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.testing.schema_registry.avro_resolution import differences


def record(*fields: dict[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str = "f", type_: Any = "int", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


TREE = record(field("left", ["null", "R"]), field("right", ["null", "R"]))
BIGGER_TREE = record(field("left", ["null", "R"]), field("right", ["null", "R"]), field("v", "int", default=0))
STRICT_TREE = record(field("left", ["null", "R"]), field("right", ["null", "R"]), field("v", "int"))

CAN_READ = [
    ("int", "int"),
    ("long", "int"),
    ("double", "float"),
    ("bytes", "string"),
    ("string", "bytes"),
    (["null", "int"], "int"),
    (["null", "long"], ["null", "int"]),
    ("int", ["int"]),
    ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}),
    ({"type": "map", "values": ["null", "int"]}, {"type": "map", "values": "int"}),
    (record(field()), record(field(), field("more", "string"))),
    (record(field(), field("new", "string", default="")), record(field())),
    (record(field("new", "int", aliases=["f"])), record(field())),
    (record(field(), name="New", aliases=["R"]), record(field())),
    (enum("A", "B"), enum("A")),
    (enum("A", default="A"), enum("A", "B")),
    (TREE, TREE),
    (BIGGER_TREE, TREE),
    ({"type": "long", "logicalType": "timestamp-millis"}, "int"),
    ({"type": "error", "name": "R", "fields": []}, record()),
]
CANNOT_READ = [
    ("int", "long", "TYPE_MISMATCH"),
    ("int", "string", "TYPE_MISMATCH"),
    ("int", ["null", "int"], "MISSING_UNION_BRANCH"),
    (["null", "int"], "string", "MISSING_UNION_BRANCH"),
    ({"type": "array", "items": "int"}, {"type": "array", "items": "string"}, "TYPE_MISMATCH at /items"),
    ({"type": "map", "values": "int"}, {"type": "array", "items": "int"}, "TYPE_MISMATCH"),
    (record(field(), field("new")), record(field()), "READER_FIELD_MISSING_DEFAULT_VALUE at /fields/1"),
    (record(field(), name="Other"), record(field()), "NAME_MISMATCH"),
    (record(field(), namespace="a"), record(field(), namespace="b"), "NAME_MISMATCH"),
    (enum("A"), enum("A", "B"), "MISSING_ENUM_SYMBOLS"),
    ({"type": "fixed", "name": "F", "size": 4}, {"type": "fixed", "name": "F", "size": 8}, "FIXED_SIZE_MISMATCH"),
    (record(field(type_=record(field("x"), name="I"))), record(field(type_=record(name="I"))), "at /fields/0/type/fields/0"),
    (STRICT_TREE, TREE, "READER_FIELD_MISSING_DEFAULT_VALUE at /fields/2"),
]  # fmt: skip


@pytest.mark.parametrize(("reader", "writer"), CAN_READ, ids=repr)
def test_can_be_read(reader: Any, writer: Any) -> None:
    assert differences((reader, []), (writer, [])) == []


@pytest.mark.parametrize(("reader", "writer", "reason"), CANNOT_READ, ids=repr)
def test_cannot_be_read(reader: Any, writer: Any, reason: str) -> None:
    found = differences((reader, []), (writer, []))
    assert found
    assert found[0].startswith(reason) or reason in found[0]


def test_types_of_references_are_looked_into() -> None:
    old, new = record(field("x"), name="I"), record(field("x", "string"), name="I")
    user = record(field(type_="I"))
    assert differences((user, [old]), (user, [old])) == []
    assert differences((user, [new]), (user, [old])) == ["TYPE_MISMATCH at /fields/0/type/fields/0/type: string cannot read int"]
