"""Which schemas of JSON and Avro consist of fields that compiled code can decode (``spark.values``)."""

from __future__ import annotations

from typing import Any

from tidelog.pipeline.decoding import SourcePlan, json_schema
from tidelog.pipeline.model import Format
from tidelog.pipeline.payloads import Resolved, avro_schema
from tidelog.spark.values import IN_JSON, ValueField, ValueSchema

_JSON = {
    "boolean": "boolean", "int": "int", "bigint": "long", "double": "double", "string": "text", "date": "date",
    "timestamp": "micros",
}  # fmt: skip
_AVRO = {
    "boolean": "boolean", "int": "int", "long": "long", "float": "float", "double": "double", "string": "text", "bytes": "bytes",
}  # fmt: skip
_LOGICAL = {
    ("int", "date"): "date", ("long", "timestamp-millis"): "millis", ("long", "timestamp-micros"): "micros",
}  # fmt: skip
assert frozenset(_JSON.values()) == IN_JSON


def value_schema(plan: SourcePlan) -> ValueSchema | None:
    """The schema of the values; None if a key or a value has anything else."""
    if plan.key.decode.format not in (Format.RAW, Format.TEXT):
        return None
    if plan.value.decode.format is Format.JSON:
        return _of_json(plan.value)
    return _of_avro(plan.value) if plan.value.decode.format is Format.AVRO else None


def _of_json(resolved: Resolved) -> ValueSchema | None:
    schema, required = json_schema(resolved)
    kinds = [_JSON.get(field.dataType.simpleString()) for field in schema.fields]
    fields = tuple(
        ValueField(field.name, kind, field.name in required)
        for field, kind in zip(schema.fields, kinds, strict=True)
        if kind is not None
    )
    # A required field that is no column makes every record a bad one.
    if not fields or len(fields) < len(kinds) or not set(required) <= set(schema.names):
        return None
    return ValueSchema(True, fields, 0 if resolved.decode.framed else -1)


def _of_avro(resolved: Resolved) -> ValueSchema | None:
    schema = avro_schema(resolved)
    if not isinstance(schema, dict) or schema.get("type") != "record" or not schema.get("fields"):
        return None
    fields = [_avro_field(field["name"], field["type"]) for field in schema["fields"]]
    if any(field is None for field in fields):
        return None
    framed = resolved.decode.framed
    schema_id = resolved.schema.schema_id if resolved.schema is not None else -1
    if framed and schema_id < 0:  # It was given in the pipeline: which id it has is not known.
        return None
    return ValueSchema(False, tuple(field for field in fields if field is not None), schema_id if framed else -1)


def _avro_field(name: str, kind: Any) -> ValueField | None:
    null_index = -1
    if isinstance(kind, list):
        if len(kind) != 2 or "null" not in kind:
            return None
        null_index = kind.index("null")
        kind = kind[1 - null_index]
    logical = None
    if isinstance(kind, dict):
        kind, logical = kind.get("type"), kind.get("logicalType")
    if not isinstance(kind, str):
        return None
    found = _AVRO.get(kind) if logical is None else _LOGICAL.get((kind, logical))
    return None if found is None else ValueField(name, found, False, null_index)
