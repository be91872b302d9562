"""JSON Schema: what is one, its canonical text, and where references lead."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidelog.registry.errors import InvalidSchema
from tidelog.registry.formats import Document
from tidelog.registry.formats.json_schema.schema_format import canonical


def made(schema: Any, references: dict[str, str] | None = None, *, normalize: bool = False) -> str:
    return canonical(Document(json.dumps(schema), references or {}), normalize=normalize, new=True)


def test_the_canonical_text_is_compact_and_normalizing_sorts_it() -> None:
    assert canonical(Document('{ "b": 1.0,\n "a": "ä" }'), normalize=False, new=True) == '{"b":1.0,"a":"ä"}'
    assert made({"b": 1, "a": 2}, normalize=True) == '{"a":2,"b":1}'


@pytest.mark.parametrize(
    "schema", [1, "x", [], {"type": "nothing"}, {"properties": 4}, {"$ref": "#/definitions/none"}, {"$ref": "other.json"}]
)
def test_what_is_no_schema(schema: Any) -> None:
    with pytest.raises(InvalidSchema):
        made(schema)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"not":' * 400 + "{}" + "}" * 400])
def test_texts_that_are_no_schema(text: str) -> None:
    with pytest.raises(InvalidSchema):
        canonical(Document(text), normalize=False, new=True)


def test_references_are_found_by_name_by_id_and_by_anchor() -> None:
    inner = json.dumps({"$id": "http://x/inner.json", "definitions": {"n": {"type": "integer"}}})
    for reference in ("inner.json", "http://x/inner.json", "inner.json#/definitions/n"):
        assert made({"$ref": reference}, {"inner.json": inner})
    assert made({"definitions": {"a": {"$id": "#here"}}, "$ref": "#here"})
    assert made({"$ref": "http://json-schema.org/draft-07/schema#"})
