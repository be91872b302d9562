"""Formats are imported when a schema asks for them."""

from __future__ import annotations

import sys

import pytest

from tidelog.testing.schema_registry.errors import InvalidSchema
from tidelog.testing.schema_registry.formats import MODULES, PACKAGE, Document, format_of


@pytest.mark.parametrize(("kind", "text"), [("AVRO", '"int"'), ("JSON", "{}"), ("PROTOBUF", "message M {}")])
def test_each_format_keeps_its_contract(kind: str, text: str) -> None:
    module = format_of(kind)
    assert module.canonical(Document(text), False) == text
    assert module.compare(Document(text), Document(text)).reasons == []
    assert kind in MODULES


def test_an_unknown_one_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(InvalidSchema, match="AVRO, JSON, PROTOBUF"):
        format_of("THRIFT")


def test_a_missing_parser_is_named_with_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, f"{PACKAGE}.avro", raising=False)
    monkeypatch.setitem(sys.modules, "fastavro.schema", None)
    with pytest.raises(InvalidSchema, match=r"fastavro.*pip install 'tidelog\[testing\]'"):
        format_of("AVRO")
