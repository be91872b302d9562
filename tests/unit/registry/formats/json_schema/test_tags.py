"""Tags in JSON schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidelog.registry.errors import InvalidSchema
from tidelog.registry.formats import Document
from tidelog.registry.formats.json_schema.schema_format import tagged
from tidelog.registry.formats.tagging import MAX_PATH

PII = {"confluent:tags": ["PII"]}


def found(schema: Any) -> list[tuple[str, bool]]:
    return [(each.path, each.is_field) for each in tagged(Document(json.dumps(schema)))]


def test_objects_and_properties_are_found_by_their_path() -> None:
    street = {"type": "object", "properties": {"number": {"type": "integer"} | PII}} | PII
    schema = {"type": "object", "properties": {"home": street, "all": {"type": "array", "items": street}}} | PII
    assert found(schema) == [
        ("object", False),
        ("object.home", True),
        ("object.home.object.number", True),
        ("object.all.array.object", False),
        ("object.all.array.object.number", True),
    ]


def test_definitions_are_looked_at_where_they_are() -> None:
    schema = {
        "properties": {"home": {"$ref": "#/definitions/Street"}},
        "definitions": {"Street": {"properties": {"number": PII}}},
        "$defs": {"Zone": {"type": "object"} | PII},
    }
    assert found(schema) == [("object.definitions.Street.object.number", True), ("object.$defs.Zone.object", False)]
    assert found({"$defs": {"Zone": {"type": "object"} | PII}}) == [("object.$defs.Zone.object", False)]


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "object"} | PII]}, "anyof.0.object"),
        ({"oneOf": [{"type": "object", "title": "b"} | PII, {"type": "object", "title": "a"}]}, "oneof.1.object"),
        ({"allOf": [{"type": "object"} | PII, True]}, "allof.0.object"),
        ({"if": True, "then": {"type": "object"} | PII}, "conditional.then.object"),
        ({"not": {"required": ["a"]} | PII}, "not.object"),
    ],
)
def test_alternatives_and_conditions_have_steps_of_their_own(schema: Any, path: str) -> None:
    assert found(schema) == [(path, False)]


@pytest.mark.parametrize("schema", [True, {"type": "string"} | PII, {"properties": 1, "definitions": [], "anyOf": {}}, []])
def test_what_has_no_tagged_part_has_none(schema: Any) -> None:
    assert found(schema) == []


def test_a_long_path_is_refused() -> None:
    inner: Any = {"type": "object", "properties": {"a": PII}}
    for _ in range(5):
        inner = {"type": "object", "properties": {"k" * (MAX_PATH // 4): inner}}
    with pytest.raises(InvalidSchema):
        found(inner)
