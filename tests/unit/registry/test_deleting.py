"""Soft and permanent deletions, and what stays because others refer to it."""

from __future__ import annotations

from tests.unit.registry.caller import INT, Caller, field, record


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
