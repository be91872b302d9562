"""Requests built beforehand, as ``load.c`` replays them: Produce v12, Fetch v17, ApiVersions v3, Metadata v12, CreateTopics v7.

Written with ``struct`` alone: what is sent must not depend on the revision under measurement, nor on the one that measures.
Layouts: https://kafka.apache.org/protocol, and the record batch (magic 2) of KIP-98.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from crc32c import crc32c

PRODUCE, FETCH, METADATA, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS = 0, 1, 3, 18, 19, 20
CLIENT_ID = b"bench"
TIMESTAMP_MS = 1_700_000_000_000
_HEADER = struct.Struct(f">hhih{len(CLIENT_ID)}sB")
_BATCH_HEAD, _BATCH_BODY = struct.Struct(">qiibI"), struct.Struct(">hiqqqhii")
_NO_TAGS = b"\0"


@dataclass(frozen=True, slots=True)
class Frame:
    """A request with its length in front. ``error_at``: where the answer (its length not counted) has the error code that must be
    zero, -1 for none; ``least``: the fewest bytes an answer has; ``offset_at``: where a fetch has its offset, -1 for none."""

    request: bytes
    error_at: int = -1
    least: int = 0
    offset_at: int = -1


def write_frames(path: Path, frames: Iterable[Frame]) -> None:
    """The file that ``load`` reads."""
    with path.open("wb") as file:
        for frame in frames:
            file.write(struct.pack(">iiii", frame.error_at, frame.least, frame.offset_at, len(frame.request)))
            file.write(frame.request)


def uvarint(value: int) -> bytes:
    """An unsigned varint."""
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def varint(value: int) -> bytes:
    """A zigzag varint of up to 64 bits."""
    return uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


def compact(text: str) -> bytes:
    """A compact string."""
    return uvarint(len(text.encode()) + 1) + text.encode()


def request(key: int, version: int, body: bytes) -> bytes:
    """A whole request with a flexible header (version 2) and correlation id 1."""
    header = _HEADER.pack(key, version, 1, len(CLIENT_ID), CLIENT_ID, 0)
    return struct.pack(">i", len(header) + len(body)) + header + body


def batch(records: int, size: int) -> bytes:
    """An uncompressed batch of ``records`` values of ``size`` bytes each, without keys, headers or a producer id."""
    body = bytearray()
    for number in range(records):
        record = b"\0" + varint(0) + varint(number) + varint(-1) + varint(size) + (b"%08d" % number).ljust(size, b"x")[:size]
        record += varint(0)
        body += varint(len(record)) + record
    checked = _BATCH_BODY.pack(0, records - 1, TIMESTAMP_MS, TIMESTAMP_MS, -1, -1, -1, records) + bytes(body)
    return _BATCH_HEAD.pack(0, 9 + len(checked), -1, 2, crc32c(checked)) + checked


def produce(topic: str, partitions: Sequence[int], records: bytes, acks: int = -1) -> Frame:
    """Produce v12: one batch for each of the partitions."""
    body = b"\0" + struct.pack(">hi", acks, 30_000) + uvarint(2) + compact(topic) + uvarint(len(partitions) + 1)
    for index in partitions:
        body += struct.pack(">i", index) + uvarint(len(records) + 1) + records + _NO_TAGS
    # correlation id, tags, count of topics, the topic, count of partitions, index
    error_at = 4 + 1 + 1 + len(compact(topic)) + 1 + 4
    return Frame(request(PRODUCE, 12, body + _NO_TAGS + _NO_TAGS), error_at)


def fetch(topic_id: bytes, partition: int, offset: int, max_bytes: int, least: int, *, max_wait_ms: int = 60_000) -> Frame:
    """Fetch v17 of one partition without a session. An answer of fewer than ``least`` bytes is an error."""
    return fetch_several(topic_id, [partition], offset, max_bytes, least, max_wait_ms=max_wait_ms)


def fetch_several(
    topic_id: bytes, partitions: Sequence[int], offset: int, max_bytes: int, least: int, *, max_wait_ms: int = 60_000
) -> Frame:
    """Fetch v17 of up to ``max_bytes`` from each of some partitions, all from one offset. The error code that ``load`` looks at
    and the offset that it may write are those of the first one."""
    most = max_bytes * len(partitions)
    body = struct.pack(">iiibii", max_wait_ms, 1, most, 0, 0, -1) + uvarint(2) + topic_id + uvarint(len(partitions) + 1)
    before = 4 + _HEADER.size + len(body)
    for partition in partitions:
        body += struct.pack(">iiqiqi", partition, -1, offset, -1, -1, max_bytes) + _NO_TAGS
    body += _NO_TAGS + uvarint(1) + compact("") + _NO_TAGS
    # correlation id, tags, throttle time, error, session, count of topics, topic, count of partitions, index
    error_at = 4 + 1 + 4 + 2 + 4 + 1 + 16 + 1 + 4
    return Frame(request(FETCH, 17, body), error_at, least, before + 8)


def api_versions() -> Frame:
    """ApiVersions v3, as a client sends it first."""
    return Frame(request(API_VERSIONS, 3, compact("bench") + compact("1") + _NO_TAGS), 4, 100)


def metadata(topic: str) -> Frame:
    """Metadata v12 of one topic."""
    body = uvarint(2) + bytes(16) + compact(topic) + _NO_TAGS + b"\0\0" + _NO_TAGS
    return Frame(request(METADATA, 12, body), -1, 50)


def create_topic(topic: str, replicas: Sequence[Sequence[int]]) -> bytes:
    """CreateTopics v7 of one topic whose partitions have these replicas; the first of each leads."""
    body = uvarint(2) + compact(topic) + struct.pack(">ih", -1, -1) + uvarint(len(replicas) + 1)
    for partition, brokers in enumerate(replicas):
        body += struct.pack(">i", partition) + uvarint(len(brokers) + 1)
        body += struct.pack(f">{len(brokers)}i", *brokers) + _NO_TAGS
    body += uvarint(1) + _NO_TAGS + struct.pack(">ib", 30_000, 0) + _NO_TAGS
    return request(CREATE_TOPICS, 7, body)


def delete_topic(topic: str) -> bytes:
    """DeleteTopics v5 of one topic."""
    return request(DELETE_TOPICS, 5, uvarint(2) + compact(topic) + struct.pack(">i", 30_000) + _NO_TAGS)


def deleted(answer: bytes, topic: str) -> int:
    """The error code in the answer (its length left off) to ``delete_topic``."""
    at = 4 + 1 + 4 + 1 + len(compact(topic))
    return int.from_bytes(answer[at : at + 2], "big", signed=True)


def created(answer: bytes, topic: str) -> tuple[int, bytes]:
    """Error code and topic id in the answer (its length left off) to ``create_topic``."""
    at = 4 + 1 + 4 + 1 + len(compact(topic))
    return int.from_bytes(answer[at + 16 : at + 18], "big", signed=True), answer[at : at + 16]
