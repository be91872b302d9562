"""Tags of objects and their properties in a JSON schema.

A path names each step: ``object.address.object.street``, ``array.object``, ``anyof.0.object``, ``conditional.then.object``,
``not.object``, ``object.definitions.Street.object``. What a ``$ref`` leads to is looked at where it is defined. Alternatives are
counted in the order of their kinds, titles, descriptions and defaults, as Confluent's registry sorts them; where all four are
the same, in the order of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidelog.registry.formats.tagging import TAGS, Tagged, check_path, tags_in
from tidelog.registry.model import compact

_CRITERIA = {"allOf": "allof", "anyOf": "anyof", "oneOf": "oneof"}
_OF_OBJECTS = ("properties", "additionalProperties", "required", "minProperties", "maxProperties", "patternProperties")
_OF_ARRAYS = ("items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains")
_DEFINITIONS = ("definitions", "$defs")


def tagged(schema: Any) -> Iterator[Tagged]:
    """In the order of the schema. InvalidSchema, RecursionError for one that is nested too deeply."""
    return _tagged(schema, "", False)


def _tagged(schema: Any, scope: str, in_field: bool) -> Iterator[Tagged]:
    if not isinstance(schema, dict) or "$ref" in schema:
        return
    check_path(scope)
    for key, name in _CRITERIA.items():
        if isinstance(schema.get(key), list):
            for number, each in enumerate(sorted(schema[key], key=_order)):
                yield from _tagged(each, f"{scope}{name}.{number}.", False)
    for key in ("if", "then", "else"):
        yield from _tagged(schema.get(key), f"{scope}conditional.{key}.", False)
    yield from _tagged(schema.get("not"), f"{scope}not.", False)
    kind = _kind(schema)
    if kind == "array":
        yield from _tagged(schema.get("items"), f"{scope}array.", False)
    elif kind == "object":
        yield from _object(schema, f"{scope}object", in_field)
    elif not scope:
        yield from _defined(schema, "object.")


def _object(schema: dict[str, Any], path: str, in_field: bool) -> Iterator[Tagged]:
    """``in_field``: the tags of a property's object are the property's."""
    if not in_field and (tags := tags_in(schema.get(TAGS))):
        yield Tagged(path, False, tags)
    properties = schema.get("properties")
    for name, each in properties.items() if isinstance(properties, dict) else ():
        if isinstance(each, dict):
            if tags := tags_in(each.get(TAGS)):
                yield Tagged(f"{path}.{name}", True, tags)
            yield from _tagged(each, f"{path}.{name}.", True)
    yield from _defined(schema, f"{path}.")


def _defined(schema: dict[str, Any], scope: str) -> Iterator[Tagged]:
    for key in _DEFINITIONS:
        found = schema.get(key)
        for name, each in found.items() if isinstance(found, dict) else ():
            yield from _tagged(each, f"{scope}{key}.{name}.", False)


def _kind(schema: dict[str, Any]) -> str:
    named = schema.get("type")
    if isinstance(named, str):
        return named
    if any(key in schema for key in _OF_OBJECTS):
        return "object"
    return "array" if any(key in schema for key in _OF_ARRAYS) else ""


def _order(schema: Any) -> tuple[str, ...]:
    if not isinstance(schema, dict):
        return ("true" if schema else "false", "", "", "")
    kinds = {
        "reference": "$ref" in schema,
        "enum": "enum" in schema,
        "const": "const" in schema,
        "combined": any(key in schema for key in _CRITERIA) or isinstance(schema.get("type"), list),
        "conditional": "if" in schema,
        "not": "not" in schema,
    }
    kind = next((name for name, fits in kinds.items() if fits), _kind(schema) or "empty")
    kind = "number" if kind == "integer" else kind
    texts = (str(schema.get(key, "")) for key in ("title", "description"))
    return (kind, *texts, compact(schema["default"]) if "default" in schema else "")
