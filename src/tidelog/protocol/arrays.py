"""Readers and writers of arrays, for generated messages.

The conventions and invariants are those of ``primitives``. A flexible version writes the count in the compact form. Each kind of
element has its own functions, because they run for every element of every message.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TypeVar

from tidelog.model.errors import ProtocolViolation
from tidelog.model.ports import Buffer
from tidelog.protocol.primitives import (
    Read,
    Writable,
    checked_uuid,
    not_null,
    read_compact_string,
    read_string,
    read_uvarint,
    write_compact_string,
    write_string,
    write_uvarint,
)

T = TypeVar("T")
B = TypeVar("B", bound=Buffer)
_INT32 = struct.Struct(">i")
_KEPT_COUNTS = 16
_layouts: dict[tuple[int, str], struct.Struct] = {}
"""Layouts of short arrays: bounded by ``_KEPT_COUNTS`` times the number of types."""
_left: dict[int, int] = {}
"""The elements that may still be read from a buffer, by its identity; only of buffers that ``read_at_most`` reads just now."""


def read_at_most(elements: int, read: Callable[[B, int, int], T], buf: B, pos: int, version: int) -> T:
    """``read(buf, pos, version)``; ProtocolViolation as soon as all arrays together, nested ones too, have more ``elements``."""
    _left[id(buf)] = elements
    try:
        return read(buf, pos, version)
    finally:
        del _left[id(buf)]


def _spend(buf: Buffer, count: int) -> None:
    left = _left.get(id(buf))
    if left is None:
        return
    if count > left:
        raise ProtocolViolation(f"a message with an array of {count} elements where {left} more are allowed in all its arrays")
    _left[id(buf)] = left - max(count, 0)


def read_count(buf: Buffer, pos: int, smallest: int, flexible: bool) -> tuple[int, int]:
    """The number of elements of an array, -1 for null; refused unless that many of the smallest size can follow."""
    if flexible:
        count = buf[pos]
        if count < 0x80:
            pos += 1
        else:
            count, pos = read_uvarint(buf, pos)
        count -= 1
    else:
        (count,) = _INT32.unpack_from(buf, pos)
        pos += 4
    if count < -1 or count * smallest > len(buf) - pos:
        raise ProtocolViolation(f"an array of {count} elements where {len(buf) - pos} bytes remain")
    if _left:
        _spend(buf, count)
    return count, pos


def read_nullable_structs(
    buf: Buffer, pos: int, version: int, read: Read[T], smallest: int, flexible: bool
) -> tuple[list[T] | None, int]:
    count, pos = read_count(buf, pos, smallest, flexible)
    if count < 0:
        return None, pos
    items = []
    for _ in range(count):
        item, pos = read(buf, pos, version)
        items.append(item)
    return items, pos


def read_structs(buf: Buffer, pos: int, version: int, read: Read[T], smallest: int, flexible: bool) -> tuple[list[T], int]:
    count, pos = read_count(buf, pos, smallest, flexible)
    if count < 0:
        raise not_null("array")
    items = []
    for _ in range(count):
        item, pos = read(buf, pos, version)
        items.append(item)
    return items, pos


def read_nullable_strings(buf: Buffer, pos: int, flexible: bool) -> tuple[list[str] | None, int]:
    count, pos = read_count(buf, pos, 1 if flexible else 2, flexible)
    if count < 0:
        return None, pos
    read = read_compact_string if flexible else read_string
    items = []
    for _ in range(count):
        item, pos = read(buf, pos)
        items.append(item)
    return items, pos


def read_strings(buf: Buffer, pos: int, flexible: bool) -> tuple[list[str], int]:
    items, pos = read_nullable_strings(buf, pos, flexible)
    if items is None:
        raise not_null("array")
    return items, pos


def _numbers(count: int, code: str) -> struct.Struct:
    """The layout of ``count`` numbers; cached for short arrays."""
    if count > _KEPT_COUNTS:
        return struct.Struct(f">{count}{code}")
    layout = _layouts.get((count, code))
    if layout is None:
        layout = _layouts[count, code] = struct.Struct(f">{count}{code}")
    return layout


def read_nullable_numbers(buf: Buffer, pos: int, code: str, width: int, flexible: bool) -> tuple[list[int] | None, int]:
    """``code`` is the element's letter in ``struct``, ``width`` its bytes."""
    count, pos = read_count(buf, pos, width, flexible)
    if count < 0:
        return None, pos
    return list(_numbers(count, code).unpack_from(buf, pos)), pos + count * width


def read_numbers(buf: Buffer, pos: int, code: str, width: int, flexible: bool) -> tuple[list[int], int]:
    count, pos = read_count(buf, pos, width, flexible)
    if count < 0:
        raise not_null("array")
    return list(_numbers(count, code).unpack_from(buf, pos)), pos + count * width


def read_nullable_uuids(buf: Buffer, pos: int, flexible: bool) -> tuple[list[bytes] | None, int]:
    count, pos = read_count(buf, pos, 16, flexible)
    if count < 0:
        return None, pos
    return [bytes(buf[at : at + 16]) for at in range(pos, pos + count * 16, 16)], pos + count * 16


def read_uuids(buf: Buffer, pos: int, flexible: bool) -> tuple[list[bytes], int]:
    items, pos = read_nullable_uuids(buf, pos, flexible)
    if items is None:
        raise not_null("array")
    return items, pos


def write_count(out: bytearray, count: int, flexible: bool) -> None:
    """-1 for null."""
    if not flexible:
        out += _INT32.pack(count)
    elif count < 0x7F:
        out.append(count + 1)
    else:
        write_uvarint(out, count + 1)


def write_structs(out: bytearray, version: int, items: Sequence[Writable] | None, flexible: bool) -> None:
    if items is None:
        write_count(out, -1, flexible)
        return
    write_count(out, len(items), flexible)
    for item in items:
        item._write(out, version)


def write_strings(out: bytearray, items: list[str] | None, flexible: bool) -> None:
    if items is None:
        write_count(out, -1, flexible)
        return
    write_count(out, len(items), flexible)
    write = write_compact_string if flexible else write_string
    for item in items:
        write(out, item)


def write_numbers(out: bytearray, items: list[int] | None, code: str, flexible: bool) -> None:
    if items is None:
        write_count(out, -1, flexible)
        return
    count = len(items)
    write_count(out, count, flexible)
    out += _numbers(count, code).pack(*items)


def write_uuids(out: bytearray, items: list[bytes] | None, flexible: bool) -> None:
    write_count(out, -1 if items is None else len(items), flexible)
    for item in items or ():
        out += checked_uuid(item)
