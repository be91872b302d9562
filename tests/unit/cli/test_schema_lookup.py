"""Whether a registry has the schemas of next records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.console.group_samples import AT, HEALTHY, SAMPLE
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.schema_lookup import registry_at, with_schemas
from tidelog.console.group_facts import Sample
from tidelog.console.next_record import NextRecord
from tidelog.testing.schema_registry.server import SchemaRegistry


def at_schema(schema_id: int | None) -> Sample:
    return replace(SAMPLE, partitions={AT: replace(HEALTHY, next=NextRecord(1, 1, 1, "framed", schema_id))})


def missing(found: Sample) -> bool:
    record = found.partitions[AT].next
    assert record is not None
    return record.schema_missing


def test_a_schema_that_is_not_there_is_marked() -> None:
    with SchemaRegistry() as registry:
        known = registry.register("orders-value", {"type": "string"})
        at = registry_at(registry.url)
        assert missing(with_schemas(at_schema(known + 70), at))
        assert not missing(with_schemas(at_schema(known), at))
        assert not missing(with_schemas(at_schema(None), at))


def test_a_registry_that_does_not_answer_is_named() -> None:
    with SchemaRegistry() as registry:
        at = registry_at(registry.url)
    found = with_schemas(at_schema(7), at)
    assert not missing(found)
    assert "the schema registry does not answer" in found.unread[0]


def test_an_address_of_something_else_is_refused() -> None:
    with pytest.raises(CommandFailed, match="--schema-registry"):
        registry_at("ftp://x")
