"""Payloads that begin with the id of a schema: a zero byte, four bytes of id, and the value (Confluent's serializers)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

MAGIC: Final = 0
PREFIX: Final = 5


class Refused(ValueError):
    """A decoder does not fit; the text says why."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema of a registry. ``text_of``: the JSON text of a value in it; it raises Refused."""

    schema_id: int
    kind: str
    text_of: Callable[[bytes], str]


class Schemas(Protocol):
    """Where schemas are looked up; it may take the time of a request."""

    def find(self, schema_id: int) -> Schema:
        """Refused when there is none, or when it cannot be looked up."""
        ...


def decoded(raw: bytes, schemas: Schemas) -> tuple[str, Schema]:
    """The JSON text, and the schema that says so. Refused."""
    if len(raw) < PREFIX or raw[0] != MAGIC:
        raise Refused("it does not begin with a zero byte and the id of a schema")
    schema = schemas.find(int.from_bytes(raw[1:PREFIX], "big"))
    return schema.text_of(raw[PREFIX:]), schema
