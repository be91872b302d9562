"""Requests to the whole API in memory: subjects, versions, ids, references, deletions, configs, modes, contexts, and error codes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.registry.caller import INT, STRING, Caller, field, record
from tidelog.registry.registering import Rules

JSON_INT = {"schema": '{"type":"integer"}', "schemaType": "JSON"}


def test_the_same_schema_has_one_id_and_one_version_in_a_subject() -> None:
    call = Caller()
    first = call.register("s", {"schema": '{"type": "int"}'})
    assert (first["id"], first["version"], first["schema"]) == (1, 1, '"int"')
    assert call.register("s", INT) == first
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
    assert call.code("POST", "/subjects/s/versions", INT | {"ruleSet": {"domainRules": [{"name": "x", "type": "T", "mode": "UPGRADE"}]}}) == 42210


def test_an_empty_text_is_that_of_the_previous_version() -> None:
    call = Caller()
    assert call.code("POST", "/subjects/s/versions", {"schema": ""}) == 42201
    call.register("s", INT)
    found = call.register("s", {"schema": "", "metadata": {"properties": {"a": "1"}}})
    assert (found["version"], found["schema"]) == (2, '"int"')


def test_references_lead_to_versions_and_keep_them() -> None:
    call = Caller()
    call.register("inner", record(field("x"), name="Inner"))
    outer = record(field("i", "Inner"), name="Outer") | {"references": [{"name": "Inner", "subject": "inner", "version": 1}]}
    assert call.register("outer", outer)["references"] == outer["references"]
    assert call("GET", "/subjects/inner/versions/1/referencedby") == [2]
    assert call.code("DELETE", "/subjects/inner") == 42206
    assert call.code("DELETE", "/subjects/inner/versions/1") == 42206
    missing = outer | {"references": [{"name": "Inner", "subject": "inner", "version": 2}]}
    assert call.code("POST", "/subjects/outer/versions", missing) == 42201
    resolved = call("GET", "/schemas/ids/2", format="resolved")["schema"]
    assert '"name":"Inner"' in resolved
    call("DELETE", "/subjects/outer")
    assert call("DELETE", "/subjects/inner") == [1]
    assert call.code("DELETE", "/subjects/inner", permanent="true") == 42206
    call("DELETE", "/subjects/outer", permanent="true")
    assert call("DELETE", "/subjects/inner", permanent="true") == [1]


def test_versions_are_deleted_softly_and_then_for_good() -> None:
    call = Caller()
    call.register("s", INT)
    assert call.code("DELETE", "/subjects/s/versions/1", permanent="true") == 40407
    assert call("DELETE", "/subjects/s/versions/latest") == 1
    assert call.code("DELETE", "/subjects/s/versions/1") == 40406
    assert call.code("GET", "/subjects/s/versions/1") == 40401
    assert call("GET", "/subjects/s/versions/1", deleted="true")["deleted"] is True
    assert call("GET", "/schemas/ids/1")["schema"] == '"int"'
    assert call("GET", "/subjects") == []
    assert call("GET", "/subjects", deleted="true") == ["s"]
    assert call("DELETE", "/subjects/s/versions/1", permanent="true") == 1
    assert call.code("GET", "/schemas/ids/1") == 40403
    assert call.code("DELETE", "/subjects/s") == 40401


def test_a_subject_is_deleted_softly_by_one_record_and_comes_back_as_a_new_version() -> None:
    call = Caller()
    call.register("s", INT)
    call.register("s", {"schema": '"long"'})
    assert call.code("DELETE", "/subjects/s", permanent="true") == 40405
    assert call("DELETE", "/subjects/s") == [1, 2]
    assert [key for key, _ in call.written][-1] == b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}'
    assert call.code("DELETE", "/subjects/s") == 40404
    assert call.code("POST", "/subjects/s", INT) == 40401
    assert call("POST", "/subjects/s", INT, deleted="true")["version"] == 1
    again = call.register("s", INT)
    assert (again["id"], again["version"]) == (1, 3)
    assert call("GET", "/subjects/s/versions", deleted="true") == [2, 3]
    assert call("GET", "/subjects/s/versions", deletedOnly="true") == [2]


def test_settings_of_a_subject_end_with_its_last_version() -> None:
    call = Caller()
    call.register("s", INT)
    call.level("s", "NONE")
    call("PUT", "/mode/s", {"mode": "READWRITE"})
    call("DELETE", "/subjects/s")
    assert call.code("GET", "/config/s") == 40408
    assert call.code("GET", "/mode/s") == 40409


@pytest.mark.parametrize("code", [409, 40901])
def test_an_incompatible_schema_is_refused_with_the_reasons(code: int) -> None:
    call = Caller(Rules(incompatible_code=code))
    call.register("s", record(field("a")))
    refused = call.refusal("POST", "/subjects/s/versions", record(field("a"), field("b")))
    assert (refused.status, refused.code) == (409, code)
    for part in ("errorType:'READER_FIELD_MISSING_DEFAULT_VALUE'", "additionalInfo:'b'", "oldSchemaVersion: 1", "compatibility: 'BACKWARD'"):
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
    assert call.compatible("nobody", MORE) is True
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


def test_configs_are_merged_field_by_field_and_looked_up_outwards() -> None:
    call = Caller()
    assert call("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    assert call("PUT", "/config", {"compatibility": "full"}) == {"compatibility": "full"}
    call("PUT", "/config/s", {"normalize": True})
    assert call("GET", "/config/s") == {"normalize": True}
    assert call("GET", "/config/s", defaultToGlobal="true") == {"compatibilityLevel": "FULL", "normalize": True}
    call("PUT", "/config/s", {"compatibility": "NONE", "normalize": None})
    assert call("GET", "/config/s") == {"compatibilityLevel": "NONE"}
    assert call("DELETE", "/config/s") == {"compatibilityLevel": "NONE"}
    assert call.code("DELETE", "/config/s") == 40401
    assert call.code("PUT", "/config/s", {"compatibility": "SOMETIMES"}) == 42203
    assert call.code("PUT", "/config/s", {"validateFields": True}) == 400
    assert call.code("PUT", "/config/s", {"speed": 1}) == 422
    assert call("DELETE", "/config") == {"compatibilityLevel": "FULL"}
    assert call("GET", "/config") == {"compatibilityLevel": "BACKWARD"}


def test_default_and_override_metadata_and_rules_are_merged_into_schemas() -> None:
    call = Caller()
    rule = {"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "1"}
    call(
        "PUT",
        "/config/s",
        {
            "defaultMetadata": {"properties": {"a": "default", "b": "default"}},
            "overrideMetadata": {"properties": {"c": "forced"}},
            "overrideRuleSet": {"domainRules": [rule]},
        },
    )
    found = call.register("s", INT | {"metadata": {"properties": {"b": "own", "c": "own"}}})
    assert found["metadata"]["properties"] == {"a": "default", "b": "own", "c": "forced"}
    assert found["ruleSet"] == {"domainRules": [rule]}


def test_an_alias_stands_for_another_subject() -> None:
    call = Caller()
    call.register("real", INT)
    call("PUT", "/config/nick", {"alias": "real"})
    assert call("GET", "/subjects/nick/versions/latest")["subject"] == "real"
    assert call.register("nick", INT)["version"] == 1


def test_modes_block_and_import() -> None:
    call = Caller()
    call("PUT", "/mode", {"mode": "READONLY"})
    for method, path, body in (("POST", "/subjects/s/versions", INT), ("PUT", "/config/s", {"compatibility": "FULL"}), ("DELETE", "/subjects/s", None)):
        assert call.code(method, path, body) == 42205
    call("PUT", "/mode/s", {"mode": "READWRITE"})
    assert call.register("s", INT)["id"] == 1
    assert call.code("POST", "/subjects/s/versions", STRING | {"id": 9}) == 42205
    assert call.code("PUT", "/mode/s", {"mode": "IMPORT"}) == 42205
    assert call.code("PUT", "/mode/s", {"mode": "SLEEP"}) == 42204
    call("PUT", "/mode/s", {"mode": "IMPORT"}, force="true")
    found = call.register("s", STRING | {"id": 9, "version": 5})
    assert (found["id"], found["version"]) == (9, 5)
    assert call.code("POST", "/subjects/s/versions", INT | {"id": 9}) == 42207
    assert call("GET", "/mode/s") == {"mode": "IMPORT"}
    assert call("DELETE", "/mode/s") == {"mode": "IMPORT"}
    assert call("GET", "/mode/s", defaultToGlobal="true") == {"mode": "READONLY"}
    call("PUT", "/mode", {"mode": "READWRITE"})
    assert call.register("t", {"schema": '"long"'})["id"] == 10


def test_read_only_for_everything_is_above_all_modes() -> None:
    call = Caller()
    call("PUT", "/mode/s", {"mode": "READWRITE"})
    call("PUT", "/mode/:.__GLOBAL:", {"mode": "READONLY"})
    assert call.code("POST", "/subjects/s/versions", INT) == 42205


def test_contexts_have_ids_and_settings_of_their_own() -> None:
    call = Caller()
    call.register("s", INT)
    first = call("POST", "/contexts/:.c:/subjects/s/versions", STRING)
    assert (first["id"], first["version"]) == (1, 1)
    assert [key for key, _ in call.written][-2] == b'{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}'
    assert call("GET", "/contexts") == [".", ".c"]
    assert call("GET", "/subjects/:.c:s/versions/1")["subject"] == ":.c:s"
    assert call("GET", "/contexts/.c/subjects") == [":.c:s"]
    assert call("GET", "/subjects") == [":.c:s", "s"]
    assert call("GET", "/subjects", subjectPrefix="") == ["s"]
    assert call("GET", "/subjects", subjectPrefix=":.c:") == [":.c:s"]
    assert call("GET", "/schemas/ids/1")["schema"] == '"int"'
    assert call("GET", "/schemas/ids/1", subject=":.c:s")["schema"] == '"string"'
    assert call("GET", "/contexts/:.c:/schemas/ids/1")["schema"] == '"string"'
    call("PUT", "/contexts/:.c:/config", {"compatibility": "NONE"})
    assert call("GET", "/config/:.c:s", defaultToGlobal="true")["compatibilityLevel"] == "NONE"
    assert call("GET", "/config/s", defaultToGlobal="true")["compatibilityLevel"] == "BACKWARD"
    assert call.code("DELETE", "/contexts/.c") == 42211
    call("DELETE", "/subjects/:.c:s")
    call("DELETE", "/subjects/:.c:s", permanent="true")
    assert call("DELETE", "/contexts/:.c:") is None
    assert call("GET", "/contexts") == ["."]


def test_an_id_of_another_context_is_found_by_the_name_of_its_subject() -> None:
    call = Caller()
    call("POST", "/contexts/:.c:/subjects/s/versions", STRING)
    assert call.code("GET", "/schemas/ids/1") == 40403
    assert call("GET", "/schemas/ids/1", subject="s")["schema"] == '"string"'
    assert call.code("GET", "/schemas/ids/1", subject="other") == 40403


def test_schemas_are_found_by_guid_and_listed() -> None:
    call = Caller()
    guid = call.register("s", INT)["guid"]
    call.register(":.c:s", INT)
    call.register("s", {"schema": '"long"'})
    assert call("GET", f"/schemas/guids/{guid}")["schema"] == '"int"'
    assert call("GET", f"/schemas/guids/{guid}/ids") == [{"context": ".", "id": 1}, {"context": ".c", "id": 1}]
    assert call.code("GET", "/schemas/guids/nothing") == 40403
    assert [(each["subject"], each["version"]) for each in call("GET", "/schemas")] == [(":.c:s", 1), ("s", 1), ("s", 2)]
    assert [each["version"] for each in call("GET", "/schemas", latestOnly="true", subjectPrefix="s")] == [2]
    assert call("GET", "/schemas/types") == ["AVRO", "JSON", "PROTOBUF"]
    assert call("GET", "/schemas/ids/2", fetchMaxId="true")["maxId"] == 2
    assert call("GET", "/schemas/ids/2/schema") == b'"long"'
    assert call("GET", "/schemas/ids/2/subjects", deleted="true") == ["s"]


def test_lists_have_pages() -> None:
    call = Caller()
    for name in "abcd":
        call.register(name, INT)
    assert call("GET", "/subjects", offset="1", limit="2") == ["b", "c"]
    assert call("GET", "/subjects", offset="3") == ["d"]
    assert call.code("GET", "/subjects", offset="x") == 404


def test_subjects_may_hold_slashes_and_percent_signs() -> None:
    call = Caller()
    call.register("a%2Fb%25c", INT)
    assert call("GET", "/subjects") == ["a/b%c"]
    assert call("GET", "/subjects/a%2Fb%25c/versions") == [1]


@pytest.mark.parametrize("subject", ["a%00b", "__GLOBAL", "__EMPTY", ":.c:", "a%0Ab", ":.__GLOBAL:x"])
def test_names_that_are_no_subjects(subject: str) -> None:
    assert Caller().code("POST", f"/subjects/{subject}/versions", INT) == 42208


@pytest.mark.parametrize("version", ["0", "-2", "x", "2147483648", "1.0", "99999999999999999999", "٣"])
def test_versions_that_are_none(version: str) -> None:
    call = Caller()
    call.register("s", INT)
    assert call.code("GET", f"/subjects/s/versions/{version}") == 42202


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (None, 400),
        ([], 400),
        ({"schema": 1}, 400),
        (INT | {"other": 1}, 422),
        (INT | {"schemaType": "XML"}, 42201),
        ({"schema": "{}"}, 42201),
        (INT | {"references": [{"name": "a"}]}, 400),
        (INT | {"references": "a"}, 400),
        (INT | {"id": "7"}, 400),
        (INT | {"id": 1 << 31}, 400),
        (INT | {"metadata": {"properties": {"a": 1}}}, 400),
        (INT | {"ruleSet": []}, 42210),
        (INT | {"version": 3}, 42202),
        (INT | {"schemaTagsToAdd": [{"tags": ["x"]}]}, 400),
        ({"schema": '"\\ud800"', "schemaType": "JSON"}, 42201),
    ],
)
def test_bodies_that_are_refused(body: Any, code: int) -> None:
    assert Caller().code("POST", "/subjects/s/versions", body) == code


def test_a_schema_has_a_largest_size() -> None:
    call = Caller(Rules(max_schema_bytes=30))
    assert call.code("POST", "/subjects/s/versions", {"schema": '"int"' + " " * 30}) == 42209


def test_paths_that_are_not_there() -> None:
    call = Caller()
    assert call.refusal("GET", "/nothing").status == 404
    assert call.refusal("GET", "/associations/resources/-/t").status == 404
    assert call.refusal("PATCH", "/subjects").status == 405
    assert call("GET", "/") == {}
    assert call("GET", "/v1/metadata/id")["scope"]["clusters"]["kafka-cluster"] == "cluster"
    assert call.code("GET", "/schemas/ids/99999999999") == 404


def test_every_route_says_whether_it_writes() -> None:
    """What can append a record is guarded as a write: a reader's login must not reach it."""
    reading = {route.path for route in Caller().api.routes if route.method != "GET" and not route.writes}
    assert reading == {
        "/",
        "/subjects/{subject}",
        "/compatibility/subjects/{subject}/versions",
        "/compatibility/subjects/{subject}/versions/{version}",
    }
