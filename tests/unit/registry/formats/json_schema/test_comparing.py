"""Compatibility of JSON schemas: cases, and a comparison with really validating values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tidelog.registry.formats import Document
from tidelog.registry.formats.json_schema.schema_format import compare

OPEN, CLOSED = {}, {"additionalProperties": False}


def kinds(reader: Any, writer: Any, *, lenient: bool = False) -> list[str]:
    return [each.kind for each in compare(Document(json.dumps(reader)), Document(json.dumps(writer)), lenient=lenient)]


def obj(more: dict[str, Any] = OPEN, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


INT, STR = {"type": "integer"}, {"type": "string"}


@pytest.mark.parametrize(
    ("reader", "writer", "wanted"),
    [
        ({}, INT, []),
        (INT, {}, ["TYPE_NARROWED"]),
        (True, INT, []),
        (False, INT, ["TYPE_NARROWED"]),
        (INT, False, []),
        ({"type": "number"}, INT, []),
        (INT, {"type": "number"}, ["TYPE_NARROWED"]),
        (INT, STR, ["TYPE_CHANGED"]),
        ({"type": ["integer", "null"]}, INT, []),
        ({"enum": [1, 2]}, {"enum": [1]}, []),
        ({"enum": [1]}, {"enum": [1, 2]}, ["ENUM_ARRAY_NARROWED"]),
        ({"enum": [1]}, {"const": 1}, []),
        ({"enum": [True]}, {"enum": [1]}, ["ENUM_ARRAY_NARROWED"]),
        ({"enum": [None]}, {"type": "null"}, []),
        ({"type": "integer", "minimum": 1}, INT, ["MINIMUM_ADDED"]),
        ({"type": "integer", "minimum": 2}, {"type": "integer", "minimum": 1}, ["MINIMUM_INCREASED"]),
        ({"type": "integer", "minimum": 1}, {"type": "integer", "exclusiveMinimum": 1}, []),
        ({"type": "integer", "exclusiveMinimum": 1}, {"type": "integer", "minimum": 1}, ["EXCLUSIVE_MINIMUM_INCREASED"]),
        (
            {"type": "number", "maximum": 1, "exclusiveMaximum": True},
            {"type": "number", "maximum": 1},
            ["EXCLUSIVE_MAXIMUM_DECREASED"],
        ),
        ({"type": "integer", "multipleOf": 3}, {"type": "integer", "multipleOf": 6}, []),
        ({"type": "integer", "multipleOf": 6}, {"type": "integer", "multipleOf": 3}, ["MULTIPLE_OF_CHANGED"]),
        ({"type": "number", "multipleOf": 0.1}, {"type": "number", "multipleOf": 0.3}, []),
        ({"type": "string", "maxLength": 4}, {"type": "string", "maxLength": 5}, ["MAX_LENGTH_DECREASED"]),
        ({"type": "string", "minLength": 1}, STR, ["MIN_LENGTH_ADDED"]),
        ({"type": "string", "minLength": 0}, STR, []),
        ({"type": "string", "pattern": "a"}, STR, ["PATTERN_ADDED"]),
        ({"type": "string", "pattern": "a"}, {"type": "string", "pattern": "b"}, ["PATTERN_CHANGED"]),
        ({"minLength": 5}, INT, []),
        (obj(a=INT), obj(), ["PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"]),
        (obj(a={}), obj(), []),
        (obj(a=INT), obj(CLOSED), []),
        (obj(), obj(a=INT), []),
        (obj(CLOSED), obj(CLOSED, a=INT), ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"]),
        (obj(CLOSED), obj(), ["ADDITIONAL_PROPERTIES_REMOVED"]),
        (obj({"additionalProperties": INT}), obj({"additionalProperties": STR}), ["ADDITIONAL_PROPERTIES_NARROWED"]),
        (obj(a=INT), obj({"additionalProperties": INT}), []),
        (obj(a=INT), obj({"additionalProperties": STR}), ["PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"]),
        (
            obj({"additionalProperties": INT}),
            obj(CLOSED, a=STR),
            ["PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"],
        ),
        (obj({"patternProperties": {"^a": INT}}), obj({"patternProperties": {"^a": INT}}), []),
        (
            obj({"patternProperties": {"^a": INT}}),
            obj(CLOSED, a=STR),
            ["TYPE_CHANGED"],
        ),
        (obj({"required": ["a"]}, a=INT), obj(a=INT), ["REQUIRED_ATTRIBUTE_ADDED"]),
        (obj({"required": ["a"]}, a={"type": "integer", "default": 0}), obj(a=INT), []),
        (obj(a=INT), obj({"required": ["a"]}, a=INT), []),
        (obj({"maxProperties": 2}), obj({"maxProperties": 3}), ["MAX_PROPERTIES_DECREASED"]),
        (obj({"dependencies": {"a": ["b"]}}), obj(), ["DEPENDENCY_ARRAY_ADDED"]),
        (obj({"dependentRequired": {"a": ["b", "c"]}}), obj({"dependencies": {"a": ["b"]}}), ["DEPENDENCY_ARRAY_EXTENDED"]),
        ({"type": "array", "items": {"type": "number"}}, {"type": "array", "items": INT}, []),
        ({"type": "array", "items": INT}, {"type": "array", "items": STR}, ["TYPE_CHANGED"]),
        ({"type": "array", "uniqueItems": True}, {"type": "array"}, ["UNIQUE_ITEMS_ADDED"]),
        ({"type": "array", "prefixItems": [INT]}, {"type": "array"}, ["ITEM_ADDED_TO_OPEN_CONTENT_MODEL"]),
        (
            {"type": "array", "items": [INT], "additionalItems": False},
            {"type": "array", "items": [INT, STR], "additionalItems": False},
            ["ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL"],
        ),
        ({"anyOf": [INT, STR]}, INT, []),
        ({"anyOf": [INT, STR]}, {"anyOf": [STR, INT]}, []),
        ({"oneOf": [INT, STR]}, {"oneOf": [INT, STR, {"type": "null"}]}, ["SUM_TYPE_NARROWED"]),
        ({"oneOf": [INT, STR, {"type": "null"}]}, {"oneOf": [INT, STR]}, []),
        (INT, {"anyOf": [INT, STR]}, ["TYPE_NARROWED"]),
        ({"type": ["integer", "string"]}, {"anyOf": [INT, STR]}, []),
        ({"allOf": [obj(a={}), obj({"required": ["a"]})]}, {"allOf": [obj(a={}), obj({"required": ["a"]})]}, []),
        ({"allOf": [INT, {"minimum": 1}]}, INT, ["MINIMUM_ADDED"]),
        (INT, {"allOf": [{"minimum": 1}, INT]}, []),
        ({"not": INT}, {"not": {"type": "number"}}, []),
        ({"not": {"type": "number"}}, {"not": INT}, ["NOT_TYPE_EXTENDED"]),
        ({"if": INT, "then": {"minimum": 1}}, {"if": INT, "then": {"minimum": 1}}, []),
        ({"if": INT, "then": {"minimum": 1}}, {}, ["TYPE_CHANGED"]),
        ({"title": "x", "format": "date", "$comment": "y"}, {}, []),
    ],
)
def test_what_a_reader_refuses(reader: Any, writer: Any, wanted: list[str]) -> None:
    assert kinds(reader, writer) == wanted


def test_the_lenient_policy_allows_optional_properties() -> None:
    assert kinds(obj(a=INT), obj(), lenient=True) == []
    assert kinds(obj(CLOSED), obj(CLOSED, a=INT), lenient=True) == []
    assert kinds(obj({"required": ["a"]}, a=INT), obj(), lenient=True)


def test_patterns_that_cannot_be_matched_are_taken_for_the_worse() -> None:
    """RE2 has no look-ahead: the pattern may match and may not."""
    unknown = "^(?=a)"
    closed = {"additionalProperties": False}
    assert kinds(obj(closed | {"patternProperties": {unknown: {}}}), obj(closed, a=INT)) != []
    assert kinds(obj(a=INT), obj({"patternProperties": {unknown: INT}, "additionalProperties": INT})) != []
    assert kinds(obj({"patternProperties": {unknown: INT}}), obj({"patternProperties": {unknown: INT}})) == []


def test_patterns_that_take_exponential_time_elsewhere_do_not_here() -> None:
    hostile = obj({"patternProperties": {"(a|a)*$": INT}})
    assert kinds(hostile, obj(closed_with_long_name())) != []


def closed_with_long_name() -> dict[str, Any]:
    return {"additionalProperties": False, "properties": {"a" * 5000 + "b": STR}}


def test_references_are_compared_by_what_they_lead_to() -> None:
    def tree(kind: Any) -> Any:
        return {"$ref": "#/definitions/t", "definitions": {"t": obj(v=kind, next={"$ref": "#/definitions/t"})}}

    assert kinds(tree({"type": "number"}), tree(INT)) == []
    assert kinds(tree(INT), tree({"type": "number"})) != []


def test_what_stands_beside_a_reference_counts_since_2019() -> None:
    modern = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": {"i": INT}, "$ref": "#/$defs/i", "minimum": 3}
    before = {"definitions": {"i": INT}, "$ref": "#/definitions/i", "minimum": 3}
    assert kinds(modern, INT) == ["MINIMUM_ADDED"]
    assert kinds(before, INT) == []


def test_entangled_schemas_are_given_up_and_say_so() -> None:
    def knot(depth: int, kind: Any) -> Any:
        return {"anyOf": [knot(depth - 1, kind), obj(a=knot(depth - 1, kind))]} if depth else kind

    found = kinds(knot(9, INT), knot(9, STR))
    assert found
    assert set(found) <= {"COMPARISON_LIMIT_REACHED", "COMBINED_TYPE_SUBSCHEMAS_CHANGED", "COMBINED_TYPE_CHANGED"}


NAMES = st.sampled_from(["a", "b"])
SCALARS = st.one_of(
    st.just({}),
    st.booleans(),
    st.sampled_from([INT, STR, {"type": "number"}, {"type": ["integer", "null"]}, {"enum": [1, "x", None]}, {"const": 1}]),
    st.builds(
        lambda low, key: {"type": "integer", key: low}, st.integers(0, 3), st.sampled_from(["minimum", "exclusiveMaximum"])
    ),
    st.builds(lambda size, key: {"type": "string", key: size}, st.integers(0, 2), st.sampled_from(["minLength", "maxLength"])),
)


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(NAMES, inner, max_size=2),
            "additionalProperties": inner,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$", "."]), inner, max_size=1),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "minProperties": st.integers(0, 2),
            "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=1), max_size=1),
        },
    )


def _arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {"type": st.just("array")},
        optional={
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "minItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "contains": inner,
        },
    )


def _combined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    branches = st.lists(inner, min_size=1, max_size=2)
    return st.one_of(
        branches.map(lambda found: {"anyOf": found}),
        branches.map(lambda found: {"allOf": found}),
        inner.map(lambda found: {"not": found}),
        st.builds(lambda base, found: {**base, "anyOf": found} if isinstance(base, dict) else base, inner, branches),
    )


SCHEMAS = st.recursive(SCALARS, lambda inner: st.one_of(_objects(inner), _arrays(inner), _combined(inner)), max_leaves=6)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-1, 4), st.sampled_from(["", "x", "xyz", 1.5])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "b", "ab", "c"]), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(max_examples=600, deadline=None)
@given(SCHEMAS, SCHEMAS, st.lists(VALUES, min_size=8, max_size=8))
def test_what_is_said_to_be_compatible_accepts_every_value(reader: Any, writer: Any, found: list[Any]) -> None:
    if not kinds(reader, writer):
        for value in found:
            if Draft202012Validator(writer).is_valid(value):
                assert Draft202012Validator(reader).is_valid(value), value


@settings(max_examples=300, deadline=None)
@given(SCHEMAS)
def test_a_schema_is_compatible_with_itself(schema: Any) -> None:
    assert kinds(schema, schema) == []
