"""The GUID of a schema: MD5 over its parts, as Confluent's registries compute it. Equal parts have one GUID in all registries.

The parts follow each other without separators: the text; of each reference the name, the subject and the version (int32,
big-endian); of metadata a byte 1, sorted tags, sorted properties, sensitive names; of rules a byte 1, each rule, and
``enableAt``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from tidelog.registry.model import Schema

_RULE_SETS = ("migrationRules", "domainRules", "encodingRules")


@lru_cache(maxsize=4096)
def guid_of(schema: Schema) -> str:
    """The GUID, in lower case with hyphens."""
    digest = hashlib.md5(schema.text.encode(), usedforsecurity=False)
    for part in _further_parts(schema):
        digest.update(part.encode() if isinstance(part, str) else part)
    found = digest.hexdigest()
    return f"{found[:8]}-{found[8:12]}-{found[12:16]}-{found[16:20]}-{found[20:]}"


def _further_parts(schema: Schema) -> Iterator[str | bytes]:
    for each in schema.references:
        yield each.name
        yield each.subject
        yield each.version.to_bytes(4, "big", signed=True)
    if schema.metadata is not None:
        yield b"\x01"
        metadata = schema.metadata_value
        for key, values in sorted((metadata.get("tags") or {}).items()):
            yield key
            yield from sorted(values)
        for key, value in sorted((metadata.get("properties") or {}).items()):
            yield key
            yield value
        yield from sorted(metadata.get("sensitive") or ())
    if schema.rule_set is not None:
        yield b"\x01"
        rules = schema.rules
        for name in _RULE_SETS:
            for rule in rules.get(name) or ():
                yield from _rule(rule)
        yield rules.get("enableAt") or ""


def _rule(rule: dict[str, Any]) -> Iterator[str | bytes]:
    for key in ("name", "doc", "kind", "mode", "type"):
        yield rule.get(key) or ""
    yield from sorted(rule.get("tags") or ())
    for key, value in sorted((rule.get("params") or {}).items()):
        yield key
        yield value
    for key in ("expr", "onSuccess", "onFailure"):
        yield rule.get(key) or ""
    if rule.get("disabled"):
        yield b"\x01"
