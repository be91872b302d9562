"""Configs, modes and aliases: set, merged, looked up, and what they do."""

from __future__ import annotations

from tests.unit.registry.caller import INT, STRING, Caller


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
    for method, path, body in (
        ("POST", "/subjects/s/versions", INT),
        ("PUT", "/config/s", {"compatibility": "FULL"}),
        ("DELETE", "/subjects/s", None),
    ):
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
