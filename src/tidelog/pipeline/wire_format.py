"""The header that Confluent's serializers write before a message: a zero byte, the schema's id, and for Protobuf the message's
index."""

from __future__ import annotations


class NotFramed(ValueError):
    """The bytes do not begin with the header of a registry's serializer."""


def split_header(data: bytes) -> tuple[int, memoryview]:
    """The schema's id and the rest. NotFramed says what is wrong."""
    if len(data) < 5:
        raise NotFramed(f"{len(data)} bytes are too few for the 5 of a registry's header")
    if data[0] != 0:
        raise NotFramed(f"it begins with byte {data[0]} and not with 0: it was not written through a schema registry")
    return int.from_bytes(data[1:5], "big"), memoryview(data)[5:]


def skip_message_index(data: memoryview) -> tuple[tuple[int, ...], memoryview]:
    """Skip Protobuf's path to the message in its file: a zigzag count and as many indexes; a single 0 stands for the first
    message."""
    count, at = _zigzag(data, 0)
    if not 0 <= count <= 64:
        raise NotFramed(f"{count} message indexes")
    if count == 0:
        return (0,), data[at:]
    indexes = []
    for _ in range(count):
        index, at = _zigzag(data, at)
        indexes.append(index)
    return tuple(indexes), data[at:]


def _zigzag(data: memoryview, at: int) -> tuple[int, int]:
    result = shift = 0
    while at < len(data) and shift < 35:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), at
        shift += 7
    raise NotFramed("the message index is cut off")
