"""What dead letters look like and where they go: plain functions (KIP-1191).

A dead letter says in its headers which record it stands for: topic, partition, offset, group, deliveries, cause, all as text. One
is written for each offset that was given up, a hole of the log or a control record too. Key and value are copied only where the
group asks for that; headers and timestamp of the record never are, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidelog.config.topic_config import TopicConfig
from tidelog.metadata.image import TopicImage
from tidelog.records.batch import HEADER_SIZE, BatchHeader, CorruptBatch
from tidelog.records.builder import RecordData, encode_record
from tidelog.records.record import Headers, iter_records
from tidelog.replication.share.dead_letters import DeadLetter

TOPIC_NAME = "errors.deadletterqueue.topic.name"
COPIES = "errors.deadletterqueue.copy.record.enable"
CONSENT = "errors.deadletterqueue.group.enable"
"""Of a group: its topic, and whether keys and values are copied. Of a topic: whether groups may write dead letters to it."""
RESERVED = "__"
_LARGEST_DELTA = (1 << 31) - 1

KeyAndValue = tuple[bytes | None, bytes | None]


class GivenUp(NamedTuple):
    """Records of a source partition that became dead letters."""

    group_id: str
    topic: str
    partition: int
    letter: DeadLetter


def refusal(name: str, topic: TopicImage | None, settings: TopicConfig, *, prefix: str, creates: bool) -> str | None:
    """Why nothing may be written to the topic ``name``. ``topic``: None if it does not exist, then it has to be created;
    ``creates``: whether brokers may do that."""
    if not name:
        return f"the group has no {TOPIC_NAME} any more"
    if name.startswith(RESERVED):
        return f"the name of topic {name} is that of an internal topic"
    if topic is not None and not settings.errors_deadletterqueue_group_enable:
        return f"topic {name} does not have {CONSENT}=true"
    if topic is None and not creates:
        return f"topic {name} does not exist, and errors.deadletterqueue.auto.create.topics.enable is false"
    if not name.startswith(prefix):
        return f"the name of topic {name} does not begin with {prefix}, as errors.deadletterqueue.topic.name.prefix demands"
    return None


def headers(given_up: GivenUp, offset: int) -> Headers:
    """The headers of the dead letter of one offset."""
    letter = given_up.letter
    return (
        ("__dlq.errors.topic", given_up.topic.encode()),
        ("__dlq.errors.partition", str(given_up.partition).encode()),
        ("__dlq.errors.offset", str(offset).encode()),
        ("__dlq.errors.group", given_up.group_id.encode()),
        ("__dlq.errors.delivery.count", str(letter.delivery_count).encode()),
        ("__dlq.errors.message", letter.cause.value.encode()),
    )


class Copied:
    """Keys and values of source records, from offset ``first`` to ``last``, at most ``max_bytes`` of them."""

    __slots__ = ("_left", "_max_bytes", "last", "next_offset", "records")

    def __init__(self, first: int, last: int, max_bytes: int) -> None:
        self.next_offset = first
        """Nothing is known of this offset yet. A record below that is not in ``records`` is not copied: it is too large, or the
        log does not have it."""
        self.last = last
        self.records: dict[int, KeyAndValue] = {}
        self._max_bytes = max_bytes
        self._left = max_bytes

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to read, or no room for it."""
        return self._left <= 0 or self.next_offset > self.last

    def read(self, data: bytes, batches: Sequence[BatchHeader]) -> bool:
        """Takes what was read from ``next_offset`` on. False when that was nothing: the rest is not copied."""
        before = self.next_offset
        for header in batches:
            if header.last_offset < self.next_offset:
                continue
            if self.is_over:
                break
            self._read_batch(data, header)
        return self.next_offset > before

    def give_up(self) -> None:
        """The rest cannot be read."""
        self.next_offset = max(self.next_offset, self.last + 1)

    def _read_batch(self, data: bytes, header: BatchHeader) -> None:
        try:
            # A compressed batch that is larger than what may be written is not unpacked.
            for record in iter_records(data, header, max_decompressed=max(self._max_bytes, header.size)):
                if record.offset < self.next_offset:
                    continue
                if record.offset > self.last:
                    break
                size = len(record.key or b"") + len(record.value or b"")
                if size > self._left and self.records:
                    self._left = 0
                    return
                if size <= self._max_bytes:
                    self.records[record.offset] = record.key, record.value
                    self._left -= size
                self.next_offset = record.offset + 1
        except CorruptBatch:
            pass
        self.next_offset = max(self.next_offset, min(header.last_offset, self.last) + 1)


class Round(NamedTuple):
    """Dead letters that go into one batch. ``size``: of that batch, at most. ``next_offset``: the first one of the next round."""

    records: list[RecordData]
    size: int
    next_offset: int


def plan_round(given_up: GivenUp, first: int, upto: int, copied: Mapping[int, KeyAndValue], max_bytes: int, now_ms: int) -> Round:
    """The dead letters from ``first`` to ``upto`` inclusive that fit into ``max_bytes``, at least one. A record that leaves no
    room for its headers is not copied."""
    records: list[RecordData] = []
    size, offset = HEADER_SIZE, first
    while offset <= upto:
        key, value = copied.get(offset, (None, None))
        record = RecordData(key, value, now_ms, headers(given_up, offset))
        more = _size(record)
        if HEADER_SIZE + more > max_bytes and (key is not None or value is not None):
            record = record._replace(key=None, value=None)
            more = _size(record)
        if records and size + more > max_bytes:
            break
        records.append(record)
        size += more
        offset += 1
    return Round(records, size, offset)


def _size(record: RecordData) -> int:
    """The largest number of bytes of a record, wherever it stands in a batch."""
    return len(encode_record(record, _LARGEST_DELTA, 0))
