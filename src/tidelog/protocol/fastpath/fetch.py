"""Fetch: requests are read in place; responses are bytes interleaved with file slices.

The KRaft fields of a partition in a request (ReplicaDirectoryId, HighWatermark) are checked and dropped: the quorum's listener
reads Fetch with the generated class.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeAlias

from tidelog.model.errors import ProtocolViolation
from tidelog.model.ids import Uuid
from tidelog.model.ports import Buffer, FileSlice
from tidelog.protocol.arrays import read_count, read_numbers, write_count
from tidelog.protocol.fastpath.topics import NodeEndpoint, read_topic, write_node_endpoints, write_topic
from tidelog.protocol.framing import response_prefix
from tidelog.protocol.messages.fetch import FetchRequest
from tidelog.protocol.primitives import (
    BROKEN,
    read_compact_nullable_string,
    read_compact_string,
    read_string,
    read_tag,
    read_uvarint,
    skip_tags,
    tag_mismatch,
)
from tidelog.protocol.structure import Structure, broken

FetchPartition: TypeAlias = tuple[int, int, int, int, int, int]
"""(partition, current_leader_epoch, fetch_offset, last_fetched_epoch, log_start_offset, partition_max_bytes)."""
FetchTopic: TypeAlias = tuple[str | None, Uuid, list[FetchPartition]]
"""(name or None, topic id, partitions): versions up to 12 use the name, later ones the id."""
ForgottenTopic: TypeAlias = tuple[str | None, Uuid, list[int]]
"""(name or None, topic id, partitions)."""
Part: TypeAlias = Buffer | FileSlice
"""A piece of a response to be sent."""

INLINE_RECORDS = 4096
"""Records in memory up to this many bytes are copied into the surrounding bytes: cheaper than sending one more piece."""

_IHI = struct.Struct(">ihi")
_RESULT_V12 = struct.Struct(">ihqqqBi")
_I = struct.Struct(">i")
_Q = struct.Struct(">q")
_II = struct.Struct(">ii")
_IQ = struct.Struct(">iq")
_QQ = struct.Struct(">qq")
_QI = struct.Struct(">qi")
_IHQQ = struct.Struct(">ihqq")
_FETCH_V4 = struct.Struct(">iiib")
_FETCH_V7 = struct.Struct(">iiibii")
_PARTITION_V4 = struct.Struct(">iqi")
_PARTITION_V5 = struct.Struct(">iqqi")
_PARTITION_V9 = struct.Struct(">iiqqi")
_PARTITION_V12 = struct.Struct(">iiqiqi")


class FetchView(Structure):
    """A Fetch request of a consumer or a follower. ``replica_id`` is -1 for a consumer."""

    __slots__ = (
        "cluster_id",
        "forgotten",
        "isolation_level",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "rack_id",
        "replica_epoch",
        "replica_id",
        "session_epoch",
        "session_id",
        "topics",
    )

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.replica_id = -1
        self.replica_epoch = -1
        self.max_wait_ms = 0
        self.min_bytes = 0
        self.max_bytes = 0x7FFFFFFF
        self.isolation_level = 0
        self.session_id = 0
        self.session_epoch = -1
        self.topics: list[FetchTopic] = []
        self.forgotten: list[ForgottenTopic] = []
        self.rack_id = ""

    @classmethod
    def from_message(cls, request: FetchRequest, version: int) -> FetchView:
        """Converts a request of the generated class."""
        view = cls()
        view.cluster_id = request.cluster_id
        view.replica_id = request.replica_id if version < 15 else request.replica_state.replica_id
        view.replica_epoch = request.replica_state.replica_epoch
        view.max_wait_ms, view.min_bytes, view.max_bytes = request.max_wait_ms, request.min_bytes, request.max_bytes
        view.isolation_level = request.isolation_level
        view.session_id, view.session_epoch = request.session_id, request.session_epoch
        for topic in request.topics:
            partitions = [
                (
                    p.partition,
                    p.current_leader_epoch,
                    p.fetch_offset,
                    p.last_fetched_epoch,
                    p.log_start_offset,
                    p.partition_max_bytes,
                )
                for p in topic.partitions
            ]
            view.topics.append((topic.topic if version <= 12 else None, Uuid(topic.topic_id), partitions))
        for forgotten in request.forgotten_topics_data:
            view.forgotten.append((forgotten.topic if version <= 12 else None, Uuid(forgotten.topic_id), forgotten.partitions))
        view.rack_id = request.rack_id
        return view


def read_fetch(buf: Buffer, pos: int, version: int) -> FetchView:
    """Reads a Fetch request (version 4 to 18) from ``buf`` at ``pos``. ProtocolViolation when it is malformed."""
    try:
        view, _ = _read_fetch(buf, pos, version)
    except BROKEN as error:
        raise broken("FetchRequest", version, buf, error) from None
    return view


def _read_fetch(buf: Buffer, pos: int, version: int) -> tuple[FetchView, int]:
    flexible = version >= 12
    view = FetchView()
    if version < 15:
        (view.replica_id,) = _I.unpack_from(buf, pos)
        pos += 4
    if version >= 7:
        (
            view.max_wait_ms,
            view.min_bytes,
            view.max_bytes,
            view.isolation_level,
            view.session_id,
            view.session_epoch,
        ) = _FETCH_V7.unpack_from(buf, pos)
        pos += 21
    else:
        view.max_wait_ms, view.min_bytes, view.max_bytes, view.isolation_level = _FETCH_V4.unpack_from(buf, pos)
        pos += 13
    if flexible and buf[pos] == 1:  # nothing, in one byte: each of the three mostly is, and is read without a call
        pos += 1
    else:
        count, pos = read_count(buf, pos, 3 if flexible else 6, flexible)
        if count < 0:
            raise ProtocolViolation("a Fetch request with null for its topics")
        for _ in range(count):
            topic, pos = _read_fetch_topic(buf, pos, version)
            view.topics.append(topic)
    if flexible and buf[pos] == 1:
        pos += 1
    elif version >= 7:
        pos = _read_forgotten(buf, pos, version, view)
    if flexible and buf[pos] == 1:
        pos += 1
    elif version >= 11:
        view.rack_id, pos = read_compact_string(buf, pos) if flexible else read_string(buf, pos)
    if flexible:
        pos = _read_fetch_tags(buf, pos, version, view) if buf[pos] else pos + 1
    return view, pos


def _read_fetch_topic(buf: Buffer, pos: int, version: int) -> tuple[FetchTopic, int]:
    flexible = version >= 12
    name, topic_id, pos = read_topic(buf, pos, version, flexible)
    if not flexible:
        partitions, pos = _read_old_fetch_partitions(buf, pos, version)
        return (name, topic_id, partitions), pos
    count, pos = read_count(buf, pos, 33, True)
    if count < 0:
        raise ProtocolViolation("a Fetch request with null for a topic's partitions")
    unpack = _PARTITION_V12.unpack_from
    partitions = []
    for _ in range(count):
        partitions.append(unpack(buf, pos))
        pos += 32
        pos = _skip_partition_tags(buf, pos, version) if buf[pos] else pos + 1
    pos = skip_tags(buf, pos) if buf[pos] else pos + 1
    return (name, topic_id, partitions), pos


def _read_old_fetch_partitions(buf: Buffer, pos: int, version: int) -> tuple[list[FetchPartition], int]:
    """For the versions before the flexible ones."""
    layout = _PARTITION_V9 if version >= 9 else _PARTITION_V5 if version >= 5 else _PARTITION_V4
    count, pos = read_count(buf, pos, layout.size, False)
    if count < 0:
        raise ProtocolViolation("a Fetch request with null for a topic's partitions")
    partitions: list[FetchPartition] = []
    for _ in range(count):
        values = layout.unpack_from(buf, pos)
        pos += layout.size
        if version >= 9:
            index, epoch, offset, log_start, most = values
        elif version >= 5:
            index, offset, log_start, most = values
            epoch = -1
        else:
            index, offset, most = values
            epoch = log_start = -1
        partitions.append((index, epoch, offset, -1, log_start, most))
    return partitions, pos


def _skip_partition_tags(buf: Buffer, pos: int, version: int) -> int:
    """Skips the tags of a partition; the KRaft tags among them must have their fixed sizes."""
    count, pos = read_uvarint(buf, pos)
    for _ in range(count):
        tag, pos, end = read_tag(buf, pos)
        expected = 16 if tag == 0 and version >= 17 else 8 if tag == 1 and version >= 18 else end - pos
        if end - pos != expected:
            raise tag_mismatch(tag)
        pos = end
    return pos


def _read_forgotten(buf: Buffer, pos: int, version: int, view: FetchView) -> int:
    flexible = version >= 12
    count, pos = read_count(buf, pos, 3 if flexible else 6, flexible)
    if count < 0:
        raise ProtocolViolation("a Fetch request with null for its forgotten topics")
    for _ in range(count):
        name, topic_id, pos = read_topic(buf, pos, version, flexible)
        partitions, pos = read_numbers(buf, pos, "i", 4, flexible)
        if flexible:
            pos = skip_tags(buf, pos) if buf[pos] else pos + 1
        view.forgotten.append((name, topic_id, partitions))
    return pos


def _read_fetch_tags(buf: Buffer, pos: int, version: int, view: FetchView) -> int:
    count, pos = read_uvarint(buf, pos)
    for _ in range(count):
        tag, pos, end = read_tag(buf, pos)
        if tag == 0:
            view.cluster_id, pos = read_compact_nullable_string(buf, pos)
        elif tag == 1 and version >= 15:
            view.replica_id, view.replica_epoch = _IQ.unpack_from(buf, pos)
            pos = skip_tags(buf, pos + 12)
        else:
            pos = end
        if pos != end:
            raise tag_mismatch(tag)
    return pos


class FetchResult(Structure):
    """One partition of a Fetch response.

    ``aborted_transactions`` are (producer id, first offset), None for read_uncommitted. ``diverging_epoch`` is (epoch, end
    offset), ``current_leader`` (id, epoch), ``snapshot_id`` (end offset, epoch); versions before 12 drop these three.
    """

    __slots__ = (
        "aborted_transactions",
        "current_leader",
        "diverging_epoch",
        "error_code",
        "high_watermark",
        "index",
        "last_stable_offset",
        "log_start_offset",
        "preferred_read_replica",
        "records",
        "snapshot_id",
    )

    def __init__(
        self,
        index: int,
        error_code: int = 0,
        high_watermark: int = -1,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        records: Part | None = b"",
        aborted_transactions: Sequence[tuple[int, int]] | None = None,
        preferred_read_replica: int = -1,
        diverging_epoch: tuple[int, int] | None = None,
        current_leader: tuple[int, int] | None = None,
        snapshot_id: tuple[int, int] | None = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.records = records
        self.aborted_transactions = aborted_transactions
        self.preferred_read_replica = preferred_read_replica
        self.diverging_epoch = diverging_epoch
        self.current_leader = current_leader
        self.snapshot_id = snapshot_id


FetchTopicResult: TypeAlias = tuple[str | None, Uuid, Sequence[FetchResult]]
"""(name or None, topic id, partitions), as in the request."""


def encode_fetch_response(
    correlation_id: int,
    version: int,
    topics: Sequence[FetchTopicResult],
    *,
    throttle_time_ms: int = 0,
    error_code: int = 0,
    session_id: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> tuple[list[Part], int]:
    """A whole frame as consecutive parts, and their total size in bytes. ``FileSlice``s are not read here."""
    flexible = version >= 12
    out = bytearray(response_prefix(correlation_id, flexible, 0))
    parts: list[Part] = [out]
    total = 0
    out += _IHI.pack(throttle_time_ms, error_code, session_id) if version >= 7 else _I.pack(throttle_time_ms)
    write_count(out, len(topics), flexible)
    for name, topic_id, results in topics:
        write_topic(out, version, name, topic_id, flexible)
        write_count(out, len(results), flexible)
        for result in results:
            records = _write_fetch_result(out, version, result)
            if records is not None:
                total += len(out) + (records.length if isinstance(records, FileSlice) else len(records))
                out = bytearray()
                parts += (records, out)
            if not flexible:
                continue
            if result.diverging_epoch is None and result.current_leader is None and result.snapshot_id is None:
                out.append(0)
            else:
                _write_fetch_result_tags(out, result)
        if flexible:
            out.append(0)
    if flexible:
        write_node_endpoints(out, node_endpoints if version >= 16 else ())
    if out:
        total += len(out)
    else:
        parts.pop()
    first = parts[0]
    assert isinstance(first, bytearray)
    _I.pack_into(first, 0, total - 4)
    return parts, total


def _write_fetch_result(out: bytearray, version: int, result: FetchResult) -> Part | None:
    """Writes one partition up to its records; returns records that are sent as a separate part."""
    flexible = version >= 12
    aborted = result.aborted_transactions
    if flexible and not aborted:
        out += _RESULT_V12.pack(
            result.index,
            result.error_code,
            result.high_watermark,
            result.last_stable_offset,
            result.log_start_offset,
            0 if aborted is None else 1,
            result.preferred_read_replica,
        )
    else:
        _write_fetch_result_head(out, version, result)
    records = result.records
    if records is None:
        write_count(out, -1, flexible)
        return None
    size = records.length if isinstance(records, FileSlice) else len(records)
    write_count(out, size, flexible)
    if size == 0:
        return None
    if size <= INLINE_RECORDS and not isinstance(records, FileSlice):
        out += records
        return None
    return records


def _write_fetch_result_head(out: bytearray, version: int, result: FetchResult) -> None:
    """Writes what precedes the records, for any version and with aborted transactions."""
    out += _IHQQ.pack(result.index, result.error_code, result.high_watermark, result.last_stable_offset)
    if version >= 5:
        out += _Q.pack(result.log_start_offset)
    aborted = result.aborted_transactions
    write_count(out, -1 if aborted is None else len(aborted), version >= 12)
    for transaction in aborted or ():
        out += _QQ.pack(*transaction)
        if version >= 12:
            out.append(0)
    if version >= 11:
        out += _I.pack(result.preferred_read_replica)


def _write_fetch_result_tags(out: bytearray, result: FetchResult) -> None:
    diverging, leader, snapshot = result.diverging_epoch, result.current_leader, result.snapshot_id
    tags = bytearray()
    count = 0
    if diverging is not None and diverging != (-1, -1):
        tags += b"\x00\x0d" + _IQ.pack(*diverging) + b"\x00"
        count += 1
    if leader is not None and leader != (-1, -1):
        tags += b"\x01\x09" + _II.pack(*leader) + b"\x00"
        count += 1
    if snapshot is not None and snapshot != (-1, -1):
        tags += b"\x02\x0d" + _QI.pack(*snapshot) + b"\x00"
        count += 1
    out.append(count)
    out += tags
