"""Which schemas compiled code decodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

T = pytest.importorskip("pyspark.sql.types", reason="the extra pipeline is not installed")
pytest.importorskip("fastavro")

from tidelog.pipeline import plain_schemas  # noqa: E402
from tidelog.pipeline.decoding import SourcePlan, plan  # noqa: E402
from tidelog.pipeline.model import Decode, Format, Source  # noqa: E402
from tidelog.pipeline.payloads import Resolved  # noqa: E402
from tidelog.pipeline.plain_schemas import value_schema  # noqa: E402
from tidelog.pipeline.registry import Schema  # noqa: E402
from tidelog.spark.values import ValueField, ValueSchema  # noqa: E402


def planned(value: Decode, key: Decode = Decode()) -> SourcePlan:
    return plan(Source("s", ("t",), key=key, value=value), None)


JSON = planned(Decode(Format.JSON, "-"))
"""Spark's parser of DDL needs a session, so tests give columns instead."""


def of_json(monkeypatch: pytest.MonkeyPatch, columns: dict[str, Any], required: tuple[str, ...] = ()) -> ValueSchema | None:
    schema = T.StructType([T.StructField(name, kind) for name, kind in columns.items()])
    monkeypatch.setattr(plain_schemas, "json_schema", lambda resolved: (schema, list(required)))
    return value_schema(JSON)


def of_avro(*kinds: Any) -> ValueSchema | None:
    fields = [{"name": f"f{index}", "type": kind} for index, kind in enumerate(kinds)]
    return value_schema(planned(Decode(Format.AVRO, json.dumps({"type": "record", "name": "R", "fields": fields}))))


def test_flat_json_is_decoded_with_what_it_requires(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"id": T.LongType(), "a.b": T.StringType(), "at": T.TimestampType(), "x": T.DoubleType(), "n": T.IntegerType()}
    found = of_json(monkeypatch, {**columns, "ok": T.BooleanType(), "day": T.DateType()}, ("id",))
    assert found is not None
    kinds = {"id": "long", "a.b": "text", "at": "micros", "x": "double", "n": "int", "ok": "boolean", "day": "date"}
    assert found == ValueSchema(True, tuple(ValueField(name, kind, name == "id") for name, kind in kinds.items()))


@pytest.mark.parametrize(
    "kind",
    [
        T.StructType([T.StructField("a", T.LongType())]),
        T.ArrayType(T.LongType()),
        T.MapType(T.StringType(), T.LongType()),
        T.DecimalType(9, 2),
        T.FloatType(),
        T.TimestampNTZType(),
        T.ShortType(),
    ],
)
def test_other_columns_of_json_are_left_to_spark(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert of_json(monkeypatch, {"id": T.LongType(), "more": kind}) is None


def test_a_required_field_that_is_no_column_leaves_all_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of_json(monkeypatch, {"id": T.LongType()}, ("id", "other")) is None


def test_flat_avro_is_decoded_with_its_unions() -> None:
    found = of_avro("long", ["null", "string"], ["double", "null"], {"type": "long", "logicalType": "timestamp-millis"}, "bytes")
    assert found is not None
    assert [(field.kind, field.null_index) for field in found.fields] == [
        ("long", -1), ("text", 0), ("double", 1), ("millis", -1), ("bytes", -1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "array", "items": "int"}, {"type": "map", "values": "int"}, {"type": "enum", "name": "E", "symbols": ["A"]},
        {"type": "fixed", "name": "F", "size": 2}, {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
        {"type": "string", "logicalType": "uuid"}, {"type": "record", "name": "I", "fields": [{"name": "a", "type": "int"}]},
        {"type": "long", "logicalType": "local-timestamp-millis"},
    ],
)  # fmt: skip
def test_other_types_of_avro_are_left_to_the_row_decoder(kind: Any) -> None:
    assert of_avro("long", kind) is None


def test_a_key_that_is_decoded_too_is_left_to_the_row_decoder() -> None:
    flat = Decode(Format.AVRO, json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}))
    assert value_schema(planned(flat, Decode(Format.TEXT))) is not None
    assert value_schema(planned(flat, flat)) is None
    assert value_schema(planned(Decode(Format.TEXT))) is None


def test_framed_avro_needs_the_id_of_its_schema() -> None:
    text = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
    source = Source("s", ("t",), value=Decode(Format.AVRO, subject="s", framed=True))
    key = Resolved(source.key, None)
    for schema_id, expected in ((7, 7), (-1, None)):
        found = value_schema(SourcePlan(source, key, Resolved(source.value, None, Schema(schema_id, "AVRO", text))))
        assert (None if found is None else found.schema_id) == expected
