from __future__ import annotations

import base64

import pytest

from tests.unit.console.payloads.protobuf_samples import EVENT, OLD, REFERENCES
from tidelog.console.payloads.framed import Refused
from tidelog.console.payloads.protobuf_types import MAX_BYTES, types_of
from tidelog.registry.formats import Document
from tidelog.registry.formats.protobuf.schema_format import descriptors


def test_messages_are_found_by_name_and_by_place() -> None:
    types = types_of(EVENT, REFERENCES)
    assert [each.name for each in types.outer] == [".shop.First", ".shop.Event"]
    assert types.messages[".shop.Money"].fields[1].name == "units"
    assert types.enums[".shop.Event.Kind"] == {0: "NONE", 1: "SALE"}
    assert [each.name for each in types.at((0,))] == [".shop.First"]
    assert [each.name for each in types.at((1, 2))] == [".shop.Event.Line"]
    assert [each.name for each in types.at((1, 0))] == [".shop.Event.Line"]
    with pytest.raises(Refused, match=r"no message at 1\.5"):
        types.at((1, 5))


def test_where_clients_count_differently_both_places_are_named() -> None:
    text = 'syntax = "proto3"; message O { map<string, int32> m = 1; message A { } message B { } }'
    assert [each.name for each in types_of(text, {}).at((0, 1))] == [".O.A", ".O.B"]
    assert [each.name for each in types_of(OLD, {}).at((0, 0))] == [".Old.Part", ".Old.Other"]


def test_a_descriptor_in_base64_is_a_schema_too() -> None:
    file = descriptors(Document(EVENT, REFERENCES))[0]
    text = base64.b64encode(file.SerializeToString()).decode()
    assert types_of(text, REFERENCES).messages.keys() == types_of(EVENT, REFERENCES).messages.keys()


@pytest.mark.parametrize("text", ["message", 'syntax = "proto3"; message A { B b = 1; }', EVENT, "\ud800", "x" * (MAX_BYTES + 1)])
def test_a_schema_that_cannot_be_used_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="its schema"):
        types_of(text, {})
