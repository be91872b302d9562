"""Payloads with the id of a schema, as Confluent's serializers write them: before the value, or in a header of the record.

Before the value: a zero byte and four bytes of id. In the header: the same, or a one byte and the 16 bytes of a GUID; then the
payload is the value alone. In Protobuf the place of the message in its schema follows the id, where that is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol
from uuid import UUID

MAGIC: Final = 0
MAGIC_GUID: Final = 1
PREFIX: Final = 5
PREFIX_GUID: Final = 17
MAX_INDEXES: Final = 64
MAX_VARINT: Final = 5
"""Bytes of one index."""
HEADERS: Final[Mapping[str, str]] = {"key": "__key_schema_id", "value": "__value_schema_id"}
AVRO, PROTOBUF, JSON = "AVRO", "PROTOBUF", "JSON"


class Refused(ValueError):
    """A decoder does not fit; the text says why."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema of a registry. ``schema_id`` is None for one that was found by its GUID. ``text_of``: the JSON text of a value in
    it, behind the place of the message in Protobuf; it raises Refused."""

    schema_id: int | None
    kind: str
    text_of: Callable[[bytes], str]
    guid: str | None = None


class Schemas(Protocol):
    """Where schemas are looked up; it may take the time of a request."""

    def find(self, schema: int | str) -> Schema:
        """By id or GUID. Refused when there is none, or when it cannot be looked up."""
        ...


class Framed(NamedTuple):
    """A schema, and what it decodes."""

    schema: Schema
    body: bytes


def found(raw: bytes, schemas: Schemas, header: bytes | None = None) -> Framed:
    """The schema of a payload. ``header``: the value of its header of ``HEADERS``, if it has one. Refused."""
    if header is None:
        if len(raw) < PREFIX or raw[0] != MAGIC:
            raise Refused("it does not begin with a zero byte and the id of a schema")
        return Framed(schemas.find(int.from_bytes(raw[1:PREFIX], "big")), raw[PREFIX:])
    if header[:1] == b"\0" and len(header) >= PREFIX:
        schema, rest = schemas.find(int.from_bytes(header[1:PREFIX], "big")), header[PREFIX:]
    elif header[:1] == b"\x01" and len(header) >= PREFIX_GUID:
        schema, rest = schemas.find(str(UUID(bytes=header[1:PREFIX_GUID]))), header[PREFIX_GUID:]
    else:
        raise Refused("its header holds neither the id nor the GUID of a schema")
    behind = message_indexes(rest)[1] if schema.kind == PROTOBUF else 0
    if behind != len(rest):
        raise Refused(f"{len(rest) - behind} bytes follow the schema in its header")
    return Framed(schema, rest + raw)


def message_indexes(body: bytes) -> tuple[tuple[int, ...], int]:
    """The place of a message in its schema, the outermost first, and how many bytes say so. Refused."""
    count, position = _zigzag(body, 0)
    if not 0 <= count <= MAX_INDEXES:
        raise Refused(f"the place of its message has {count} steps: it is from 0 to {MAX_INDEXES}")
    indexes = []
    for _ in range(count):
        index, position = _zigzag(body, position)
        if index < 0:
            raise Refused(f"the place of its message has the step {index}")
        indexes.append(index)
    return tuple(indexes) or (0,), position


def _zigzag(body: Sequence[int], position: int) -> tuple[int, int]:
    value = 0
    for step in range(MAX_VARINT):
        if position >= len(body):
            raise Refused("it ends inside the place of its message")
        byte = body[position]
        position += 1
        value |= (byte & 0x7F) << 7 * step
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), position
    raise Refused(f"a step to its message has more than {MAX_VARINT} bytes")
