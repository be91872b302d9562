"""Shared by Produce and Fetch: topic names and ids, and the node endpoints in their responses."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeAlias

from tidelog.model.ids import ZERO_UUID, Uuid
from tidelog.model.ports import Buffer
from tidelog.protocol.primitives import (
    read_compact_string,
    read_string,
    write_compact_nullable_string,
    write_compact_string,
    write_string,
    write_uvarint,
)

NodeEndpoint: TypeAlias = tuple[int, str, int, str | None]
"""(node id, host, port, rack)."""

_I = struct.Struct(">i")


def read_topic(buf: Buffer, pos: int, version: int, flexible: bool) -> tuple[str | None, Uuid, int]:
    """(name, topic id, pos), in Produce and Fetch."""
    if version >= 13:
        topic_id = Uuid(bytes(buf[pos : pos + 16]))
        if len(topic_id) < 16:
            raise IndexError
        return None, topic_id, pos + 16
    name, pos = read_compact_string(buf, pos) if flexible else read_string(buf, pos)
    return name, ZERO_UUID, pos


def write_topic(out: bytearray, version: int, name: str | None, topic_id: Uuid, flexible: bool) -> None:
    if version >= 13:
        assert len(topic_id) == 16, "a topic id has 16 bytes"
        out += topic_id
        return
    assert name is not None, "versions before 13 name the topic"
    (write_compact_string if flexible else write_string)(out, name)


def write_node_endpoints(out: bytearray, endpoints: Sequence[NodeEndpoint]) -> None:
    """The tag section at the end of the response: node endpoints are its tag 0."""
    if not endpoints:
        out.append(0)
        return
    value = bytearray()
    write_uvarint(value, len(endpoints) + 1)
    for node_id, host, port, rack in endpoints:
        value += _I.pack(node_id)
        write_compact_string(value, host)
        value += _I.pack(port)
        write_compact_nullable_string(value, rack)
        value.append(0)
    out += b"\x01\x00"
    write_uvarint(out, len(value))
    out += value
