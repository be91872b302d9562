"""Whatever bytes come: a message, or ProtocolViolation; never more memory than a small multiple of what came."""

from __future__ import annotations

import os
import random
import tracemalloc

import pytest

from tests.unit.protocol.random_messages import Maker, all_messages, cases, class_of
from tidelog.model.errors import ProtocolViolation
from tidelog.protocol.schema import Message

ROUNDS = 100 if os.environ.get("TIDELOG_LONG") else 4
HUGE = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\x7f", b"\x80\x00\x00\x00", b"\x00\x10\x00\x00")
ONCE = 64 * 1024
"""Bytes a decoder may take whatever came: code, caches, the exception."""
PER_BYTE = 100
"""Bytes of objects that one byte on the wire may become."""


def judge(message: Message, version: int, data: bytes) -> bool:
    """Whether it is a message; one that is can be encoded, and reads as itself."""
    cls = class_of(message)
    try:
        decoded = cls.decode(data, version)
    except ProtocolViolation:
        return False
    encoded = decoded.encode(version)
    assert cls.decode(encoded, version).encode(version) == encoded
    return True


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Some bytes changed, taken out, put in or made huge lengths."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(out))
        kind = rng.randrange(4)
        if kind == 0:
            out[at : at + 1] = bytes([rng.choice((0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF, rng.randrange(256)))])
        elif kind == 1:
            del out[at : at + rng.randint(1, 9)]
        elif kind == 2:
            out[at:at] = rng.randbytes(rng.randint(1, 5))
        else:
            huge = rng.choice(HUGE)
            out[at : at + len(huge)] = huge
    return bytes(out)


@pytest.mark.parametrize("message", all_messages(), ids=lambda m: m.name)
def test_a_message_that_is_cut_off_is_a_violation_wherever_it_is_cut(message: Message) -> None:
    for version in range(message.versions[0], message.versions[1] + 1):
        rng = random.Random(f"{message.name} {version}")
        data = Maker(message, version, rng).make().encode(version)
        lengths = range(len(data)) if len(data) < 200 else rng.sample(range(len(data)), 60)
        for length in lengths:
            with pytest.raises(ProtocolViolation):
                class_of(message).decode(data[:length], version)


@pytest.mark.parametrize("message", all_messages(), ids=lambda m: m.name)
def test_mutated_and_random_bytes_are_a_message_or_a_violation(message: Message) -> None:
    for version in range(message.versions[0], message.versions[1] + 1):
        rng = random.Random(f"garbage {message.name} {version}")
        for _ in range(ROUNDS):
            data = Maker(message, version, rng).make().encode(version)
            for _ in range(5):
                judge(message, version, mutate(rng, data))
            judge(message, version, rng.randbytes(rng.randrange(200)))


def test_memory_is_bounded_by_what_came_even_for_huge_lengths_and_counts() -> None:
    rng = random.Random(5)
    for message, version in cases():
        if version not in message.versions:
            continue
        data = Maker(message, version, rng).make().encode(version)
        inputs = [
            data[:at] + huge + bytes(2000) for huge in HUGE for at in rng.sample(range(len(data) + 1), min(8, len(data) + 1))
        ]
        judge(message, version, data)
        for garbage in inputs:
            tracemalloc.start()
            try:
                class_of(message).decode(garbage, version)
            except ProtocolViolation:
                pass
            finally:
                _, peak = tracemalloc.get_traced_memory()
                tracemalloc.stop()
            assert peak < ONCE + PER_BYTE * len(garbage), f"{message.name} version {version}: {peak} bytes for {len(garbage)}"


@pytest.mark.parametrize("message", all_messages(), ids=lambda m: m.name)
def test_the_smallest_structures_stay_within_the_bound_too(message: Message) -> None:
    version = message.versions[1]
    for field in message.fields:
        if not (field.is_array and field.is_struct and field.versions[0] <= version <= field.versions[1]):
            continue
        maker = Maker(message, version, random.Random(1))
        smallest = maker.struct_class(field.element)()
        value = class_of(message)(**{field.attribute: [smallest] * 2000})
        data = value.encode(version)
        del value
        tracemalloc.start()
        class_of(message).decode(data, version)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < ONCE + PER_BYTE * len(data), f"{field.name}: {peak} bytes for {len(data)}"
