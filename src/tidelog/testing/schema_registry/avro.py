"""Avro: fastavro decides what is a schema; this module has its canonical text and the rules of schema resolution.

Schema resolution: Avro's specification, 1.12, "Schema Resolution". Names of records, enums and fixed are compared with their
namespaces.
"""

from __future__ import annotations

import json
from typing import Any

from fastavro.schema import SchemaParseException, UnknownType, parse_schema

from tidelog.testing.schema_registry.avro_resolution import differences
from tidelog.testing.schema_registry.errors import InvalidSchema
from tidelog.testing.schema_registry.formats import Comparison, Document

_ORDER = ("type", "name", "namespace", "doc", "fields", "items", "values", "symbols", "size", "default", "order", "aliases")
_KNOWN = frozenset(_ORDER)
_NAMED = {"record": "fields", "error": "fields", "enum": "symbols", "fixed": "size"}
"""Types that have a name, and their other required attributes."""


def canonical(document: Document, normalize: bool) -> str:
    """Compact JSON with Avro's own attributes first and in a fixed order; ``normalize`` also sorts the others."""
    names: dict[str, Any] = {}
    try:
        for text in document.references.values():
            parse_schema(_load(text), named_schemas=names)
        schema = _ordered(_load(document.text), "", normalize)
        parse_schema(schema, named_schemas=names)
    except (SchemaParseException, UnknownType, ValueError, TypeError, KeyError, RecursionError) as problem:
        raise InvalidSchema(f"{type(problem).__name__}: {problem}") from problem
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def compare(reader: Document, writer: Document) -> Comparison:
    return Comparison(
        differences(
            (_load(reader.text), [_load(text) for text in reader.references.values()]),
            (_load(writer.text), [_load(text) for text in writer.references.values()]),
        )
    )


def _load(text: str) -> Any:
    """Parse JSON; the bare name of a type is a schema as well."""
    try:
        return json.loads(text)
    except ValueError:
        if text.strip().replace(".", "").replace("_", "").isalnum():
            return text.strip()
        raise InvalidSchema("it is not JSON") from None
    except RecursionError as problem:
        raise InvalidSchema("it is nested too deeply") from problem


def _ordered(node: Any, space: str, normalize: bool) -> Any:
    if isinstance(node, list):
        return [_ordered(each, space, normalize) for each in node]
    if not isinstance(node, dict):
        return node
    kind = node.get("type")
    if not isinstance(kind, str):
        # {"type": {...}}: the type is the schema, whatever else is there.
        return _ordered(kind, space, normalize)
    if len(node) == 1:
        return kind
    result: dict[str, Any] = {"type": kind}
    inner = space
    if kind in _NAMED:
        before, _, name = str(node["name"]).rpartition(".")
        inner = before or node.get("namespace", space)
        if _NAMED[kind] not in node:
            raise InvalidSchema(f"{kind} {name} has no {_NAMED[kind]}")
        result["name"] = name
        if inner != space:
            result["namespace"] = inner
    for key in _ORDER[3:]:
        if key not in node:
            continue
        if key == "fields":
            result[key] = [_field(field, inner, normalize) for field in node[key]]
        else:
            result[key] = _ordered(node[key], inner, normalize) if key in ("items", "values") else node[key]
    return result | _others(node, normalize)


def _field(node: dict[str, Any], space: str, normalize: bool) -> dict[str, Any]:
    result = {"name": node["name"], "type": _ordered(node["type"], space, normalize)}
    for key in ("doc", "default", "order", "aliases"):
        if key in node and (key, node[key]) != ("order", "ascending"):
            result[key] = node[key]
    return result | _others(node, normalize)


def _others(node: dict[str, Any], normalize: bool) -> dict[str, Any]:
    """Attributes that Avro does not define, logical types among them."""
    keys = [key for key in node if key not in _KNOWN]
    return {key: node[key] for key in (sorted(keys) if normalize else keys)}
