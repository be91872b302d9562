"""Tags in Avro schemas."""

from __future__ import annotations

import json

from tidelog.registry.formats import Document
from tidelog.registry.formats.avro.schema_format import tagged
from tidelog.registry.formats.tagging import Tagged

INNER = {
    "type": "record",
    "name": "Street",
    "confluent:tags": ["PLACE"],
    "fields": [{"name": "number", "type": "int", "confluent:tags": ["PII"]}, {"name": "city", "type": "string"}],
}
OUTER = {
    "type": "record",
    "name": "Person",
    "namespace": "shop",
    "fields": [
        {"name": "homes", "type": {"type": "array", "items": INNER}, "confluent:tags": ["PII", "GDPR"]},
        {"name": "works", "type": ["null", {"type": "map", "values": "Street"}]},
        {"name": "friend", "type": ["null", "Person"]},
    ],
}


def test_records_and_fields_are_found_once_wherever_they_are_mentioned() -> None:
    assert list(tagged(Document(json.dumps(OUTER)))) == [
        Tagged("shop.Person.homes", True, ("PII", "GDPR")),
        Tagged("shop.Street", False, ("PLACE",)),
        Tagged("shop.Street.number", True, ("PII",)),
    ]


def test_types_of_references_count() -> None:
    found = tagged(Document('["null", "Street"]', {"Street": json.dumps(INNER)}))
    assert [each.path for each in found] == ["Street", "Street.number"]


def test_a_primitive_has_none() -> None:
    assert list(tagged(Document('"int"'))) == []
