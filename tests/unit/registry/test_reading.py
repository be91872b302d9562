"""Looking at contexts, ids, GUIDs and lists."""

from __future__ import annotations

import pytest

from tests.unit.registry.caller import INT, STRING, Caller, record


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


@pytest.mark.parametrize("text", [":.sales:", ".sales", "sales", ":sales:", ":.sales"])
def test_a_context_in_a_path_has_its_dot_or_gets_it(text: str) -> None:
    call = Caller()
    call("POST", f"/contexts/{text}/subjects/s/versions", INT)
    assert call("GET", "/subjects") == [":.sales:s"]
    assert call("GET", f"/contexts/{text}/subjects") == [":.sales:s"]


def test_a_colon_within_a_context_is_refused() -> None:
    assert Caller().code("GET", "/contexts/a:b/subjects") == 400


def test_schemas_are_listed_with_the_aliases_of_their_subjects() -> None:
    call = Caller()
    call.register("orders", INT)
    call.register("other", INT)
    for alias in ("b-orders", "a-orders"):
        call("PUT", f"/config/{alias}", {"alias": "orders"})
    call("PUT", "/config/:.c:orders", {"alias": "there"})
    listed = call("GET", "/schemas", aliases="true", subjectPrefix="a-")
    assert [(each["subject"], each["aliases"]) for each in listed] == [("orders", ["a-orders"])]
    listed = call("GET", "/schemas", aliases="true")
    assert [(each["subject"], each.get("aliases")) for each in listed] == [("orders", ["a-orders", "b-orders"]), ("other", None)]
    assert call("GET", "/schemas", subjectPrefix="a-") == []
    assert all("aliases" not in each for each in call("GET", "/schemas"))


TAGGED = record({"name": "a", "type": "int", "confluent:tags": ["PII"]})
ENTITY = {"schemaEntity": {"entityPath": "R.a", "entityType": "sr_field"}, "tags": ["PII"]}


@pytest.mark.parametrize("path", ["/schemas/ids/1", "/subjects/s/versions/1"])
def test_tagged_entities_are_found(path: str) -> None:
    call = Caller()
    call.register("s", TAGGED)
    for wanted in ("PII", "*", "other,PII"):
        assert call("GET", path, findTags=wanted)["schemaTags"] == [ENTITY]
    assert call("GET", path, findTags=["other", "PII"])["schemaTags"] == [ENTITY]
    assert "schemaTags" not in call("GET", path, findTags="other")
    assert "schemaTags" not in call("GET", path)


@pytest.mark.parametrize("path", ["/contexts/.c/schemas/ids/2", "/subjects/:.c:t/versions/1"])
def test_references_may_be_told_with_their_context(path: str) -> None:
    call = Caller()
    call.register(":.c:s", record(name="R"))
    call.register(":.c:t", {"schema": '["null", "R"]', "references": [{"name": "R", "subject": "s", "version": 1}]})
    assert call("GET", path)["references"] == [{"name": "R", "subject": "s", "version": 1}]
    assert call("GET", path, referenceFormat="odd") == call("GET", path)
    assert call("GET", path, referenceFormat="qualified")["references"] == [{"name": "R", "subject": ":.c:s", "version": 1}]


def test_references_in_the_default_context_stay_as_they_are() -> None:
    call = Caller()
    call.register("s", record(name="R"))
    call.register("t", {"schema": '["null", "R"]', "references": [{"name": "R", "subject": "s", "version": 1}]})
    assert call("GET", "/schemas/ids/2", referenceFormat="qualified") == call("GET", "/schemas/ids/2")


def test_a_format_that_there_is_not_gives_the_canonical_text() -> None:
    call = Caller()
    texts = {"AVRO": '"int"', "JSON": '{"type":"integer"}', "PROTOBUF": 'syntax = "proto3";\n\nmessage M {\n  int32 a = 1;\n}\n'}
    for number, (kind, text) in enumerate(texts.items(), 1):
        call.register(kind, {"schemaType": kind, "schema": text})
        for form in ("odd", "default", "ignore_extensions"):
            assert call("GET", f"/schemas/ids/{number}", format=form)["schema"] == text
