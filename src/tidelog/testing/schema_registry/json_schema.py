"""JSON Schema: jsonschema's meta-schemas say what is a schema; here is by which rules one accepts what another did.

Compared are: types, enum and const, bounds of numbers, lengths and counts, required and optional properties under open, closed
and partly open content models, array items, and local ``$ref``. Combined schemas (``anyOf``, ``oneOf``, ``allOf``, ``not``,
``if``), ``patternProperties``, ``dependencies`` and the like are compared by equality only: where they differ, ``unchecked``
names them and nothing is refused.
"""

from __future__ import annotations

import json
from typing import Any

from jsonschema import SchemaError
from jsonschema.validators import validator_for

from tidelog.testing.schema_registry.errors import InvalidSchema
from tidelog.testing.schema_registry.formats import Comparison, Document

_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_ONLY_EQUAL = ("pattern", "format", "multipleOf")
_HARMLESS = frozenset(
    {"title", "description", "default", "examples", "$schema", "$id", "id", "$comment", "definitions", "$defs", "deprecated"}
    | {"readOnly", "writeOnly", "javaType"}
)
_COMPARED = frozenset(
    {
        "type",
        "enum",
        "const",
        "required",
        "properties",
        "additionalProperties",
        "items",
        "uniqueItems",
        *_LOWER,
        *_UPPER,
        *_ONLY_EQUAL,
    }
)
_ALL_TYPES = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})
_ABSENT = object()


def canonical(document: Document, normalize: bool) -> str:
    """Compact JSON; ``normalize`` also sorts the keys."""
    schema = _load(document.text)
    for text in document.references.values():
        _load(text)
    if not isinstance(schema, dict | bool):
        raise InvalidSchema("a JSON schema is an object, true or false")
    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as problem:
        raise InvalidSchema(f"{problem.message} (at {problem.json_path})") from problem
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False, sort_keys=normalize)


def compare(reader: Document, writer: Document) -> Comparison:
    """See ``Format.compare``: is all that the writer's schema accepts accepted by the reader's?"""
    check = _Check(_load(reader.text), _load(writer.text))
    check.narrowed(check.reader, check.writer, "#")
    return Comparison(check.reasons, sorted(set(check.unchecked)))


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise InvalidSchema(f"it is not JSON: {problem}") from problem


class _Check:
    def __init__(self, reader: Any, writer: Any) -> None:
        self.reader, self.writer = reader, writer
        self.reasons: list[str] = []
        self.unchecked: list[str] = []
        self._seen: set[tuple[str, str]] = set()

    def narrowed(self, new: Any, old: Any, at: str) -> None:
        """Add to ``reasons`` what ``new`` refuses although ``old`` accepted it."""
        pair = (_reference(new), _reference(old))
        if pair != ("", ""):
            if pair in self._seen:
                return
            self._seen.add(pair)
            new, old = self._target(new, self.reader, at), self._target(old, self.writer, at)
        if new == old or new is True or old is False or new is _ABSENT or old is _ABSENT:
            return
        if new is False:
            self._refuse("TYPE_NARROWED", at, "nothing is allowed any more")
            return
        old = {} if old is True else old
        if not isinstance(new, dict) or not isinstance(old, dict):
            return
        self._values(new, old, at)
        self._bounds(new, old, at)
        if "object" in _types(new) and "object" in _types(old):
            self._properties(new, old, at)
        if "array" in _types(new) and "array" in _types(old):
            self._items(new, old, at)
        for key in sorted((set(new) | set(old)) - _COMPARED - _HARMLESS):
            if new.get(key, _ABSENT) != old.get(key, _ABSENT):
                self.unchecked.append(f"{at}/{key}")

    def _refuse(self, word: str, at: str, why: str) -> None:
        self.reasons.append(f"{word} at {at}: {why}")

    def _target(self, node: Any, root: Any, at: str) -> Any:
        """The target of a local ``$ref``; ``_ABSENT``, and a note, if it leads out of the document."""
        for _ in range(64):
            reference = _reference(node)
            if not reference:
                return node
            if not reference.startswith("#"):
                break
            node = root
            for part in filter(None, reference[1:].split("/")):
                key = part.replace("~1", "/").replace("~0", "~")
                node = node.get(key, _ABSENT) if isinstance(node, dict) else _ABSENT
        self.unchecked.append(f"{at}/$ref")
        return _ABSENT

    def _values(self, new: dict[str, Any], old: dict[str, Any], at: str) -> None:
        missing = _types(old) - _types(new)
        if missing:
            self._refuse("TYPE_NARROWED", at, f"{', '.join(sorted(missing))} was allowed")
        for key in ("enum", "const"):
            if key not in new or new[key] == old.get(key, _ABSENT):
                continue
            allowed = new["enum"] if key == "enum" else [new["const"]]
            before = old["enum"] if "enum" in old else [old["const"]] if "const" in old else None
            if before is None or any(each not in allowed for each in before):
                self._refuse("ENUM_ARRAY_NARROWED", at, f"{key} leaves out values that were allowed")

    def _bounds(self, new: dict[str, Any], old: dict[str, Any], at: str) -> None:
        for keys, sign, word in ((_LOWER, 1, "INCREASED"), (_UPPER, -1, "DECREASED")):
            for key in keys:
                bound, before = new.get(key), old.get(key)
                if isinstance(bound, int | float) and (not isinstance(before, int | float) or sign * bound > sign * before):
                    self._refuse(f"{key.upper()}_{word}", at, f"{key} is {bound}, was {before}")
        for key in _ONLY_EQUAL:
            # A multiple of 6 is a multiple of 3; patterns are only compared for equality.
            if key in new and new[key] != old.get(key):
                if (
                    key == "multipleOf"
                    and isinstance(old.get(key), int)
                    and isinstance(new[key], int)
                    and old[key] % new[key] == 0
                ):
                    continue
                self._refuse(f"{key.upper()}_CHANGED", at, f"{key} is {new[key]!r}, was {old.get(key)!r}")
        if new.get("uniqueItems") and not old.get("uniqueItems"):
            self._refuse("UNIQUE_ITEMS_ADDED", at, "items must not repeat now")

    def _properties(self, new: dict[str, Any], old: dict[str, Any], at: str) -> None:
        now, before = new.get("properties", {}), old.get("properties", {})
        rest_now, rest_before = new.get("additionalProperties", True), old.get("additionalProperties", True)
        for name in sorted(set(new.get("required", ())) - set(old.get("required", ()))):
            if not (isinstance(now.get(name), dict) and "default" in now[name]):
                self._refuse("REQUIRED_ATTRIBUTE_ADDED", f"{at}/properties/{name}", "it may have been left out")
        for name in sorted(set(now) | set(before)):
            where = f"{at}/properties/{name}"
            if name in now and name in before:
                self.narrowed(now[name], before[name], where)
            elif name in now and rest_before is True and not _accepts_all(now[name]):
                self._refuse("PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", where, "it may have been there with any value")
            elif name in now:
                self.narrowed(now[name], rest_before, where)
            elif rest_now is False and before[name] is not False:
                self._refuse("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", where, "it may have been there")
            else:
                self.narrowed(rest_now, before[name], where)
        if rest_now is False and rest_before is not False:
            self._refuse("ADDITIONAL_PROPERTIES_REMOVED", at, "other properties may have been there")
        else:
            self.narrowed(rest_now, rest_before, f"{at}/additionalProperties")

    def _items(self, new: dict[str, Any], old: dict[str, Any], at: str) -> None:
        now, before = new.get("items", True), old.get("items", True)
        if isinstance(now, list) or isinstance(before, list):
            if now != before:
                self.unchecked.append(f"{at}/items")
            return
        self.narrowed(now, before, f"{at}/items")


def _reference(node: Any) -> str:
    reference = node.get("$ref", "") if isinstance(node, dict) else ""
    return reference if isinstance(reference, str) else ""


def _accepts_all(node: Any) -> bool:
    return node is True or (isinstance(node, dict) and not set(node) - _HARMLESS)


def _types(node: dict[str, Any]) -> frozenset[str]:
    kinds = node.get("type", _ABSENT)
    if kinds is _ABSENT:
        return _ALL_TYPES
    found = {kinds} if isinstance(kinds, str) else set(kinds)
    return frozenset(found | {"integer"} if "number" in found else found)
