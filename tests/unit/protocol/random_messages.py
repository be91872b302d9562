"""Random values for any message at any version, straight from the definitions: what codec tests feed to both sides."""

from __future__ import annotations

import importlib
import random
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import tidelog.protocol
from tidelog.protocol.primitives import ZERO_UUID
from tidelog.protocol.schema import Field, Message, Versions, parse

DEFINITIONS = Path(tidelog.protocol.__file__).parent / "definitions"
RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
TEXTS = ("", "a", "topic-0", "größe", "x" * 127, "y" * 128, "z" * 300, "\U0001f30a")


@cache
def all_messages() -> tuple[Message, ...]:
    """Every message of every definitions file."""
    return tuple(m for path in sorted(DEFINITIONS.glob("*.txt")) for m in parse(path.read_text()))


@cache
def message_named(name: str) -> Message:
    """One message."""
    return next(m for m in all_messages() if m.name == name)


def class_of(message: Message) -> Any:
    """The generated class."""
    return getattr(importlib.import_module(f"tidelog.protocol.messages.{message.module}"), message.name)


def cases() -> Iterator[tuple[Message, int]]:
    """Every message with every one of its versions."""
    for message in all_messages():
        for version in range(message.versions[0], message.versions[1] + 1):
            yield message, version


class Maker:
    """Makes random instances of one message at one version; ``tame`` keeps to values with a meaning (error codes, durations)."""

    def __init__(self, message: Message, version: int, rng: random.Random, *, tame: bool = False) -> None:
        self.message, self.version, self.rng, self.tame = message, version, rng, tame
        self.module = importlib.import_module(f"tidelog.protocol.messages.{message.module}")

    def make(self) -> Any:
        """An instance."""
        return self._struct(self.message.name, self.message.fields, 0)

    def struct_class(self, name: str) -> Any:
        """The class of a structure, prefixed where request and response both have the name."""
        prefixed = f"{self.message.kind.capitalize()}{name}"
        return getattr(self.module, prefixed, None) or getattr(self.module, name)

    def _within(self, versions: Versions) -> bool:
        return versions[0] <= self.version <= versions[1]

    def _struct(self, name: str, fields: tuple[Field, ...], depth: int) -> Any:
        values = {f.attribute: self._value(f, depth) for f in fields if self._within(f.versions)}
        if self._within(self.message.flexible):
            for f in fields:
                if self._within(f.tagged) and self.rng.random() < 0.4:
                    values.pop(f.attribute, None)
        cls = self.module.__dict__[name] if depth == 0 else self.struct_class(name)
        return cls(**values)

    def _value(self, f: Field, depth: int) -> Any:
        if self._within(f.nullable) and self.rng.random() < 0.25:
            return None
        if not f.is_array:
            return self._one(f, depth)
        most = 3 if depth < 2 else 2
        return [self._one(f, depth) for _ in range(self.rng.randint(0, most))]

    def _one(self, f: Field, depth: int) -> Any:
        rng = self.rng
        if f.is_struct:
            return self._struct(f.element, self.message.structs[f.element], depth + 1)
        if f.element in RANGES:
            return self._number(f)
        if f.element == "string":
            return rng.choice(TEXTS)
        if f.element in ("bytes", "records"):
            return rng.randbytes(rng.choice((0, 1, 5, 126, 127, 128, 300)))
        if f.element == "uuid":
            return rng.choice((ZERO_UUID, uuid.UUID(int=rng.getrandbits(128)).bytes))
        return rng.random() if f.element == "float64" else rng.random() < 0.5

    def _number(self, f: Field) -> int:
        low, high = RANGES[f.element]
        if self.tame and f.name.endswith("ErrorCode"):
            return self.rng.randint(-1, 133)
        if self.tame and (f.name.endswith("Ms") or "Time" in f.name):
            return self.rng.choice((0, 1, 1000, 86_400_000))
        return self.rng.choice((0, 1, -1 if low else 0, low, high, self.rng.randint(low, high)))
