"""A second encoder, slow and plain, that walks the definitions: what the generated code must agree with."""

from __future__ import annotations

import struct
from typing import Any

from tidelog.protocol.schema import Field, Message

CODES = {"bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "float64": "d"}


def varint(value: int) -> bytes:
    out = b""
    while value >= 128:
        out += bytes([value % 128 + 128])
        value //= 128
    return out + bytes([value])


class ReferenceEncoder:
    """Encodes instances of one message at one version."""

    def __init__(self, message: Message, version: int) -> None:
        self.message, self.version = message, version
        self.flexible = message.flexible[0] <= version <= message.flexible[1]

    def has(self, versions: tuple[int, int]) -> bool:
        return versions[0] <= self.version <= versions[1]

    def encode(self, value: Any) -> bytes:
        return self.struct(value, self.message.fields)

    def struct(self, value: Any, fields: tuple[Field, ...]) -> bytes:
        out, tags = b"", {}
        for f in fields:
            if not self.has(f.versions):
                continue
            item = getattr(value, f.attribute)
            if not self.has(f.tagged):
                out += self.field(f, item, in_tag=False)
            elif item != getattr(type(value)(), f.attribute):
                tags[f.tag] = self.field(f, item, in_tag=True)
        if self.flexible:
            out += varint(len(tags))
            for tag in sorted(tags):
                out += varint(tag) + varint(len(tags[tag])) + tags[tag]
        return out

    def field(self, f: Field, value: Any, *, in_tag: bool) -> bytes:
        if not f.is_array:
            return self.one(f, value, in_tag=in_tag)
        count = -1 if value is None else len(value)
        out = varint(count + 1) if self.flexible else struct.pack(">i", count)
        return out + b"".join(self.one(f, item, in_tag=False) for item in value or ())

    def one(self, f: Field, value: Any, *, in_tag: bool) -> bytes:
        if f.is_struct:
            if not self.has(f.nullable) or f.is_array:
                return self.struct(value, self.message.structs[f.element])
            present = b"\x01" if value is not None else b"\x00" if in_tag else b"\xff"
            return present + (b"" if value is None else self.struct(value, self.message.structs[f.element]))
        if f.element in CODES:
            return struct.pack(">" + CODES[f.element], value)
        if f.element == "uuid":
            return bytes(value)
        data = value.encode() if isinstance(value, str) else value
        length = -1 if data is None else len(data)
        if self.flexible and not f.never_flexible:
            prefix = varint(length + 1)
        else:
            prefix = struct.pack(">h" if f.element == "string" else ">i", length)
        return prefix + bytes(data or b"")
