"""What Burrow would have sampled of a group: its commits out of __consumer_offsets, and the ends of its logs while the command
looks (every half second, not every ten)."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from typing import Final

from tests.causes.burrow import Commit, History, group_status
from tidelog.cli.admin_session import AdminSession, Partition
from tidelog.client.admin.topics import topics as topics_call
from tidelog.client.calls import Call
from tidelog.console.collecting import OFFSETS_TOPIC
from tidelog.console.log_collecting import fetched
from tidelog.model.ids import LATEST_TIMESTAMP
from tidelog.records.batch import iter_headers
from tidelog.records.record import Record, iter_records

EVERY_S: Final = 0.5
NOT_SAMPLED: Final = "not sampled"
NO_OFFSETS: Final = "no offsets"
MOST_BYTES: Final = 1 << 20


class Sampler:
    """Of one group. A cluster with a node down is not sampled: Burrow would wait for it."""

    def __init__(self, servers: str, group: str) -> None:
        self._servers = servers
        self._group = group
        self._ends: dict[Partition, list[tuple[int, int]]] = {}
        self._next_s = 0.0
        self._failed = False

    def sample(self) -> None:
        """The ends, where it is time for it."""
        if self._failed or time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + EVERY_S
        try:
            with AdminSession(self._servers, patience_ms=1000) as session:
                ats = {at for at, _ in self._commits(session)}
                for at, answer in session.list_offsets(dict.fromkeys(ats, LATEST_TIMESTAMP)).items():
                    self._ends.setdefault(at, []).append((_now_ms(), answer.offset))
        except Exception:
            self._failed = True

    def status(self) -> str:
        """Burrow's verdict now."""
        self._next_s = 0.0
        self.sample()
        if self._failed:
            return NOT_SAMPLED
        with AdminSession(self._servers, patience_ms=1000) as session:
            commits = list(self._commits(session))
        if not commits:
            return NO_OFFSETS
        if not self._ends:
            return NOT_SAMPLED
        histories = {}
        for at, ends in self._ends.items():
            own = [Commit(when, offset, max(0, _end_at(ends, when) - offset)) for where, (when, offset) in commits if where == at]
            histories[at] = History(own, [end for _, end in ends])
        return group_status(histories, _now_ms())

    def _commits(self, session: AdminSession) -> Iterator[tuple[Partition, tuple[int, int]]]:
        """Each commit of the group: (partition, (time, offset)), in their order."""
        for record in session.run(_records(self._group, session)):
            found = _commit(record, self._group)
            if found is not None:
                yield found


def _records(group: str, session: AdminSession) -> Call[list[Record]]:
    """All records of the group's partition of the topic."""
    (topic,) = yield from topics_call([OFFSETS_TOPIC])
    parts = {part.partition_index: part.leader_id for part in topic.partitions}
    if not parts:
        return []
    at = (OFFSETS_TOPIC, _java_hash(group) % len(parts))
    found: list[Record] = []
    begin = 0
    while True:
        data = bytes((yield from fetched(at, parts[at[1]], topic.topic_id, begin, MOST_BYTES)))
        whole = list(iter_headers(data)) if data else []
        if not whole:
            return found
        for header in whole:
            if not header.is_control:
                found += iter_records(data, header)
        begin = whole[-1].next_offset


def _java_hash(text: str) -> int:
    """As Java's String.hashCode, made positive as Kafka does."""
    value = 0
    for letter in text:
        value = (31 * value + ord(letter)) & 0xFFFFFFFF
    return abs(value - (1 << 32) if value >= 1 << 31 else value)


def _commit(record: Record, group: str) -> tuple[Partition, tuple[int, int]] | None:
    key, value = record.key or b"", record.value
    if len(key) < 4 or int.from_bytes(key[:2], "big") > 1 or value is None:
        return None
    name, at = _text(key, 2)
    if name != group:
        return None
    topic, at = _text(key, at)
    (partition,) = struct.unpack_from(">i", key, at)
    (offset,) = struct.unpack_from(">q", value, 2)
    return (topic, partition), (record.timestamp, offset)


def _text(data: bytes, at: int) -> tuple[str, int]:
    size = int.from_bytes(data[at : at + 2], "big")
    return data[at + 2 : at + 2 + size].decode(), at + 2 + size


def _end_at(ends: list[tuple[int, int]], when: int) -> int:
    """As it was known then; the first one that is known for what was before."""
    known = [end for at, end in ends if at <= when]
    return known[-1] if known else ends[0][1]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
