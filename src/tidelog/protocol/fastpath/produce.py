"""Produce: requests are read in place; responses are written directly into their frame."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeAlias

from tidelog.model.errors import ProtocolViolation
from tidelog.model.ids import ZERO_UUID, Uuid
from tidelog.model.ports import Buffer
from tidelog.protocol.arrays import read_count, write_count
from tidelog.protocol.fastpath.topics import NodeEndpoint, read_topic, write_node_endpoints, write_topic
from tidelog.protocol.framing import response_prefix
from tidelog.protocol.messages.produce import ProduceRequest
from tidelog.protocol.primitives import (
    BROKEN,
    read_compact_nullable_string,
    read_nullable_records,
    read_nullable_string,
    read_uvarint,
    skip_tags,
    write_compact_nullable_string,
    write_nullable_string,
)
from tidelog.protocol.structure import Structure, broken

ProducePartition: TypeAlias = tuple[int, memoryview | None]
"""(partition, records)."""
ProduceTopic: TypeAlias = tuple[str | None, Uuid, list[ProducePartition]]
"""(name or None, topic id, partitions): versions up to 12 use the name, later ones the id."""

_HI = struct.Struct(">hi")
_I = struct.Struct(">i")
_II = struct.Struct(">ii")
_IHQQ = struct.Struct(">ihqq")
_IHQQQ = struct.Struct(">ihqqq")
_ONE_BY_ID = struct.Struct(">bhiB16sBi")
"""Version 13 up to the length of the records: transactional id, acks, timeout, topics, topic id, partitions, index."""
_NAMED = struct.Struct(">bhiBB")
"""Versions 9 to 12 up to the topic's name: transactional id, acks, timeout, topics, length of the name."""
_BI = struct.Struct(">Bi")


class ProduceView(Structure):
    """A Produce request; the batches stay in the frame."""

    __slots__ = ("acks", "timeout_ms", "topics", "transactional_id")

    def __init__(self, transactional_id: str | None, acks: int, timeout_ms: int, topics: list[ProduceTopic]) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topics = topics

    @classmethod
    def from_message(cls, request: ProduceRequest, version: int) -> ProduceView:
        """Converts a request of the generated class."""
        topics: list[ProduceTopic] = [
            (
                topic.name if version <= 12 else None,
                Uuid(topic.topic_id),
                [(p.index, None if p.records is None else memoryview(p.records)) for p in topic.partition_data],
            )
            for topic in request.topic_data
        ]
        return cls(request.transactional_id, request.acks, request.timeout_ms, topics)


def read_produce(buf: Buffer, pos: int, version: int) -> ProduceView:
    """Reads a Produce request (version 3 to 13) from ``buf`` at ``pos``. ProtocolViolation when it is malformed."""
    if version >= 13 and (view := _read_one_by_id(buf, pos)) is not None:
        return view
    try:
        flexible = version >= 9
        if 9 <= version < 13 and (view := _read_one_by_name(buf, pos)) is not None:
            return view
        transactional_id, pos = (read_compact_nullable_string if flexible else read_nullable_string)(buf, pos)
        acks, timeout_ms = _HI.unpack_from(buf, pos)
        count, pos = read_count(buf, pos + 6, 3 if flexible else 6, flexible)
        if count < 0:
            raise ProtocolViolation("a Produce request with null for its topics")
        topics: list[ProduceTopic] = []
        for _ in range(count):
            topic, pos = _read_produce_topic(buf, pos, version)
            topics.append(topic)
        if flexible:
            skip_tags(buf, pos)
    except BROKEN as error:
        raise broken("ProduceRequest", version, buf, error) from None
    return ProduceView(transactional_id, acks, timeout_ms, topics)


def _read_one_by_id(buf: Buffer, pos: int) -> ProduceView | None:
    """The common case: one partition by topic id, no transaction, no tags. None for all other requests, including malformed
    ones."""
    length = len(buf)
    if length - pos < _ONE_BY_ID.size + 5:
        return None
    null_id, acks, timeout_ms, topics, topic_id, partitions, index = _ONE_BY_ID.unpack_from(buf, pos)
    if null_id or topics != 2 or partitions != 2:
        return None
    size, pos = read_uvarint(buf, pos + _ONE_BY_ID.size)
    end = pos + size - 1
    if not size or end + 3 != length or buf[end] or buf[end + 1] or buf[end + 2]:
        return None
    return ProduceView(None, acks, timeout_ms, [(None, topic_id, [(index, memoryview(buf)[pos:end])])])


def _read_one_by_name(buf: Buffer, pos: int) -> ProduceView | None:
    """As ``_read_one_by_id``, for one partition by its topic's name."""
    length = len(buf)
    if length - pos < _NAMED.size:
        return None
    null_id, acks, timeout_ms, topics, name_size = _NAMED.unpack_from(buf, pos)
    start = pos + _NAMED.size
    pos = start + name_size - 1
    if null_id or topics != 2 or not 0 < name_size < 0x80 or length - pos < _BI.size + 5:
        return None
    partitions, index = _BI.unpack_from(buf, pos)
    if partitions != 2:
        return None
    size, records = read_uvarint(buf, pos + _BI.size)
    end = records + size - 1
    if not size or end + 3 != length or buf[end] or buf[end + 1] or buf[end + 2]:
        return None
    name = str(buf[start:pos], "utf-8")
    return ProduceView(None, acks, timeout_ms, [(name, ZERO_UUID, [(index, memoryview(buf)[records:end])])])


def _read_produce_topic(buf: Buffer, pos: int, version: int) -> tuple[ProduceTopic, int]:
    flexible = version >= 9
    name, topic_id, pos = read_topic(buf, pos, version, flexible)
    count, pos = read_count(buf, pos, 6 if flexible else 8, flexible)
    if count < 0:
        raise ProtocolViolation("a Produce request with null for a topic's partitions")
    partitions: list[ProducePartition] = []
    if flexible:
        pos = _read_flexible_partitions(buf, pos, count, partitions)
        pos = skip_tags(buf, pos) if buf[pos] else pos + 1
        return (name, topic_id, partitions), pos
    for _ in range(count):
        (index,) = _I.unpack_from(buf, pos)
        records, pos = read_nullable_records(buf, pos + 4)
        partitions.append((index, records))
    return (name, topic_id, partitions), pos


def _read_flexible_partitions(buf: Buffer, pos: int, count: int, partitions: list[ProducePartition]) -> int:
    """The innermost loop of a Produce request: one slice per partition, and no call except for the length."""
    view = memoryview(buf)
    unpack = _I.unpack_from
    for _ in range(count):
        (index,) = unpack(buf, pos)
        size, pos = read_uvarint(buf, pos + 4)
        if size:
            end = pos + size - 1
            if end > len(buf):
                raise ProtocolViolation(f"records of {size - 1} bytes where {len(buf) - pos} remain")
            partitions.append((index, view[pos:end]))
            pos = end
        else:
            partitions.append((index, None))
        pos = skip_tags(buf, pos) if buf[pos] else pos + 1
    return pos


class ProduceResult(Structure):
    """One partition of a response. ``record_errors`` are (index in the batch, message), ``current_leader`` is (id, epoch)."""

    __slots__ = (
        "base_offset",
        "current_leader",
        "error_code",
        "error_message",
        "index",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
    )

    def __init__(
        self,
        index: int,
        error_code: int = 0,
        base_offset: int = -1,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        record_errors: Sequence[tuple[int, str | None]] = (),
        error_message: str | None = None,
        current_leader: tuple[int, int] | None = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors = record_errors
        self.error_message = error_message
        self.current_leader = current_leader


ProduceTopicResult: TypeAlias = tuple[str | None, Uuid, Sequence[ProduceResult]]
"""(name or None, topic id, partitions), as in the request."""


def encode_produce_response(
    correlation_id: int,
    version: int,
    topics: Sequence[ProduceTopicResult],
    *,
    throttle_time_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> bytearray:
    """A whole frame. ``current_leader`` and ``node_endpoints`` are sent from version 10 on, and dropped before."""
    flexible = version >= 9
    out = bytearray(response_prefix(correlation_id, flexible, 0))
    write_count(out, len(topics), flexible)
    for name, topic_id, results in topics:
        write_topic(out, version, name, topic_id, flexible)
        write_count(out, len(results), flexible)
        for result in results:
            _write_produce_result(out, version, result)
        if flexible:
            out.append(0)
    out += _I.pack(throttle_time_ms)
    if flexible:
        write_node_endpoints(out, node_endpoints if version >= 10 else ())
    _I.pack_into(out, 0, len(out) - 4)
    return out


def _write_produce_result(out: bytearray, version: int, result: ProduceResult) -> None:
    if version >= 5:
        out += _IHQQQ.pack(
            result.index, result.error_code, result.base_offset, result.log_append_time_ms, result.log_start_offset
        )
    else:
        out += _IHQQ.pack(result.index, result.error_code, result.base_offset, result.log_append_time_ms)
    if version < 8:
        return
    flexible = version >= 9
    if flexible and not result.record_errors and result.error_message is None and result.current_leader is None:
        out += b"\x01\x00\x00"
        return
    write_text = write_compact_nullable_string if flexible else write_nullable_string
    write_count(out, len(result.record_errors), flexible)
    for index, message in result.record_errors:
        out += _I.pack(index)
        write_text(out, message)
        if flexible:
            out.append(0)
    write_text(out, result.error_message)
    if not flexible:
        return
    leader = result.current_leader
    if leader is None or leader == (-1, -1) or version < 10:
        out.append(0)
    else:
        out += b"\x01\x00\x09"
        out += _II.pack(*leader)
        out.append(0)
