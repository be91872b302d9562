"""What becomes of a dead letter in a replay: the record that goes back to its topic, or why none does. Pure."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

from tidelog.client.partitioning import partition_of
from tidelog.dead_letters.journal import Journal
from tidelog.dead_letters.letter import Letter, Source
from tidelog.records.record import Headers, Record

COUNT: Final = "__dlq.replay.count"
GROUP: Final = "__dlq.replay.group"
PARTITION: Final = "__dlq.replay.partition"
OFFSET: Final = "__dlq.replay.offset"
OWN: Final = frozenset({COUNT, GROUP, PARTITION, OFFSET})
CLOCKS_MS: Final = 300_000
"""How far the clock of a producer may be ahead of the broker's that wrote the dead letter."""


class Outcome(Enum):
    """Why a dead letter is not replayed, and what ``replay`` prints."""

    DONE = "replayed before"
    DUPLICATE = "second dead letter of one record"
    CAPPED = "replayed as often as --max-replays allows"
    LOST = "neither copied into the dead letter nor in its topic any more"
    OTHER = "not copied, and its topic holds another record at that offset by now"
    NO_TOPIC = "its topic does not exist, or may not be described"
    LOOP = "its topic is the dead-letter topic"
    REFUSED = "refused by the brokers"


class Replay(NamedTuple):
    """A record to be written back to its topic. ``replays``: those of it, with this one."""

    letter: Letter
    topic_id: bytes
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    replays: int

    @property
    def source(self) -> Source:
        """The record that is replayed."""
        return self.letter.source


class Target(NamedTuple):
    """The source topic as it is now."""

    topic_id: bytes
    partitions: int


class Plan:
    """Decides about dead letters one by one, in their order."""

    def __init__(
        self, dead_letter_topic: str, target: Callable[[str], Target | None], journal: Journal, max_replays: int
    ) -> None:
        """``target`` finds a source topic; None if there is none. ``max_replays``: how often a record may be replayed in all."""
        self._dead_letter_topic = dead_letter_topic
        self._target = target
        self._journal = journal
        self._max_replays = max_replays
        self._seen: set[Source] = set()

    def before_reading(self, letter: Letter) -> Outcome | None:
        """What needs no look at the source topic; None when that is to be read."""
        source = letter.source
        if source.topic == self._dead_letter_topic:
            return Outcome.LOOP
        target = self._target(source.topic)
        if target is None:
            return Outcome.NO_TOPIC
        if source in self._seen:
            return Outcome.DUPLICATE
        self._seen.add(source)
        if self._journal.has(source, target.topic_id):
            return Outcome.DONE
        if self._journal.count(source, target.topic_id) >= self._max_replays:
            return Outcome.CAPPED
        return None

    def decide(self, letter: Letter, original: Record | None) -> Replay | Outcome:
        """The record to write. ``original``: the record in the source topic, if it is there."""
        source, target = letter.source, self._target(letter.source.topic)
        if target is None:
            return Outcome.NO_TOPIC
        if letter.copied:
            if original is not None and (original.key, original.value) != (letter.key, letter.value):
                original = None  # the topic was deleted and made again
        elif original is None:
            return Outcome.LOST
        elif original.timestamp > letter.timestamp + CLOCKS_MS:
            return Outcome.OTHER
        key, value = (letter.key, letter.value) if original is None else (original.key, original.value)
        headers: Headers = () if original is None else original.headers
        before = max(self._journal.count(source, target.topic_id), _count(headers))
        if before >= self._max_replays:
            return Outcome.CAPPED
        own = (
            (COUNT, str(before + 1).encode()),
            (GROUP, source.group.encode()),
            (PARTITION, str(source.partition).encode()),
            (OFFSET, str(source.offset).encode()),
        )
        kept = tuple(each for each in headers if each[0] not in OWN)
        return Replay(letter, target.topic_id, _partition(source, key, target.partitions), key, value, kept + own, before + 1)


def _count(headers: Headers) -> int:
    """The number in the header of an earlier replay; 0 without one."""
    text = dict(headers).get(COUNT) or b""
    return int(text) if text.isdigit() and len(text) < 10 else 0


def _partition(source: Source, key: bytes | None, partitions: int) -> int:
    """Where the record was; in a topic that was made again with fewer partitions, where its key belongs."""
    if source.partition < partitions:
        return source.partition
    return source.partition % partitions if key is None else partition_of(key, partitions)
