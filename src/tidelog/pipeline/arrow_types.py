"""Schemas of records as Arrow types, and Arrow types as Spark DDL: the one path from Avro, Protobuf and JSON Schema to
columns."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from tidelog.model.errors import ConfigError

_DDL = {
    pa.bool_(): "boolean", pa.int32(): "int", pa.int64(): "bigint", pa.float32(): "float", pa.float64(): "double",
    pa.string(): "string", pa.binary(): "binary", pa.date32(): "date", pa.timestamp("us", tz="UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}  # fmt: skip
_AVRO = {
    "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(),
    "string": pa.string(), "bytes": pa.binary(), "enum": pa.string(), "fixed": pa.binary(),
}  # fmt: skip
_AVRO_LOGICAL = {
    "date": pa.date32(), "timestamp-millis": pa.timestamp("us", tz="UTC"), "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "local-timestamp-millis": pa.timestamp("us"), "local-timestamp-micros": pa.timestamp("us"), "uuid": pa.string(),
}  # fmt: skip
AVRO_LOGICAL = frozenset(_AVRO_LOGICAL) | {"decimal"}
"""Avro's logical types that have a column type of their own."""
_JSON = {"boolean": pa.bool_(), "integer": pa.int64(), "number": pa.float64(), "string": pa.string()}
_JSON_FORMAT = {"date-time": pa.timestamp("us", tz="UTC"), "date": pa.date32()}
MAX_DEPTH = 32


def ddl(kind: pa.DataType) -> str:
    """Spark's DDL of an Arrow type."""
    if pa.types.is_struct(kind):
        return "struct<" + ", ".join(f"{quoted(field.name)}: {ddl(field.type)}" for field in kind) + ">"
    if pa.types.is_list(kind):
        return f"array<{ddl(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{ddl(kind.key_type)}, {ddl(kind.item_type)}>"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    return _DDL[kind]


def quoted(name: str) -> str:
    """A name in backquotes: with them Spark's DDL takes any name."""
    return "`" + name.replace("`", "``") + "`"


def of_avro(schema: Any, named: Mapping[str, Any] | None = None) -> pa.DataType:
    """The Arrow type of a schema that fastavro has parsed. ConfigError for a schema that no column can hold."""
    return _avro(schema, dict(named or {}), 0)


def _avro(schema: Any, named: dict[str, Any], depth: int) -> pa.DataType:
    if depth > MAX_DEPTH:
        raise ConfigError("The Avro schema contains itself, and a column of a table cannot: decode it in a Python transform.")
    if isinstance(schema, list):
        kinds = [branch for branch in schema if branch not in ("null", {"type": "null"})]
        if len(kinds) != 1:
            raise ConfigError(
                f"The Avro schema has a union of {len(kinds)} types, and a column has one: only [null, T] can be read."
            )
        return _avro(kinds[0], named, depth + 1)
    if isinstance(schema, str):
        if schema in _AVRO:
            return _AVRO[schema]
        if schema not in named:
            raise ConfigError(f"The Avro schema uses the type {schema!r}, which it does not define.")
        return _avro(named[schema], named, depth + 1)
    kind, logical = schema["type"], schema.get("logicalType")
    if "name" in schema:
        named[schema["name"]] = schema
    if kind == "record":
        return pa.struct([(field["name"], _avro(field["type"], named, depth + 1)) for field in schema["fields"]])
    if kind == "array":
        return pa.list_(_avro(schema["items"], named, depth + 1))
    if kind == "map":
        return pa.map_(pa.string(), _avro(schema["values"], named, depth + 1))
    if logical == "decimal":
        return pa.decimal128(int(schema["precision"]), int(schema.get("scale", 0)))
    if logical in _AVRO_LOGICAL:
        return _AVRO_LOGICAL[logical]
    return _avro(kind, named, depth + 1)


def of_json_schema(schema: Mapping[str, Any]) -> pa.DataType:
    """The Arrow type of a JSON Schema. ConfigError for a schema that no column can hold."""
    return _json(schema, schema, 0)


def _json(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> pa.DataType:
    if depth > MAX_DEPTH:
        raise ConfigError("The JSON Schema contains itself, and a column of a table cannot.")
    if "$ref" in schema:
        target: Any = root
        for step in str(schema["$ref"]).removeprefix("#/").split("/"):
            target = target.get(step) if isinstance(target, dict) else None
        if not isinstance(target, dict):
            raise ConfigError(f"The JSON Schema refers to {schema['$ref']!r}, which is not in it.")
        return _json(target, root, depth + 1)
    kinds = schema.get("type")
    choices = [branch for branch in schema.get("oneOf") or schema.get("anyOf") or () if branch.get("type") != "null"]
    if kinds is None and len(choices) == 1:
        return _json(choices[0], root, depth + 1)
    said = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind != "null"]
    kind = "object" if said == [None] and "properties" in schema else (said[0] if len(said) == 1 else None)
    if kind == "object" and schema.get("properties"):
        return pa.struct([(name, _json(value, root, depth + 1)) for name, value in schema["properties"].items()])
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return pa.map_(pa.string(), _json(schema["additionalProperties"], root, depth + 1))
    if kind == "array" and isinstance(schema.get("items"), dict):
        return pa.list_(_json(schema["items"], root, depth + 1))
    if kind == "string" and schema.get("format") in _JSON_FORMAT:
        return _JSON_FORMAT[schema["format"]]
    if kind not in _JSON:
        raise ConfigError(
            f"The JSON Schema has {str(dict(schema))[:100]}, which no column can hold: use one type, or a schema as DDL."
        )
    return _JSON[kind]


def plain(value: Any) -> Any:
    """A value from fastavro in the form that Arrow takes: UUIDs become text, all else is unchanged."""
    if value is None or isinstance(value, str | bytes | int | float | datetime.datetime | datetime.date | decimal.Decimal):
        return value
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return str(value)
