"""Metadata and rules of a schema (data contracts): read from requests and records, checked, written in one order, merged.

The registry stores and checks rules; clients run them. Rules of kind TRANSFORM or CONDITION have a name that is unique in the
set; migration rules have a mode among UPGRADE, DOWNGRADE, UPDOWN, the others one among WRITE, READ, WRITEREAD.
"""

from __future__ import annotations

import json
from typing import Any

from tidelog.registry import errors
from tidelog.registry.model import compact

RULE_SETS = ("migrationRules", "domainRules", "encodingRules")
ENABLE_AT = ("ALL", "CLIENT", "GATEWAY", "SERVER", "NONE")
_KINDS = ("TRANSFORM", "CONDITION")
_MIGRATION = ("UPGRADE", "DOWNGRADE", "UPDOWN")
_OTHER = ("WRITE", "READ", "WRITEREAD")
_RULE_KEYS = ("name", "doc", "kind", "mode", "type", "tags", "params", "expr", "onSuccess", "onFailure", "disabled")


def metadata_text(value: Any) -> str | None:
    """Metadata in its order: tags and properties by name, sensitive names sorted; None for none. RegistryError (422)."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise errors.bad_request("metadata is an object with tags, properties and sensitive")
    tags, properties, sensitive = (value.get(key) for key in ("tags", "properties", "sensitive"))
    result: dict[str, Any] = {}
    if tags:
        if not _map_of_lists(tags):
            raise errors.bad_request("metadata.tags maps paths to lists of tags")
        result["tags"] = {key: sorted(set(tags[key])) for key in sorted(tags)}
    if properties:
        if not _texts(properties):
            raise errors.bad_request("metadata.properties maps names to texts")
        result["properties"] = {key: properties[key] for key in sorted(properties)}
    if sensitive:
        if not isinstance(sensitive, list) or not all(isinstance(each, str) for each in sensitive):
            raise errors.bad_request("metadata.sensitive is a list of names")
        result["sensitive"] = sorted(set(sensitive))
    return compact(result)


def rule_set_text(value: Any, *, check: bool = True) -> str | None:
    """Rules in their order; None for none. RegistryError (42210) for a rule that cannot be; ``check`` False takes any."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise errors.invalid_rules("it is an object with migrationRules, domainRules and encodingRules")
    result: dict[str, Any] = {}
    for name in RULE_SETS:
        rules = value.get(name)
        if not rules:
            continue
        if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
            raise errors.invalid_rules(f"{name} is a list of rules")
        if check:
            _check(name, rules)
        result[name] = [{key: rule[key] for key in _RULE_KEYS if rule.get(key) not in (None, [], {})} for rule in rules]
    enable_at = value.get("enableAt")
    if enable_at is not None:
        if check and enable_at not in ENABLE_AT:
            raise errors.invalid_rules(f"enableAt {enable_at!r} is none of {', '.join(ENABLE_AT)}")
        result["enableAt"] = enable_at
    return compact(result)


def _check(name: str, rules: list[dict[str, Any]]) -> None:
    seen = set()
    for rule in rules:
        own = rule.get("name")
        if not isinstance(own, str) or not own:
            raise errors.invalid_rules(f"a rule of {name} has no name")
        if own in seen:
            raise errors.invalid_rules(f"{name} has two rules {own!r}")
        seen.add(own)
        if rule.get("kind", "TRANSFORM") not in _KINDS:
            raise errors.invalid_rules(f"the kind of {own!r} is none of {', '.join(_KINDS)}")
        if not isinstance(rule.get("type"), str):
            raise errors.invalid_rules(f"{own!r} has no type")
        modes = _MIGRATION if name == "migrationRules" else _OTHER
        if rule.get("mode", modes[-1]) not in modes:
            raise errors.invalid_rules(f"the mode of {own!r} is none of {', '.join(modes)}")
        if not _texts(rule.get("params") or {}):
            raise errors.invalid_rules(f"params of {own!r} maps names to texts")
        tags = rule.get("tags") or []
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise errors.invalid_rules(f"tags of {own!r} is a list of texts")
        for key in ("doc", "expr", "onSuccess", "onFailure"):
            if not isinstance(rule.get(key), str | None):
                raise errors.invalid_rules(f"{key} of {own!r} is not a text")


def merged_metadata(*parts: str | None) -> str | None:
    """Later parts win, by name."""
    found = [json.loads(part) for part in parts if part is not None]
    if not found:
        return None
    result: dict[str, Any] = {"tags": {}, "properties": {}, "sensitive": []}
    for part in found:
        for path, tags in (part.get("tags") or {}).items():
            result["tags"][path] = sorted({*result["tags"].get(path, ()), *tags})
        result["properties"] |= part.get("properties") or {}
        result["sensitive"] += part.get("sensitive") or []
    return metadata_text(result)


def merged_rules(*parts: str | None) -> str | None:
    """Later parts win, by the names of rules; a rule keeps the place of the first with its name."""
    found = [json.loads(part) for part in parts if part is not None]
    if not found:
        return None
    result: dict[str, Any] = {}
    for name in RULE_SETS:
        rules: dict[str, Any] = {}
        for part in found:
            rules |= {rule.get("name", ""): rule for rule in part.get(name) or ()}
        if rules:
            result[name] = list(rules.values())
    for part in found:
        if part.get("enableAt") is not None:
            result["enableAt"] = part["enableAt"]
    return rule_set_text(result, check=False)


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


def _map_of_lists(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(each, list) and all(isinstance(tag, str) for tag in each) for each in value.values()
    )
