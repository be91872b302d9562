"""A follower's Fetch in a session, while nothing unusual is in it: a request as one frame, an answer read from one.

A plain request continues a session, forgets no partition, and names some at their new positions. A plain answer has no error, no
tag and no list of aborted transactions: for each partition watermarks and batches. Anything else belongs to the generated
classes, malformed answers too; property tests compare both ways.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from tidelog.model.errors import ProtocolViolation
from tidelog.model.ids import Uuid
from tidelog.model.ports import Buffer
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.primitives import read_uvarint, write_uvarint

FIRST_PLAIN, LAST_PLAIN = 15, 18
"""Versions of Fetch that carry topic ids, and the follower in a tag."""

Wanted: TypeAlias = tuple[Uuid, int, int, int, int, int]
"""(topic id, partition, current leader epoch, fetch offset, last fetched epoch, log start offset)."""
Found: TypeAlias = tuple[bytes, int, int, int, memoryview]
"""(topic id, partition, high watermark, log start offset, batches)."""

_HEADER = ">ihhih{}sB"
_LIMITS = "iiibii"
_PARTITION = "iiqiqi"
_END = struct.Struct(">BBBBBiqB")
"""No forgotten topics, no rack; one tag, of 13 bytes: the follower's id and epoch."""
_WANTED = struct.Struct(">" + _PARTITION + "B")
_ANSWER = struct.Struct(">iBihiB")
"""From the correlation id to the count of topics."""
_ONE = struct.Struct(">iBihiB16sBihqqqBi")
"""From the correlation id to the preferred replica, where one partition was found."""
_FOUND = struct.Struct(">ihqqqBi")
_NO_REPLICA = -1


class PlainAnswer(NamedTuple):
    """What a plain answer says. The batches are views of the frame."""

    session_id: int
    found: Sequence[Found]


class PlainRequests:
    """Writes the requests of one follower on one connection, whose version and limits stay the same."""

    __slots__ = ("_client_id", "_head", "_limits", "_most", "_one", "_replica_id", "_version")

    def __init__(
        self, version: int, client_id: str, replica_id: int, *, min_bytes: int, max_bytes: int, partition_max_bytes: int
    ) -> None:
        """``version``: FIRST_PLAIN to LAST_PLAIN."""
        assert FIRST_PLAIN <= version <= LAST_PLAIN
        self._version = version
        self._client_id = client_id.encode()
        self._replica_id = replica_id
        self._limits = min_bytes, max_bytes
        self._most = partition_max_bytes
        head = _HEADER.format(len(self._client_id)) + _LIMITS
        self._head = struct.Struct(head)
        self._one = struct.Struct(head + "B16sB" + _PARTITION + "BB" + _END.format[1:])

    def frame(
        self, correlation_id: int, max_wait_ms: int, session_id: int, epoch: int, broker_epoch: int, wanted: Sequence[Wanted]
    ) -> bytes:
        """A whole request: the ``epoch``-th of the session, naming ``wanted``. struct.error for a value that does not fit."""
        client_id, (min_bytes, max_bytes) = self._client_id, self._limits
        if len(wanted) == 1:  # nearly all under load
            topic_id, index, leader_epoch, offset, last_epoch, start = wanted[0]
            # fmt: off
            return self._one.pack(
                self._one.size - 4, ApiKey.FETCH, self._version, correlation_id, len(client_id), client_id, 0,
                max_wait_ms, min_bytes, max_bytes, 0, session_id, epoch,
                2, topic_id, 2, index, leader_epoch, offset, last_epoch, start, self._most, 0, 0,
                1, 1, 1, 1, 13, self._replica_id, broker_epoch, 0,
            )
            # fmt: on
        body = self._topics(wanted)
        body += _END.pack(1, 1, 1, 1, 13, self._replica_id, broker_epoch, 0)
        # fmt: off
        head = self._head.pack(
            self._head.size - 4 + len(body), ApiKey.FETCH, self._version, correlation_id, len(client_id), client_id, 0,
            max_wait_ms, min_bytes, max_bytes, 0, session_id, epoch,
        )
        # fmt: on
        return head + body

    def _topics(self, wanted: Sequence[Wanted]) -> bytearray:
        topics: dict[Uuid, list[bytes]] = {}
        for topic_id, index, leader_epoch, offset, last_epoch, start in wanted:
            packed = _WANTED.pack(index, leader_epoch, offset, last_epoch, start, self._most, 0)
            topics.setdefault(topic_id, []).append(packed)
        out = bytearray()
        write_uvarint(out, len(topics) + 1)
        for topic_id, partitions in topics.items():
            out += topic_id
            write_uvarint(out, len(partitions) + 1)
            for packed in partitions:
                out += packed
            out.append(0)
        return out


def read_plain_answer(frame: Buffer, correlation_id: int) -> PlainAnswer | None:
    """The answer in ``frame``, without its length, to the request ``correlation_id``; None when it is not plain, or broken."""
    length = len(frame)
    view = memoryview(frame)
    try:
        if length > _ONE.size:
            answered, tags, _, error, session_id, topics, topic_id, parts, index, code, high, _, start, aborted, replica = (
                _ONE.unpack_from(frame)
            )
            if topics == 2 and parts == 2:
                size, pos = _size(frame, _ONE.size)
                end = pos + size
                plain = answered == correlation_id and not (tags or error or code) and aborted <= 1 and replica == _NO_REPLICA
                if not plain or end + 3 != length or frame[end] or frame[end + 1] or frame[end + 2]:
                    return None
                return PlainAnswer(session_id, ((topic_id, index, high, start, view[pos:end]),))
        answered, tags, _, error, session_id, topics = _ANSWER.unpack_from(frame)
        if answered != correlation_id or tags or error:
            return None
        found, pos = _read_topics(view, _ANSWER.size - 1)
        plain = found is not None and pos + 1 == length and not frame[pos]
        return PlainAnswer(session_id, found) if plain and found is not None else None
    except (struct.error, IndexError, ProtocolViolation):
        return None


def _read_topics(view: memoryview, pos: int) -> tuple[list[Found] | None, int]:
    """The partitions of all topics, and where they end; None when one is not plain."""
    found: list[Found] = []
    topics, pos = _count(view, pos)
    for _ in range(topics):
        topic_id = bytes(view[pos : pos + 16])
        partitions, pos = _count(view, pos + 16)
        for _ in range(partitions):
            index, code, high, _, start, aborted, replica = _FOUND.unpack_from(view, pos)
            if code or aborted > 1 or replica != _NO_REPLICA:
                return None, pos
            size, pos = _size(view, pos + _FOUND.size)
            end = pos + size
            if view[end]:
                return None, pos
            found.append((topic_id, index, high, start, view[pos:end]))
            pos = end + 1
        if view[pos]:
            return None, pos
        pos += 1
    return found, pos


def _count(view: memoryview, pos: int) -> tuple[int, int]:
    """The length of a compact array. ProtocolViolation for null."""
    count, pos = read_uvarint(view, pos)
    if not count:
        raise ProtocolViolation("null in place of an array")
    return count - 1, pos


def _size(buf: Buffer, pos: int) -> tuple[int, int]:
    """The length of compact records, 0 for null, and where they begin."""
    size, pos = read_uvarint(buf, pos)
    return (size - 1 if size else 0), pos
