"""Requests that are made to stop a registry: each is answered, with a code that says that it cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.registry.caller import Caller

DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
DRAFT_3, DRAFT_4 = ("http://json-schema.org/draft-03/schema#", "http://json-schema.org/draft-04/schema#")


def _avro(schema: Any) -> dict[str, str]:
    return {"schema": schema if isinstance(schema, str) else json.dumps(schema)}


def _json(schema: Any) -> dict[str, str]:
    return {"schemaType": "JSON"} | _avro(schema)


def _proto(text: str) -> dict[str, str]:
    return {"schemaType": "PROTOBUF", "schema": text}


def _mixed(count: int) -> list[Any]:
    return [each for number in range(count) for each in (number, str(number))]


HEX = "0x" + "f" * 20_000
DEFAULTS = {"name": "f", "type": ["S", "R"], "default": {}}
INVALID = {
    "lone surrogate in Avro": _avro('{"type":"record","name":"R","doc":"\\ud800","fields":[]}'),
    "lone surrogate in JSON": _json('{"title":"\\ud800"}'),
    "infinity in Avro": _avro('{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":1e999}]}'),
    "NaN in Avro": _avro('{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":NaN}]}'),
    "infinity in JSON": _json('{"multipleOf":1e999}'),
    "$schema that is a list": _json({"$schema": [1]}),
    "$schema that is no URI": _json({"$schema": "http://["}),
    "$ref that is no URI": _json({"properties": {"a": {"$id": "http://x/", "$ref": "http://[#"}}}),
    "$id that is no URI": _json({"properties": {"a": {"$id": "http://[#a"}}}),
    "index with many digits": _json({"allOf": [{}], "properties": {"a": {"$ref": "#/allOf/" + "1" * 5000}}}),
    "enum that cannot be sorted": _json({"$schema": DRAFT_4, "enum": _mixed(60_000)}),
    "types that cannot be sorted": _json({"type": _mixed(60_000)}),
    "pattern with a large count": _json({"pattern": "a{99999999999999999999}"}),
    "schemas without end": _json({"$schema": DRAFT_2020, "allOf": [{}] * 15_000, "anyOf": [True] * 15_000}),
    "defaults without end": _avro(
        {
            "type": "record",
            "name": "R",
            "fields": [
                {"name": "g", "type": ["null", {"type": "record", "name": "S", "fields": [DEFAULTS]}], "default": None},
                DEFAULTS,
            ],
        }
    ),
    "long namespace": _avro({"type": "fixed", "name": "F", "size": 1, "namespace": "n" * 2000}),
    "long package": _proto(f"package {'p' * 2000}; message A {{}}"),
    "package of many parts": _proto(f"package {'.'.join('p' * 200)}; message A {{}}"),
    "long message": _proto(f"message {'A' * 2000} {{}}"),
    "number of a field": _proto(f"message A {{ optional int32 a = {HEX}; }}"),
    "number of an enum": _proto(f"enum A {{ a = {HEX}; }}"),
    "reserved numbers": _proto(f"message A {{ reserved 1 to {HEX}; }}"),
    "value of an option": _proto(f"message A {{ option (x) = {HEX}; }}"),
    "default of a float": _proto(f"message A {{ optional float a = 1 [default = {HEX}]; }}"),
    "option without its name": _proto('message A { option uninterpreted_option = { name { name_part: "x" } }; }'),
    "deep JSON": _json('{"not":' * 10_000 + "{}" + "}" * 10_000),
    "deep Avro": _avro('{"type":"array","items":' * 10_000 + '"int"' + "}" * 10_000),
    "deep Protobuf": _proto("message A {" * 10_000 + "}" * 10_000),
}


@pytest.mark.parametrize("body", INVALID.values(), ids=INVALID)
def test_such_a_schema_is_invalid(body: dict[str, str]) -> None:
    assert Caller().code("POST", "/subjects/s/versions", body) == 42201


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/config/s", {"alias": "\ud800"}),
        ("POST", "/subjects/s/versions", {"schema": '"int"', "metadata": {"properties": {"a": "\ud800"}}}),
        ("POST", "/subjects/s/versions", {"schema": '"int"', "references": [{"name": "\ud800", "subject": "x", "version": 1}]}),
    ],
)
def test_a_body_with_a_lone_surrogate_is_refused(method: str, path: str, body: Any) -> None:
    assert Caller().code(method, path, body) == 400


def _records(count: int, kind: str) -> dict[str, str]:
    first = {"type": "record", "name": "R0", "fields": [{"name": "x", "type": kind}]}
    return _avro(
        [first, *({"type": "record", "name": f"R{i}", "fields": [{"name": "f", "type": f"R{i - 1}"}]} for i in range(1, count))]
    )


def _properties(kind: str) -> dict[str, str]:
    names = {f"n{number}": {"type": kind} for number in range(2000)}
    return _json({"properties": names, "patternProperties": {f"^x{number}$": {} for number in range(2000)}})


def _enums(count: int) -> dict[str, str]:
    return _json({"anyOf": [{"enum": [f"{i}_{j}" for j in range(count)]} for i in range(100)]})


def _slow_patterns(kind: str) -> dict[str, str]:
    """RE2 needs time for each instruction of a pattern and each character of a name."""
    patterns = {f"(a|b)*a(a|b){{{900 + number}}}": {"type": kind} for number in range(20)}
    return _json({"patternProperties": patterns, "properties": {"ab" * 2000 + str(number): {} for number in range(100)}})


ENTANGLED = {
    "slow patterns": (_slow_patterns("string"), _slow_patterns("integer")),
    "unions of records": (_records(500, "int"), _records(500, "string")),
    "names and patterns": (_properties("string"), _properties("integer")),
    "enums in anyOf": (_enums(500), _enums(400)),
}


@pytest.mark.parametrize(("old", "new"), ENTANGLED.values(), ids=ENTANGLED)
def test_a_comparison_without_end_is_given_up(old: dict[str, str], new: dict[str, str]) -> None:
    call = Caller()
    call.register("s", old)
    answer = call("POST", "/compatibility/subjects/s/versions/latest", new, verbose="true")
    assert answer["is_compatible"] is False
    assert "COMPARISON_LIMIT_REACHED" in answer["messages"][0]


def _doubling(end: str) -> dict[str, str]:
    twice = {f"d{i}": {"allOf": [{"$ref": f"#/definitions/d{i + 1}"}] * 2} for i in range(40)}
    return _json({"$ref": "#/definitions/d0", "definitions": twice | {"d40": {"type": end}}})


def test_all_of_that_doubles_at_each_level_is_given_up() -> None:
    call = Caller()
    call.register("s", _doubling("string"))
    assert not call.compatible("s", _doubling("integer"))


def _many_symbols(letter: str) -> dict[str, str]:
    enum = {"type": "enum", "name": "E", "symbols": [f"{letter}{number}" for number in range(20_000)]}
    users = [{"name": f"f{number}", "type": "E"} for number in range(2000)]
    return _avro({"type": "record", "name": "T", "fields": [{"name": "e", "type": enum}, *users]})


def test_differences_of_large_enums_are_listed_in_part() -> None:
    call = Caller()
    call.register("s", _many_symbols("a"))
    answer = call("POST", "/compatibility/subjects/s/versions/latest", _many_symbols("b"), verbose="true")
    differences = [each for each in answer["messages"] if "MISSING_ENUM_SYMBOLS" in each]
    assert 0 < len(differences) <= 100
    assert all(len(each) < 1000 for each in differences)


def test_long_names_are_cut_in_differences() -> None:
    def schema(kind: str) -> dict[str, str]:
        inner = {"additionalProperties": False, "properties": {f"p{number}": {"type": kind} for number in range(50)}}
        return _json({"properties": {"k" * 100_000: inner}})

    call = Caller()
    call.register("s", schema("string"))
    answer = call("POST", "/compatibility/subjects/s/versions/latest", schema("integer"), verbose="true")
    differences = [each for each in answer["messages"] if "errorType" in each]
    assert len(differences) == 50
    assert all(len(each) < 2000 for each in differences)


def test_references_are_followed_once() -> None:
    call = Caller()
    call.register("r0", _json({"title": "R0"}))
    for number in range(1, 60):
        twice = [{"name": f"{name}{number}", "subject": f"r{number - 1}", "version": 1} for name in "ab"]
        call.register(f"r{number}", _json({"title": f"R{number}"}) | {"references": twice})
    assert call("GET", "/subjects/r59/versions") == [1]


def test_a_long_chain_of_references_is_refused() -> None:
    call = Caller()
    call.register("r0", _json({"title": "R0"}))
    for number in range(1, 101):
        link = {"name": f"n{number}", "subject": f"r{number - 1}", "version": 1}
        call.register(f"r{number}", _json({"title": f"R{number}"}) | {"references": [link]})
    link = {"name": "end", "subject": "r100", "version": 1}
    assert call.code("POST", "/subjects/end/versions", _json({}) | {"references": [link]}) == 42201


def test_types_of_draft_3_may_be_schemas() -> None:
    call = Caller()
    call.register("s", _json({"$schema": DRAFT_3, "type": [{"type": "string"}]}))
    assert call.compatible("s", _json({"$schema": DRAFT_3, "type": [{"type": "string"}, {"type": "integer"}]}))
