"""Metadata and rules: their order, what is refused, and how they are merged."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.registry.contracts import merged_metadata, merged_rules, metadata_text, rule_set_text
from tidelog.registry.errors import RegistryError

RULE = {"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "1"}


def test_metadata_are_sorted_and_what_is_empty_is_left_out() -> None:
    given = {"sensitive": ["b", "a"], "properties": {"z": "1", "y": "2"}, "tags": {"**.x": ["PII", "A", "PII"]}}
    assert metadata_text(given) == '{"tags":{"**.x":["A","PII"]},"properties":{"y":"2","z":"1"},"sensitive":["a","b"]}'
    assert metadata_text({"tags": {}, "properties": None}) == "{}"
    assert metadata_text(None) is None


def test_rules_keep_their_order_and_properties_get_one() -> None:
    given = {"domainRules": [{"type": "CEL", "name": "r", "tags": [], "disabled": True, "other": 1}], "enableAt": "SERVER"}
    assert rule_set_text(given) == '{"domainRules":[{"name":"r","type":"CEL","disabled":true}],"enableAt":"SERVER"}'


@pytest.mark.parametrize(
    "given",
    [
        [],
        {"domainRules": {}, "encodingRules": "x"},
        {"domainRules": [1]},
        {"domainRules": [{**RULE, "name": ""}]},
        {"domainRules": [RULE, RULE]},
        {"domainRules": [{**RULE, "kind": "WISH"}]},
        {"domainRules": [{**RULE, "mode": "UPGRADE"}]},
        {"migrationRules": [RULE]},
        {"domainRules": [{**RULE, "type": None}]},
        {"domainRules": [{**RULE, "params": {"a": 1}}]},
        {"domainRules": [{**RULE, "tags": "x"}]},
        {"domainRules": [{**RULE, "expr": 1}]},
        {"enableAt": "NIGHT"},
    ],
)
def test_rules_that_cannot_be_are_refused(given: Any) -> None:
    with pytest.raises(RegistryError) as caught:
        rule_set_text(given)
    assert caught.value.code == 42210


@pytest.mark.parametrize("given", [[], {"tags": {"a": "b"}}, {"properties": {"a": 1}}, {"sensitive": "x"}, {"tags": [1]}])
def test_metadata_of_another_form_are_refused(given: Any) -> None:
    with pytest.raises(RegistryError):
        metadata_text(given)


def test_later_metadata_win_and_tags_add_up() -> None:
    first = metadata_text({"properties": {"a": "1", "b": "1"}, "tags": {"x": ["p"]}})
    second = metadata_text({"properties": {"b": "2"}, "tags": {"x": ["q"]}})
    assert merged_metadata(first, None, second) == '{"tags":{"x":["p","q"]},"properties":{"a":"1","b":"2"}}'
    assert merged_metadata(None, None) is None


def test_later_rules_win_by_their_names() -> None:
    first = rule_set_text({"domainRules": [RULE, {**RULE, "name": "s"}]})
    second = rule_set_text({"domainRules": [{**RULE, "expr": "2"}], "enableAt": "CLIENT"})
    merged = merged_rules(first, second)
    assert merged is not None
    assert '"name":"r"' in merged.split('"name":"s"')[0]
    assert '"expr":"2"' in merged
    assert merged.endswith('"enableAt":"CLIENT"}')
