"""Registering, looking up and testing schemas, by level, group, metadata and rules."""

from __future__ import annotations

import pytest

from tests.unit.registry.caller import INT, STRING, Caller, field, record
from tidelog.registry.model import MAX_VERSION
from tidelog.registry.registering import Rules

JSON_INT = {"schema": '{"type":"integer"}', "schemaType": "JSON"}


def test_the_same_schema_has_one_id_and_one_version_in_a_subject() -> None:
    call = Caller()
    first = call.register("s", {"schema": '{"type": "int"}'})
    assert (first["id"], first["version"], first["schema"]) == (1, 1, '{"type": "int"}')
    assert call.register("s", INT) == first | INT
    assert call("GET", "/subjects/s/versions/1/schema") == b'"int"'
    assert call.register("t", INT)["id"] == 1
    assert len([key for key, _ in call.written if b"SCHEMA" in key]) == 2
    assert call("GET", "/schemas/ids/1/versions") == [{"subject": "s", "version": 1}, {"subject": "t", "version": 1}]


def test_metadata_and_rules_are_part_of_a_schema_and_are_taken_over() -> None:
    call = Caller()
    rules = {"domainRules": [{"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}]}
    first = call.register("s", INT | {"metadata": {"properties": {"owner": "a"}}, "ruleSet": rules})
    assert (first["metadata"], first["ruleSet"]) == ({"properties": {"owner": "a"}}, rules)
    assert call.register("s", INT) == first
    second = call.register("s", INT | {"metadata": {"properties": {"owner": "b"}}})
    assert (second["id"], second["version"], second["ruleSet"]) == (2, 2, rules)
    assert call("POST", "/subjects/s", INT)["version"] == 2
    assert call("GET", "/subjects/s/metadata", key="owner", value="a")["version"] == 1
    assert call.code("GET", "/subjects/s/metadata", key="owner", value="c") == 40402
    assert (
        call.code(
            "POST", "/subjects/s/versions", INT | {"ruleSet": {"domainRules": [{"name": "x", "type": "T", "mode": "UPGRADE"}]}}
        )
        == 42210
    )


def test_an_empty_text_is_that_of_the_previous_version() -> None:
    call = Caller()
    assert call.code("POST", "/subjects/s/versions", {"schema": ""}) == 42201
    call.register("s", INT)
    found = call.register("s", {"schema": "", "metadata": {"properties": {"a": "1"}}})
    assert (found["version"], found["schema"]) == (2, '"int"')


@pytest.mark.parametrize("code", [409, 40901])
def test_an_incompatible_schema_is_refused_with_the_reasons(code: int) -> None:
    call = Caller(Rules(incompatible_code=code))
    call.register("s", record(field("a")))
    refused = call.refusal("POST", "/subjects/s/versions", record(field("a"), field("b")))
    assert (refused.status, refused.code) == (409, code)
    for part in (
        "errorType:'READER_FIELD_MISSING_DEFAULT_VALUE'",
        "additionalInfo:'b'",
        "oldSchemaVersion: 1",
        "compatibility: 'BACKWARD'",
    ):
        assert part in refused.message


LESS, MORE, OPTIONAL = record(field("a")), record(field("a"), field("b")), record(field("a"), field("b", default=0))


@pytest.mark.parametrize(
    ("level", "added", "removed", "optional"),
    [
        ("NONE", True, True, True),
        ("BACKWARD", False, True, True),
        ("FORWARD", True, False, True),
        ("FULL", False, False, True),
        ("BACKWARD_TRANSITIVE", False, True, True),
        ("FORWARD_TRANSITIVE", True, False, True),
        ("FULL_TRANSITIVE", False, False, True),
    ],
)
def test_levels(level: str, added: bool, removed: bool, optional: bool) -> None:
    call = Caller(Rules(default_level=level))
    call.register("less", LESS)
    call.register("more", MORE)
    assert call.compatible("less", MORE) is added
    assert call.compatible("more", LESS) is removed
    assert call.compatible("less", OPTIONAL) is optional


def test_transitive_levels_look_at_all_versions_and_single_tests_at_one() -> None:
    call = Caller()
    call.level("s", "NONE")
    call.register("s", LESS)
    call.register("s", MORE)
    for level, wanted in (("BACKWARD", True), ("BACKWARD_TRANSITIVE", False)):
        call.level("s", level)
        body = call("POST", "/compatibility/subjects/s/versions", MORE, verbose="true")
        assert body["is_compatible"] is wanted
        assert bool(body["messages"]) is not wanted
    assert call.compatible("s", MORE, "2") is True
    assert call.compatible("s", MORE, "1") is False
    assert call.compatible("unknown", MORE) is True
    assert call.code("POST", "/compatibility/subjects/s/versions/9", MORE) == 40402
    assert call.code("POST", "/compatibility/subjects/s/versions/1", {"schema": "?!"}) == 42201
    assert call("POST", "/compatibility/subjects/s/versions/1", {"schema": "?!"}, verbose="true")["is_compatible"] is False


def test_another_format_is_incompatible() -> None:
    call = Caller()
    call.register("s", INT)
    assert "SCHEMA_TYPE_CHANGED" in call.refusal("POST", "/subjects/s/versions", JSON_INT).message


def test_versions_of_another_group_do_not_count() -> None:
    call = Caller()
    call("PUT", "/config/s", {"compatibilityGroup": "major"})
    call.register("s", LESS | {"metadata": {"properties": {"major": "1"}}})
    assert call.code("POST", "/subjects/s/versions", MORE) == 409
    assert call.register("s", MORE | {"metadata": {"properties": {"major": "2"}}})["version"] == 2
    assert call.code("POST", "/subjects/s/versions", MORE | {"metadata": {"properties": {"major": "1"}}}) == 409


@pytest.mark.parametrize("subject", ["a%00b", "__GLOBAL", "__EMPTY", ":.c:", "a%0Ab", ":.__GLOBAL:x"])
def test_names_that_are_no_subjects(subject: str) -> None:
    assert Caller().code("POST", f"/subjects/{subject}/versions", INT) == 42208


def test_a_schema_has_a_largest_size() -> None:
    call = Caller(Rules(max_schema_bytes=30))
    assert call.code("POST", "/subjects/s/versions", {"schema": '"int"' + " " * 30}) == 42209


def test_behind_the_last_id_and_the_last_version_nothing_is_registered() -> None:
    call = Caller()
    call("PUT", "/mode", {"mode": "IMPORT"})
    call.register("a", INT | {"id": MAX_VERSION, "version": MAX_VERSION})
    assert call.code("POST", "/subjects/a/versions", STRING | {"id": 7}) == 42205
    call("PUT", "/mode", {"mode": "READWRITE"})
    assert call.code("POST", "/subjects/b/versions", STRING) == 42205
    assert call.register("b", INT)["id"] == MAX_VERSION
