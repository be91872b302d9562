"""Generated code against the definitions it was generated from, for every message at every version."""

from __future__ import annotations

import os
import random

import pytest

from tests.unit.protocol.random_messages import Maker, all_messages, class_of
from tests.unit.protocol.reference_encoder import ReferenceEncoder
from tidelog.protocol.schema import Message

ROUNDS = 200 if os.environ.get("TIDELOG_LONG") else 6


@pytest.mark.parametrize("message", all_messages(), ids=lambda m: m.name)
def test_bytes_are_those_of_the_definition_and_read_back(message: Message) -> None:
    for version in range(message.versions[0], message.versions[1] + 1):
        reference = ReferenceEncoder(message, version)
        for seed in range(ROUNDS):
            value = Maker(message, version, random.Random(f"{message.name} {version} {seed}")).make()
            data = value.encode(version)
            assert data == reference.encode(value)
            for buffer in (data, bytearray(data), memoryview(data)):
                assert class_of(message).decode(buffer, version) == value


@pytest.mark.parametrize("message", all_messages(), ids=lambda m: m.name)
def test_a_fresh_instance_has_the_defaults_of_the_definition(message: Message) -> None:
    value = class_of(message)()
    for field in message.fields:
        if not hasattr(value, field.attribute):
            assert field.versions[1] < message.versions[0], "only a field that no version has is left out"
            continue
        found = getattr(value, field.attribute)
        if field.default == "null":
            assert found is None
        elif field.is_array:
            assert found == []
        elif field.type in ("bool",):
            assert found is (field.default == "true")
        elif field.type == "string":
            assert found == field.default
        elif field.type.startswith(("int", "uint")):
            assert found == int(field.default or "0", 0)
