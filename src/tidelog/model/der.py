"""A reader of DER (X.690), as far as certificates and keys need it: elements, object identifiers, nothing about their meaning."""

from __future__ import annotations

from typing import NamedTuple

SEQUENCE, SET, OBJECT_ID, OCTET_STRING, INTEGER, BOOLEAN = 0x30, 0x31, 0x06, 0x04, 0x02, 0x01


class DerError(ValueError):
    """Bytes that are not DER."""


class Element(NamedTuple):
    """One element. ``tag`` is the identifier byte with its class and constructed bits; tags of several bytes are refused."""

    tag: int
    content: bytes
    encoded: bytes
    """The whole element: identifier, length, content."""


def read(data: bytes, start: int = 0) -> tuple[Element, int]:
    """The element that begins at ``start``, and the position after it. DerError."""
    if start + 2 > len(data):
        raise DerError("an element is cut off")
    tag, length, at = data[start], data[start + 1], start + 2
    if tag & 0x1F == 0x1F:
        raise DerError(f"a tag of several bytes at {start}")
    if length & 0x80:
        size = length & 0x7F
        if not 1 <= size <= 4 or at + size > len(data):
            raise DerError(f"a length of {size} bytes at {start}")
        length = int.from_bytes(data[at : at + size])
        at += size
    if at + length > len(data):
        raise DerError(f"an element of {length} bytes where {len(data) - at} remain")
    return Element(tag, data[at : at + length], data[start : at + length]), at + length


def whole(data: bytes, tag: int) -> Element:
    """The only element of ``data``. DerError for another tag, or for bytes behind it."""
    found, end = read(data)
    if found.tag != tag or end != len(data):
        raise DerError(f"tag {found.tag:#x} and {len(data) - end} bytes behind it, where {tag:#x} alone is expected")
    return found


def children(element: Element) -> list[Element]:
    """The elements in a constructed one. DerError."""
    result, at = [], 0
    while at < len(element.content):
        found, at = read(element.content, at)
        result.append(found)
    return result


def object_id(element: Element) -> str:
    """An object identifier with dots. DerError."""
    if element.tag != OBJECT_ID or not element.content or element.content[-1] & 0x80:
        raise DerError("an object identifier is expected")
    parts, value = [], 0
    for byte in element.content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            parts.append(value)
            value = 0
    first = min(parts[0] // 40, 2)
    return ".".join(map(str, (first, parts[0] - 40 * first, *parts[1:])))
