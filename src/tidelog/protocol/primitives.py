"""Readers and writers of the wire's basic types, for generated messages; ``arrays`` has those of arrays.

Readers take ``(buf, pos)`` and return ``(value, new_pos)``; writers append to a ``bytearray``. Integers are big-endian. "Compact"
forms are those of flexible versions (KIP-482): a length is written plus one as an unsigned varint, 0 means null.

Invariants: a length or count is compared with the remaining bytes before anything is allocated for it; a count of elements is
bounded by their smallest size; in either form no text is longer than the plain form allows, as in Kafka, since text read in one
may be written in the other. A reader may raise one of ``BROKEN`` where the buffer ends or text is not UTF-8; ``Structure``
(``structure.py``) and the fast path turn those into ``ProtocolViolation``, the only error that a peer's bytes can cause. Compact
lengths and counts below 127 fit into one byte; frequently used readers and writers check that case first.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Protocol, TypeVar

from tidelog.model.errors import ProtocolViolation
from tidelog.model.ports import Buffer

T = TypeVar("T")
Read = Callable[[Buffer, int, int], tuple[T, int]]
"""(buf, pos, version) -> (structure, pos)."""

ZERO_UUID = b"\0" * 16
BROKEN = (IndexError, struct.error, UnicodeDecodeError)
"""What a reader may raise besides ProtocolViolation."""


class Writable(Protocol):
    """Appends itself to a buffer; every structure does."""

    def _write(self, out: bytearray, version: int) -> None: ...


_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_MAX_UVARINT = 0xFFFFFFFF
_MAX_STRING = 0x7FFF
"""In bytes."""
MAX_UNKNOWN_TAGS = 1000
"""In one tag section. Kafka's messages have a handful; a tag takes 0.2 us, so half a megabyte of empty ones took 52 ms."""


def _too_long(what: str, length: int, remaining: int) -> ProtocolViolation:
    return ProtocolViolation(f"{what} of length {length} where {remaining} bytes remain")


def read_uvarint(buf: Buffer, pos: int) -> tuple[int, int]:
    """Unsigned, at most 5 bytes and 32 bits."""
    byte = buf[pos]
    pos += 1
    if byte < 0x80:
        return byte, pos
    value = byte & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buf[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > _MAX_UVARINT:
                break
            return value, pos
    raise ProtocolViolation("a varint of more than 32 bits")


def write_uvarint(out: bytearray, value: int) -> None:
    """Unsigned, of 32 bits at most. ValueError below 0 or above."""
    if not 0 <= value <= _MAX_UVARINT:
        raise ValueError(f"{value} does not fit an unsigned varint of 32 bits")
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _span(buf: Buffer, pos: int, width: int, what: str) -> tuple[int, int]:
    """Start and end of a value after a plain length of 2 or 4 bytes; the end is -1 for null."""
    (length,) = (_INT16 if width == 2 else _INT32).unpack_from(buf, pos)
    pos += width
    if length < -1 or length > len(buf) - pos:
        raise _too_long(what, length, len(buf) - pos)
    return pos, pos + length if length >= 0 else -1


def _compact_span(buf: Buffer, pos: int, what: str) -> tuple[int, int]:
    """Start and end of a value after a compact length; the end is -1 for null."""
    length = buf[pos]
    if length < 0x80:
        pos += 1
    else:
        length, pos = read_uvarint(buf, pos)
    end = pos + length - 1
    if end > len(buf):
        raise _too_long(what, length - 1, len(buf) - pos)
    return pos, end if length else -1


def _compact_text(buf: Buffer, pos: int) -> tuple[int, int]:
    start, end = _compact_span(buf, pos, "string")
    if end - start > _MAX_STRING:
        raise ProtocolViolation(f"string of length {end - start}; {_MAX_STRING} bytes are the most there can be")
    return start, end


def not_null(what: str) -> ProtocolViolation:
    """The error for a null that the field does not allow."""
    return ProtocolViolation(f"null for a {what} that must not be null")


def read_nullable_string(buf: Buffer, pos: int) -> tuple[str | None, int]:
    start, end = _span(buf, pos, 2, "string")
    return (str(buf[start:end], "utf-8"), end) if end >= 0 else (None, start)


def read_string(buf: Buffer, pos: int) -> tuple[str, int]:
    start, end = _span(buf, pos, 2, "string")
    if end < 0:
        raise not_null("string")
    return str(buf[start:end], "utf-8"), end


def read_compact_nullable_string(buf: Buffer, pos: int) -> tuple[str | None, int]:
    start, end = _compact_text(buf, pos)
    return (str(buf[start:end], "utf-8"), end) if end >= 0 else (None, start)


def read_compact_string(buf: Buffer, pos: int) -> tuple[str, int]:
    length = buf[pos]
    if 0 < length < 0x80:
        end = pos + length
        if end > len(buf):
            raise _too_long("string", length - 1, len(buf) - pos - 1)
        return str(buf[pos + 1 : end], "utf-8"), end
    start, end = _compact_text(buf, pos)
    if end < 0:
        raise not_null("string")
    return str(buf[start:end], "utf-8"), end


def read_nullable_bytes(buf: Buffer, pos: int) -> tuple[bytes | None, int]:
    start, end = _span(buf, pos, 4, "bytes")
    return (bytes(buf[start:end]), end) if end >= 0 else (None, start)


def read_bytes(buf: Buffer, pos: int) -> tuple[bytes, int]:
    start, end = _span(buf, pos, 4, "bytes")
    if end < 0:
        raise not_null("bytes")
    return bytes(buf[start:end]), end


def read_compact_nullable_bytes(buf: Buffer, pos: int) -> tuple[bytes | None, int]:
    start, end = _compact_span(buf, pos, "bytes")
    return (bytes(buf[start:end]), end) if end >= 0 else (None, start)


def read_compact_bytes(buf: Buffer, pos: int) -> tuple[bytes, int]:
    start, end = _compact_span(buf, pos, "bytes")
    if end < 0:
        raise not_null("bytes")
    return bytes(buf[start:end]), end


def read_nullable_records(buf: Buffer, pos: int) -> tuple[memoryview | None, int]:
    """A view of the batches, without a copy."""
    start, end = _span(buf, pos, 4, "records")
    return (memoryview(buf)[start:end], end) if end >= 0 else (None, start)


def read_records(buf: Buffer, pos: int) -> tuple[memoryview, int]:
    start, end = _span(buf, pos, 4, "records")
    if end < 0:
        raise not_null("records")
    return memoryview(buf)[start:end], end


def read_compact_nullable_records(buf: Buffer, pos: int) -> tuple[memoryview | None, int]:
    start, end = _compact_span(buf, pos, "records")
    return (memoryview(buf)[start:end], end) if end >= 0 else (None, start)


def read_compact_records(buf: Buffer, pos: int) -> tuple[memoryview, int]:
    start, end = _compact_span(buf, pos, "records")
    if end < 0:
        raise not_null("records")
    return memoryview(buf)[start:end], end


def read_nullable_struct(buf: Buffer, pos: int, version: int, read: Read[T]) -> tuple[T | None, int]:
    """One byte before the structure: negative for null."""
    return (None, pos + 1) if buf[pos] > 0x7F else read(buf, pos + 1, version)


def read_tagged_nullable_struct(buf: Buffer, pos: int, version: int, read: Read[T]) -> tuple[T | None, int]:
    """For a tag's value: an unsigned varint before the structure, 0 for null."""
    present, pos = read_uvarint(buf, pos)
    return read(buf, pos, version) if present else (None, pos)


def read_tag(buf: Buffer, pos: int) -> tuple[int, int, int]:
    """(tag, start of its value, end of its value)."""
    tag, pos = read_uvarint(buf, pos)
    size, pos = read_uvarint(buf, pos)
    if size > len(buf) - pos:
        raise _too_long(f"tag {tag}", size, len(buf) - pos)
    return tag, pos, pos + size


def skip_tags(buf: Buffer, pos: int) -> int:
    """Skips a tag section without known tags. ProtocolViolation for one with more than ``MAX_UNKNOWN_TAGS``."""
    count, pos = read_uvarint(buf, pos)
    if count > MAX_UNKNOWN_TAGS:
        raise ProtocolViolation(f"{count} tags that this version does not have, allowed are {MAX_UNKNOWN_TAGS}")
    for _ in range(count):
        _, _, pos = read_tag(buf, pos)
    return pos


def tag_mismatch(tag: int) -> ProtocolViolation:
    """The value of a tag is longer or shorter than its size says."""
    return ProtocolViolation(f"the value of tag {tag} does not fill its size")


def write_string(out: bytearray, value: str) -> None:
    data = value.encode()
    out += _INT16.pack(len(data))
    out += data


def write_nullable_string(out: bytearray, value: str | None) -> None:
    if value is None:
        out += b"\xff\xff"
    else:
        write_string(out, value)


def write_compact_string(out: bytearray, value: str) -> None:
    data = value.encode()
    length = len(data) + 1
    if length < 0x80:
        out.append(length)
    else:
        if length > _MAX_STRING + 1:
            # It would be unreadable for a client, and in the metadata log for this node at its next start.
            raise ValueError(f"string of length {length - 1}; {_MAX_STRING} bytes are the most there can be")
        write_uvarint(out, length)
    out += data


def write_compact_nullable_string(out: bytearray, value: str | None) -> None:
    if value is None:
        out.append(0)
    else:
        write_compact_string(out, value)


def write_bytes(out: bytearray, value: Buffer) -> None:
    out += _INT32.pack(len(value))
    out += value


def write_nullable_bytes(out: bytearray, value: Buffer | None) -> None:
    if value is None:
        out += b"\xff\xff\xff\xff"
    else:
        write_bytes(out, value)


def write_compact_bytes(out: bytearray, value: Buffer) -> None:
    write_uvarint(out, len(value) + 1)
    out += value


def write_compact_nullable_bytes(out: bytearray, value: Buffer | None) -> None:
    if value is None:
        out.append(0)
    else:
        write_compact_bytes(out, value)


def write_nullable_struct(out: bytearray, version: int, value: Writable | None) -> None:
    if value is None:
        out.append(0xFF)
    else:
        out.append(1)
        value._write(out, version)


def write_tagged_nullable_struct(out: bytearray, version: int, value: Writable | None) -> None:
    if value is None:
        out.append(0)
    else:
        out.append(1)
        value._write(out, version)


def write_tag(out: bytearray, tag: int, value: bytearray) -> None:
    write_uvarint(out, tag)
    write_uvarint(out, len(value))
    out += value


def checked_uuid(value: bytes) -> bytes:
    """The value. ValueError unless it has 16 bytes."""
    if len(value) != 16:
        raise ValueError(f"{value!r} is not a uuid of 16 bytes")
    return value


def required(value: T | None, name: str, version: int) -> T:
    """The value, which must not be null in this version. ValueError when it is."""
    if value is None:
        raise ValueError(f"{name} is null, which version {version} cannot carry")
    return value


def unsupported(name: str, version: int) -> ValueError:
    """A field is set that the version does not have."""
    return ValueError(f"{name} is set, but version {version} has no such field and it must not be dropped")
