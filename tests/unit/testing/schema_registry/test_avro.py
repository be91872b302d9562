"""Avro schemas: one text for all writings of a schema, and what is none is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidelog.testing.schema_registry.avro import canonical
from tidelog.testing.schema_registry.errors import InvalidSchema
from tidelog.testing.schema_registry.formats import Document

RECORD = {"type": "record", "name": "R", "namespace": "a.b", "fields": [{"name": "f", "type": "int", "doc": "why"}]}


def text_of(schema: Any, *, normalize: bool = False, references: dict[str, str] | None = None) -> str:
    return canonical(Document(schema if isinstance(schema, str) else json.dumps(schema), references or {}), normalize)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ('"string"', '"string"'),
        ('{"type": "string"}', '"string"'),
        ('{"type": {"type": "string"}}', '"string"'),
        ('[ "null", {"type":"int"} ]', '["null","int"]'),
        ('{"items": "int", "type": "array"}', '{"type":"array","items":"int"}'),
        (
            {"fields": [{"type": "int", "name": "f"}], "name": "a.b.R", "type": "record"},
            '{"type":"record","name":"R","namespace":"a.b","fields":[{"name":"f","type":"int"}]}',
        ),
        ({"type": "long", "logicalType": "timestamp-millis"}, '{"type":"long","logicalType":"timestamp-millis"}'),
    ],
)
def test_order_and_blanks_do_not_matter(written: Any, kept: str) -> None:
    assert text_of(written) == kept
    assert text_of(kept) == kept


def test_an_inner_type_names_its_namespace_only_where_it_is_another() -> None:
    inner = {"type": "enum", "name": "E", "namespace": "a.b", "symbols": ["A"]}
    same = json.loads(text_of({**RECORD, "fields": [{"name": "f", "type": inner}]}))
    assert "namespace" not in same["fields"][0]["type"]
    other = json.loads(text_of({**RECORD, "fields": [{"name": "f", "type": {**inner, "namespace": "c"}}]}))
    assert other["fields"][0]["type"]["namespace"] == "c"


def test_normalizing_sorts_attributes_that_avro_does_not_know() -> None:
    one, other = {**RECORD, "x": 1, "y": 2}, {**RECORD, "y": 2, "x": 1}
    assert text_of(one) != text_of(other)
    assert text_of(one, normalize=True) == text_of(other, normalize=True)


@pytest.mark.parametrize(
    "wrong",
    [
        "{",
        "",
        '"strin"',
        "5",
        {"type": "record", "name": "R"},
        {"type": "record", "name": "R", "fields": [{"name": "f", "type": "Unknown"}]},
        {"type": "enum", "name": "E", "symbols": ["a", "a"]},
        {"type": "fixed", "name": "F"},
        {"name": "R"},
    ],
)
def test_what_is_no_schema_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidSchema):
        text_of(wrong)


def test_types_of_references_may_be_used() -> None:
    user = {"type": "record", "name": "U", "fields": [{"name": "r", "type": "a.b.R"}]}
    assert "a.b.R" in text_of(user, references={"a.b.R": json.dumps(RECORD)})
    with pytest.raises(InvalidSchema, match=r"a\.b\.R"):
        text_of(user)
