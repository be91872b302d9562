"""LogReader: reads partitions of any Kafka cluster in a session of a command, through elections and lost connections."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeVar

from tidelog.cli.admin_session import AdminSession
from tidelog.cli.refusal import CannotConnect, CommandFailed, error_text
from tidelog.client import reading
from tidelog.client.calls import Call
from tidelog.client.fetching import Verdict, judge
from tidelog.client.reading import Chunk, Located, Looked
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, ZERO_UUID, TopicPartition
from tidelog.records.record import Record

SCAN_BYTES: Final = 1 << 20
LOOKUP_BYTES: Final = 1 << 16
WAIT_MS: Final = 500
"""How long a broker waits for records that are not there yet."""
PAUSE_S: Final = 0.2
_GONE: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID})

T = TypeVar("T", Chunk, Looked)
Range = tuple[int, int]
"""The first offset, and the one behind the last."""


class LogReader:
    """``sleep`` takes seconds, ``now`` gives monotonic ones."""

    def __init__(
        self, session: AdminSession, sleep: Callable[[float], None] = time.sleep, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._session = session
        self._sleep = sleep
        self._now = now
        self._located: dict[str, dict[TopicPartition, Located]] = {}

    def partitions(self, topic: str) -> Mapping[TopicPartition, Located]:
        """The partitions of a topic that have a leader; empty when there is no such topic for this client."""
        found = self._located.get(topic)
        if found is None:
            found = self._located[topic] = self._session.run(reading.locate([topic]))
        return found

    def ranges(self, topic: str, since_ms: int | None = None) -> dict[TopicPartition, Range]:
        """What the partitions hold, from the first record of that time on. CommandFailed for a topic that is not there, or a
        partition without a leader."""
        partitions = self._session.partitions(topic)
        start = EARLIEST_TIMESTAMP if since_ms is None else since_ms
        found = self._session.list_offsets(dict.fromkeys(partitions, start))
        ends = self._session.list_offsets(dict.fromkeys(partitions, LATEST_TIMESTAMP))
        ranges: dict[TopicPartition, Range] = {}
        for _, index in partitions:
            first, end = found.get((topic, index)), ends.get((topic, index))
            if first is None or end is None:
                raise CommandFailed(f"Partition {index} of topic {topic} has no leader now.")
            for each in (first, end):
                if each.error_code != ErrorCode.NONE:
                    raise CommandFailed(f"Partition {index} of topic {topic}: {error_text(each.error_code)}")
            ranges[TopicPartition(topic, index)] = (end.offset if first.offset < 0 else first.offset, end.offset)
        return ranges

    def scan(self, at: TopicPartition, within: Range) -> Iterator[Record]:
        """The committed records of a range. What retention deletes meanwhile is passed over; CommandFailed when the partition
        cannot be read, or a transaction that is open keeps back what is below the end."""
        offset, end = within
        deadline = self._deadline()
        while offset < end:
            chunk = self.read(at, offset, committed=True, max_bytes=SCAN_BYTES)
            if chunk is None:
                raise CommandFailed(f"{at} does not exist any more.")
            if chunk.next_offset > offset:
                yield from (record for record in chunk.records if record.offset < end)
                offset, deadline = chunk.next_offset, self._deadline()
            elif chunk.start_offset > offset:
                offset = chunk.start_offset
            elif self._now() > deadline:
                raise CommandFailed(f"{at} gives no records from offset {offset} to {end}: a transaction may be open there.")

    def read(self, at: TopicPartition, offset: int, *, committed: bool, max_bytes: int) -> Chunk | None:
        """The records from ``offset`` on; a chunk without any when the log begins behind it. None without such a partition.
        CommandFailed when it cannot be read in time."""

        def call(located: Located) -> Call[Chunk | ErrorCode]:
            return reading.read(at, located, offset, committed=committed, max_bytes=max_bytes, wait_ms=WAIT_MS)

        found = self._asked(at, offset, call)
        return self._before_the_log(at, offset) if isinstance(found, ErrorCode) else found

    def look(self, at: TopicPartition, offset: int) -> Looked | None:
        """What lies at an offset of the log. None without such a partition, or when the log does not have the offset."""
        found = self._asked(at, offset, lambda located: reading.look(at, located, offset, max_bytes=LOOKUP_BYTES))
        return None if isinstance(found, ErrorCode) else found

    def _asked(self, at: TopicPartition, offset: int, call: Callable[[Located], Call[T | ErrorCode]]) -> T | ErrorCode | None:
        """The answer of the leader, through errors that pass; of others OFFSET_OUT_OF_RANGE is an answer. None without such a
        partition."""
        deadline = self._deadline()
        while True:
            located = self.partitions(at.topic).get(at)
            if located is not None:
                problem = ""
                try:
                    found = self._session.run(call(located))
                except CannotConnect as error:
                    problem = str(error)
                else:
                    if not isinstance(found, ErrorCode) or found is ErrorCode.OFFSET_OUT_OF_RANGE:
                        return found
                    if judge(found) is Verdict.FAIL:
                        raise CommandFailed(f"{at} cannot be read at offset {offset}: {error_text(found)}")
                    problem = found.name
            elif self._session_has(at):
                problem = "it has no leader"
            else:
                return None
            if self._now() > deadline:
                raise CommandFailed(f"{at} cannot be read at offset {offset}: {problem}")
            self._located.pop(at.topic, None)
            self._sleep(PAUSE_S)

    def topic(self, name: str) -> tuple[bytes, int] | None:
        """The topic's id and its number of partitions; None when there is no such topic for this client."""
        (found,) = self._session.metadata([name])
        if found.error_code in _GONE or found.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return None
        if found.error_code != ErrorCode.NONE:
            raise CommandFailed(f"Topic {name}: {error_text(found.error_code)}")
        return bytes(found.topic_id or ZERO_UUID), len(found.partitions)

    def _before_the_log(self, at: TopicPartition, offset: int) -> Chunk:
        """What there is at an offset that is not in the log: nothing, and where the log begins."""
        found = self._session.list_offsets({(at.topic, at.partition): EARLIEST_TIMESTAMP})
        start = max((answer.offset for answer in found.values()), default=-1)
        return Chunk((), offset, offset, start)

    def _session_has(self, at: TopicPartition) -> bool:
        (topic,) = self._session.metadata([at.topic])
        if topic.error_code in _GONE:
            return False
        if topic.error_code != ErrorCode.NONE:
            raise CommandFailed(f"Topic {at.topic}: {error_text(topic.error_code)}")
        return any(part.partition_index == at.partition for part in topic.partitions)

    def _deadline(self) -> float:
        return self._now() + self._session.timeout_ms / 1000


class Originals:
    """Looks up single records by offset. What one Fetch brought is kept for the next look at the same partition: dead letters
    of a partition are in the order of its offsets, mostly."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._kept: dict[TopicPartition, tuple[int, int, dict[int, Record]]] = {}

    def find(self, at: TopicPartition, offset: int) -> Record | None:
        """The record, whether its transaction was committed or not; None when the log does not have it."""
        first, end, records = self._kept.get(at, (0, 0, {}))
        if not first <= offset < end:
            chunk = self._reader.read(at, offset, committed=False, max_bytes=LOOKUP_BYTES)
            if chunk is None:
                return None
            records = {record.offset: record for record in chunk.records}
            self._kept[at] = offset, max(chunk.next_offset, offset + 1), records
        return records.get(offset)


def record_at(reader: LogReader, at: TopicPartition, offset: int) -> Record | None:
    """One committed record; None when there is none with this offset."""
    found: Iterable[Record] = reader.scan(at, (offset, offset + 1))
    return next((record for record in found if record.offset == offset), None)
