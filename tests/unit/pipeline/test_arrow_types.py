"""Schemas as types of columns."""

from __future__ import annotations

from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")

from tidelog.model.errors import ConfigError  # noqa: E402
from tidelog.pipeline.arrow_types import ddl, of_avro, of_json_schema  # noqa: E402

AT = pa.timestamp("us", tz="UTC")


def record(kind: Any) -> Any:
    return {"type": "record", "name": "R", "fields": [{"name": "f", "type": kind}]}


@pytest.mark.parametrize(
    ("avro", "arrow", "spark"),
    [
        ("long", pa.int64(), "bigint"),
        (["null", "double"], pa.float64(), "double"),
        ({"type": "long", "logicalType": "timestamp-millis"}, AT, "timestamp"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, pa.decimal128(9, 2), "decimal(9, 2)"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.string(), "string"),
        ({"type": "array", "items": "int"}, pa.list_(pa.int32()), "array<int>"),
        ({"type": "map", "values": "boolean"}, pa.map_(pa.string(), pa.bool_()), "map<string, boolean>"),
    ],
)
def test_avro_becomes_arrow_and_ddl(avro: Any, arrow: Any, spark: str) -> None:
    assert of_avro(record(avro)) == pa.struct([("f", arrow)])
    assert ddl(of_avro(record(avro))) == f"struct<`f`: {spark}>"


@pytest.mark.parametrize("avro", [["null", "int", "string"], "R", "Nobody"])
def test_avro_that_no_column_can_hold_is_told(avro: Any) -> None:
    with pytest.raises(ConfigError, match="Avro schema"):
        of_avro(record(avro))


def test_a_json_schema_becomes_a_struct() -> None:
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "n": {"type": ["null", "integer"]},
            "at": {"type": "string", "format": "date-time"},
            "in": {"$ref": "#/definitions/p"},
            "tags": {"type": "array", "items": {"type": "number"}},
        },
        "definitions": {"p": {"properties": {"x": {"type": "boolean"}}}},
    }
    assert ddl(of_json_schema(schema)) == (
        "struct<`id`: string, `n`: bigint, `at`: timestamp, `in`: struct<`x`: boolean>, `tags`: array<double>>"
    )


@pytest.mark.parametrize("wrong", [{"type": ["string", "integer"]}, {"$ref": "#/no"}, {"type": "object"}, {}])
def test_json_schemas_without_one_type_are_told(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="JSON Schema"):
        of_json_schema({"type": "object", "properties": {"f": wrong}})
