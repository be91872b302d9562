"""Subjects, schemas, compatibility, configs and modes, without HTTP."""

from __future__ import annotations

import json

import pytest

from tests.unit.testing.schema_registry.caller import INT, STRING, Caller


@pytest.fixture
def call() -> Caller:
    return Caller()


def test_register_look_up_get_and_list(call: Caller) -> None:
    registered = call("POST", "/subjects/s/versions", INT)
    assert (registered["id"], registered["version"], registered["schema"]) == (1, 1, '"int"')
    found = call("POST", "/subjects/s", {"schema": '{"type": "int"}'})
    assert found == {"subject": "s", "version": 1, "id": 1, "guid": registered["guid"], "schema": '"int"'}
    assert call("GET", "/subjects/s/versions/latest") == call("GET", "/subjects/s/versions/1") == found
    assert call("GET", "/subjects/s/versions/-1") == found
    assert call("GET", "/schemas/ids/1", fetchMaxId="true") == {"schema": '"int"', "guid": registered["guid"], "maxId": 1}
    assert call("GET", "/schemas/guids/" + registered["guid"])["schema"] == '"int"'
    assert call("GET", "/subjects/s/versions/1/schema") == call("GET", "/schemas/ids/1/schema") == b'"int"'
    assert call("GET", "/schemas/ids/1/subjects") == ["s"]
    assert call("GET", "/schemas/ids/1/versions") == [{"subject": "s", "version": 1}]
    assert call("GET", "/schemas") == [found]
    assert (call("GET", "/subjects"), call("GET", "/subjects/s/versions")) == (["s"], [1])
    assert call("GET", "/schemas/types") == ["AVRO", "JSON", "PROTOBUF"]
    assert call("GET", "/contexts") == ["."]
    assert call("GET", "/") == {}
    assert "scope" in call("GET", "/v1/metadata/id")


def test_lists_by_prefix_by_page_and_with_the_deleted(call: Caller) -> None:
    for subject in ("a1", "a2", "b1", ":.c:d"):
        call("POST", f"/subjects/{subject}/versions", INT)
    call("POST", "/subjects/a1/versions", {"schema": '"long"'})
    call("DELETE", "/subjects/b1")
    assert call("GET", "/subjects") == [":.c:d", "a1", "a2"]
    assert call("GET", "/subjects", deleted="true") == [":.c:d", "a1", "a2", "b1"]
    assert call("GET", "/subjects", deletedOnly="true") == ["b1"]
    assert call("GET", "/subjects", subjectPrefix="a", offset="1", limit="1") == ["a2"]
    assert call("GET", "/subjects", subjectPrefix=":*:", limit="2") == [":.c:d", "a1"]
    latest = call("GET", "/schemas", latestOnly="true", subjectPrefix="a")
    assert [(each["subject"], each["version"]) for each in latest] == [("a1", 2), ("a2", 1)]
    assert call.code("GET", "/subjects", limit="many") == 400


def test_deleting_answers_with_versions(call: Caller) -> None:
    call("POST", "/subjects/s/versions", INT)
    call("POST", "/subjects/s/versions", {"schema": '"long"'})
    assert call("DELETE", "/subjects/s/versions/2") == 2
    assert call("GET", "/subjects/s/versions/2", deleted="true")["deleted"] is True
    assert call("GET", "/subjects/s/versions", deletedOnly="true") == [2]
    assert call("DELETE", "/subjects/s/versions/2", permanent="true") == 2
    assert call("DELETE", "/subjects/s") == [1]
    assert call("DELETE", "/subjects/s", permanent="TRUE") == [1]
    assert call.code("DELETE", "/subjects/s") == 40401


def test_references_metadata_and_rules_are_kept(call: Caller) -> None:
    inner = json.dumps({"type": "record", "name": "R", "fields": []})
    call("POST", "/subjects/in/versions", {"schema": inner})
    outer = {
        "schema": '{"type":"array","items":"R"}',
        "references": [{"name": "R", "subject": "in", "version": 1}],
        "metadata": {"properties": {"owner": "us"}},
        "ruleSet": {"domainRules": []},
    }
    call("POST", "/subjects/out/versions", outer)
    found = call("GET", "/subjects/out/versions/1")
    assert {key: found[key] for key in outer} == outer
    assert call("GET", "/subjects/in/versions/1/referencedby") == [2]
    assert call("GET", "/subjects/out/metadata", key="owner", value="us")["version"] == 1
    assert call.code("GET", "/subjects/out/metadata", key="owner", value="them") == 40403
    assert call.code("DELETE", "/subjects/in") == 42206
    assert call.code("POST", "/subjects/out/versions", {**outer, "references": [{"name": "R"}]}) == 400


def test_compatibility_is_tested_without_registering(call: Caller) -> None:
    call("POST", "/subjects/s/versions", INT)
    tested = "/compatibility/subjects/s/versions"
    assert call("POST", f"{tested}/latest", {"schema": '"long"'}) == {"is_compatible": True}
    answer = call("POST", tested, STRING, verbose="true")
    assert answer["is_compatible"] is False
    assert "TYPE_MISMATCH" in answer["messages"][0]
    assert call("POST", "/compatibility/subjects/new/versions", STRING) == {"is_compatible": True}
    assert call.code("POST", f"{tested}/7", STRING) == 40402
    assert call.code("POST", f"{tested}/x", STRING) == 42202
    assert call("GET", "/subjects/s/versions") == [1]


def test_levels_and_modes_are_set_read_and_taken_back(call: Caller) -> None:
    assert call("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    assert call.code("GET", "/config/s") == 40408
    assert call("GET", "/config/s", defaultToGlobal="true") == {"compatibilityLevel": "BACKWARD"}
    assert call("PUT", "/config/s", {"compatibility": "full", "normalize": True}) == {"compatibility": "full", "normalize": True}
    assert call("GET", "/config/s") == {"compatibilityLevel": "FULL", "normalize": True}
    assert call("DELETE", "/config/s") == {"compatibilityLevel": "FULL"}
    assert call.code("DELETE", "/config/s") == 40401
    assert call.code("PUT", "/config", {"compatibility": "some"}) == 42203
    assert call.code("PUT", "/config", {"compatibility": "FULL", "compatibilityGroup": "g"}) == 400
    assert call("GET", "/mode") == {"mode": "READWRITE"}
    assert call.code("GET", "/mode/s") == 40409
    assert call("PUT", "/mode/s", {"mode": "readonly"}) == {"mode": "READONLY"}
    assert call.code("POST", "/subjects/s/versions", INT) == 42205
    assert call("DELETE", "/mode/s") == {"mode": "READONLY"}
    assert call.code("PUT", "/mode", {"mode": "sometimes"}) == 42204


def test_mode_import_is_for_subjects_without_schemas_unless_forced(call: Caller) -> None:
    call("POST", "/subjects/s/versions", INT)
    for path in ("/mode", "/mode/s"):
        assert call.code("PUT", path, {"mode": "IMPORT"}) == 42205
    assert call("PUT", "/mode/t", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
    assert call("PUT", "/mode", {"mode": "IMPORT"}, force="true") == {"mode": "IMPORT"}
    assert call("POST", "/subjects/t/versions", {**STRING, "id": 70})["id"] == 70
