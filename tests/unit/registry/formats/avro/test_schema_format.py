"""Avro: the canonical text, references, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidelog.registry.errors import InvalidSchema
from tidelog.registry.formats import Document
from tidelog.registry.formats.avro.schema_format import canonical, formatted


def text(schema: Any) -> str:
    return json.dumps(schema)


def made(schema: Any, references: dict[str, str] | None = None, *, normalize: bool = False, new: bool = True) -> str:
    return canonical(Document(text(schema), references or {}), normalize=normalize, new=new)


def rec(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [f if isinstance(f, dict) else {"name": f[0], "type": f[1]} for f in fields],
        **more,
    }


@pytest.mark.parametrize(
    ("given_", "wanted"),
    [
        ("string", '"string"'),
        ({"type": "string"}, '"string"'),
        ({"type": {"type": "string"}}, '"string"'),
        ({"logicalType": "date", "type": "int"}, '{"type":"int","logicalType":"date"}'),
        ({"items": "int", "x": 1, "type": "array"}, '{"type":"array","items":"int","x":1}'),
        (
            {"fields": [], "aliases": ["O"], "p": 1, "doc": "d", "name": "a.b.R", "type": "record"},
            '{"type":"record","name":"R","namespace":"a.b","doc":"d","fields":[],"p":1,"aliases":["O"]}',
        ),
        (
            rec(
                {
                    "name": "f",
                    "order": "ascending",
                    "default": None,
                    "type": ["null", "int"],
                    "doc": "x",
                    "q": 1,
                    "aliases": ["g"],
                }
            ),
            '{"type":"record","name":"R","fields":[{"name":"f","type":["null","int"],"doc":"x","default":null,"aliases":["g"],"q":1}]}',
        ),
        (
            rec(("e", {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"}), ("again", "n.E"), namespace="n"),
            '{"type":"record","name":"R","namespace":"n","fields":[{"name":"e","type":{"type":"enum","name":"E","symbols":["A"],'
            '"default":"A"}},{"name":"again","type":"E"}]}',
        ),
        (
            rec(("f", {"type": "fixed", "name": "other.F", "size": 4}), ("again", "other.F"), namespace="n"),
            '{"type":"record","name":"R","namespace":"n","fields":[{"name":"f","type":{"type":"fixed","name":"F","namespace":"other",'
            '"size":4}},{"name":"again","type":"other.F"}]}',
        ),
    ],
)
def test_the_canonical_text(given_: Any, wanted: str) -> None:
    assert made(given_) == wanted
    assert canonical(Document(wanted), normalize=False, new=True) == wanted


def test_normalizing_sorts_what_avro_does_not_define() -> None:
    given_ = {"type": "int", "b": 1, "a": 2}
    assert made(given_) == '{"type":"int","b":1,"a":2}'
    assert made(given_, normalize=True) == '{"type":"int","a":2,"b":1}'


def test_references_are_by_name_and_resolved_on_request() -> None:
    inner = text(rec(("x", "int"), name="n.Inner"))
    outer = made(rec(("a", "n.Inner"), ("b", "n.Inner"), name="n.Outer"), {"n.Inner": inner})
    assert (
        outer
        == '{"type":"record","name":"Outer","namespace":"n","fields":[{"name":"a","type":"Inner"},{"name":"b","type":"Inner"}]}'
    )
    resolved = formatted(Document(outer, {"n.Inner": inner}), "resolved")
    assert '"type":{"type":"record","name":"Inner","fields":[{"name":"x","type":"int"}]}},{"name":"b","type":"Inner"}' in resolved


@pytest.mark.parametrize(
    "given_",
    [
        1,
        {},
        {"type": "nothing"},
        {"type": "array"},
        {"type": "map"},
        {"type": "record", "name": "R"},
        {"type": "record", "name": "R-1", "fields": []},
        {"type": "record", "name": "a..R", "fields": []},
        {"type": "record", "fields": []},
        rec(("f", "int"), ("f", "int")),
        rec({"name": "f"}),
        rec({"name": "1f", "type": "int"}),
        rec({"name": "f", "type": "int", "order": "up"}),
        rec({"name": "f", "type": "int", "default": "x"}),
        rec({"name": "f", "type": "int", "default": 1 << 31}),
        rec({"name": "f", "type": {"type": "array", "items": "int"}, "default": [1, "2"]}),
        rec({"name": "f", "type": ["null", "int"], "default": "x"}),
        {"type": "enum", "name": "E", "symbols": ["A", "A"]},
        {"type": "enum", "name": "E", "symbols": ["a-b"]},
        {"type": "enum", "name": "E", "symbols": ["A"], "default": "B"},
        {"type": "enum", "name": "E"},
        {"type": "fixed", "name": "F", "size": -1},
        {"type": "fixed", "name": "F", "size": True},
        ["int", "int"],
        ["int", ["string"]],
        [{"type": "array", "items": "int"}, {"type": "array", "items": "string"}],
        rec(("f", {"type": "fixed", "name": "R", "size": 1})),
        rec(("f", "Unknown")),
    ],
)
def test_what_is_no_schema(given_: Any) -> None:
    with pytest.raises(InvalidSchema):
        made(given_)


def test_defaults_of_another_type_pass_where_they_are_not_checked() -> None:
    assert made(rec({"name": "f", "type": "int", "default": "x"}), new=False)


@pytest.mark.parametrize(
    "given_", ["[" * 1000, '{"type":' * 200 + '"int"' + "}" * 200, '{"type":"array","items":' * 300 + '"int"' + "}" * 300]
)
def test_deep_nesting_is_refused(given_: str) -> None:
    with pytest.raises(InvalidSchema):
        canonical(Document(given_), normalize=False, new=True)
