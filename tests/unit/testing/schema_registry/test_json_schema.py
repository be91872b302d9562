"""JSON schemas: what is one, and when a new one takes all that the old one took."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidelog.testing.schema_registry.errors import InvalidSchema
from tidelog.testing.schema_registry.formats import Comparison, Document
from tidelog.testing.schema_registry.json_schema import canonical, compare

INT, STR = {"type": "integer"}, {"type": "string"}


def thing(*, more: Any = None, required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if more is not None:
        schema["additionalProperties"] = more
    if required:
        schema["required"] = list(required)
    return schema


def compared(new: Any, old: Any) -> Comparison:
    return compare(Document(json.dumps(new)), Document(json.dumps(old)))


TAKES_ALL = [
    ({"type": "number"}, INT),
    ({}, INT),
    (True, INT),
    (INT, False),
    ({"type": ["integer", "null"]}, INT),
    ({**INT, "title": "other"}, INT),
    ({"enum": [1, 2, 3]}, {"enum": [1, 2]}),
    ({"enum": [1, 2]}, {"const": 1}),
    ({**STR, "maxLength": 9}, {**STR, "maxLength": 5}),
    ({**INT, "minimum": 1}, {**INT, "minimum": 2}),
    ({**INT, "multipleOf": 3}, {**INT, "multipleOf": 6}),
    (thing(a=INT), thing(a=INT, required=("a",))),
    (thing(a=INT, b=STR, more=False), thing(a=INT, more=False)),
    (thing(a=INT), thing(a=INT, b=STR)),
    (thing(a=INT, b={}), thing(a=INT)),
    (thing(a=INT, b=STR, more=STR), thing(a=INT, more=STR)),
    (thing(a=INT, b={**STR, "default": ""}, more=False, required=("b",)), thing(a=INT, more=False)),
    ({"type": "array", "items": {"type": "number"}}, {"type": "array", "items": INT}),
    ({"$ref": "#/definitions/n", "definitions": {"n": {"type": "number"}}}, INT),
]
REFUSES_SOME = [
    (INT, {"type": "number"}, "TYPE_NARROWED at #"),
    (STR, INT, "TYPE_NARROWED"),
    (False, INT, "TYPE_NARROWED"),
    (INT, {}, "TYPE_NARROWED"),
    ({"enum": [1]}, {"enum": [1, 2]}, "ENUM_ARRAY_NARROWED"),
    ({"enum": [1]}, INT, "ENUM_ARRAY_NARROWED"),
    ({**STR, "maxLength": 5}, {**STR, "maxLength": 9}, "MAXLENGTH_DECREASED"),
    ({**INT, "minimum": 1}, INT, "MINIMUM_INCREASED"),
    ({**STR, "pattern": "a"}, STR, "PATTERN_CHANGED"),
    ({**INT, "multipleOf": 4}, {**INT, "multipleOf": 6}, "MULTIPLEOF_CHANGED"),
    ({"type": "array", "uniqueItems": True}, {"type": "array"}, "UNIQUE_ITEMS_ADDED"),
    (thing(a=INT, required=("a",)), thing(a=INT), "REQUIRED_ATTRIBUTE_ADDED at #/properties/a"),
    (thing(a=INT, b=STR), thing(a=INT), "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL at #/properties/b"),
    (thing(a=INT, more=False), thing(a=INT, b=STR, more=False), "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"),
    (thing(a=INT, more=False), thing(a=INT), "ADDITIONAL_PROPERTIES_REMOVED"),
    (thing(a=INT, b=INT, more=STR), thing(a=INT, more=STR), "TYPE_NARROWED at #/properties/b"),
    (thing(a={"type": "array", "items": INT}), thing(a={"type": "array", "items": STR}), "at #/properties/a/items"),
    (
        {"$ref": "#/$defs/n", "$defs": {"n": thing(c={"$ref": "#/$defs/n"}, v=INT)}},
        {"$ref": "#/$defs/n", "$defs": {"n": thing(c={"$ref": "#/$defs/n"}, v=STR)}},
        "TYPE_NARROWED at #/properties/v",
    ),
]


@pytest.mark.parametrize(("new", "old"), TAKES_ALL, ids=repr)
def test_takes_all_that_the_old_one_took(new: Any, old: Any) -> None:
    assert compared(new, old) == Comparison([], [])


@pytest.mark.parametrize(("new", "old", "reason"), REFUSES_SOME, ids=repr)
def test_refuses_what_the_old_one_took(new: Any, old: Any, reason: str) -> None:
    found = compared(new, old).reasons
    assert found
    assert reason in found[0]


def test_what_is_not_compared_is_named() -> None:
    found = compared({"anyOf": [INT, STR]}, {"anyOf": [INT]})
    assert found == Comparison([], ["#/anyOf"])
    assert compared({"$ref": "other.json"}, INT).unchecked == ["#/$ref"]
    assert compared({"type": "array", "items": [INT]}, {"type": "array", "items": [STR]}).unchecked == ["#/items"]


@pytest.mark.parametrize("wrong", ["{", "5", '{"type": "no such type"}', '{"properties": 5}'])
def test_what_is_no_schema_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidSchema):
        canonical(Document(wrong), False)


def test_normalizing_sorts_the_keys() -> None:
    one, other = '{"type": "string", "title": "t"}', '{"title":"t","type":"string"}'
    assert canonical(Document(one), False) != canonical(Document(other), False)
    assert canonical(Document(one), True) == canonical(Document(other), True)
