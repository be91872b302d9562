"""The GUID's formula, part by part."""

from __future__ import annotations

import hashlib
import uuid

from tidelog.registry import contracts
from tidelog.registry.guid import guid_of
from tidelog.registry.model import Reference, Schema


def _of(*parts: bytes) -> str:
    return str(uuid.UUID(bytes=hashlib.md5(b"".join(parts)).digest()))


def test_a_text_alone_is_its_md5() -> None:
    assert guid_of(Schema("AVRO", '"string"')) == _of(b'"string"')


def test_references_follow_with_their_versions_as_big_endian_numbers() -> None:
    schema = Schema("AVRO", '"int"', (Reference("n", "s", 258),))
    assert guid_of(schema) == _of(b'"int"', b"n", b"s", b"\0\0\1\2")


def test_metadata_follow_a_one_in_the_order_of_their_names() -> None:
    given = {"properties": {"b": "2", "a": "1"}, "tags": {"z": ["q", "p"]}, "sensitive": ["y", "x"]}
    schema = Schema("AVRO", '"int"', metadata=contracts.metadata_text(given))
    assert guid_of(schema) == _of(b'"int"', b"\1", b"zpq", b"a1b2", b"xy")


def test_empty_metadata_differ_from_none() -> None:
    assert guid_of(Schema("AVRO", '"int"', metadata="{}")) == _of(b'"int"', b"\1")


def test_rules_follow_with_all_their_parts() -> None:
    rule = {"name": "n", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "e", "onFailure": "ERROR"}
    given = {"domainRules": [rule | {"tags": ["t"], "params": {"k": "v"}, "disabled": True}], "enableAt": "CLIENT"}
    schema = Schema("AVRO", '"int"', rule_set=contracts.rule_set_text(given))
    assert guid_of(schema) == _of(
        b'"int"', b"\1", b"n", b"CONDITION", b"WRITE", b"CEL", b"t", b"kv", b"e", b"ERROR", b"\1", b"CLIENT"
    )
