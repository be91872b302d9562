"""The journal of replays: which records of a dead-letter topic were sent back to their topic, so that none is twice.

It is a compacted topic beside the dead-letter topic. Each replay writes a record to it in the transaction that writes the
replayed record: both are there, or neither. The key names the source: group, id and name of its topic, partition and offset. So a
second dead letter of one record is no second replay, and a topic that was deleted and made again has none. The value says where
the record went and how often it has been replayed, which a second failure of it needs: its dead letter does not say.

One transactional id for each dead-letter topic makes runs exclusive: a run that begins ends the open transaction of the one
before it, and reads the journal only then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from tidelog.dead_letters.letter import Source
from tidelog.model.ids import uuid_to_text
from tidelog.records.record import Record

SUFFIX: Final = ".replayed"
LONGEST_NAME: Final = 249
"""Characters of a topic's name."""
CONFIGS: Final = {"cleanup.policy": "compact"}


def journal_topic(dead_letter_topic: str) -> str:
    """The name of the journal; with a name that is too long for one more word, the end of it is left out."""
    return dead_letter_topic[: LONGEST_NAME - len(SUFFIX)] + SUFFIX


def transactional_id(dead_letter_topic: str) -> str:
    """The transactional id of replays from this topic."""
    return f"tidelog-replay-{dead_letter_topic}"


class Replayed(NamedTuple):
    """One replay. ``replays``: those of this record so far, those of its earlier lives included. ``partition`` and ``offset``:
    where it is in its topic now. ``at_ms``: when."""

    source: Source
    topic_id: bytes
    replays: int
    partition: int
    offset: int
    at_ms: int

    def key(self) -> bytes:
        """The key of the journal's record."""
        source = self.source
        return _json([source.group, uuid_to_text(self.topic_id), source.topic, source.partition, source.offset])

    def value(self) -> bytes:
        """Its value."""
        return _json({"count": self.replays, "partition": self.partition, "offset": self.offset, "at_ms": self.at_ms})


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


class Entry(NamedTuple):
    """A record of the journal, as it was read; the topic's id as text."""

    source: Source
    topic_id: str
    replays: int
    partition: int
    offset: int
    at_ms: int


def entry_of(record: Record) -> Entry | None:
    """What a record of the journal says; None for one that this module did not write."""
    try:
        key: Any = json.loads(record.key or b"")
        value: Any = json.loads(record.value or b"")
        group, topic_id, topic, partition, offset = key
        source = Source(str(group), str(topic), int(partition), int(offset))
        numbers = (int(value[name]) for name in ("count", "partition", "offset", "at_ms"))
        return Entry(source, str(topic_id), *numbers)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


class Journal:
    """What has been replayed, by the ids of topics as text. Holds two numbers a replay."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._done: dict[tuple[str, str, int], set[int]] = {}
        """Group, id and partition -> offsets that were replayed."""
        self._counts: dict[tuple[str, int], dict[int, int]] = {}
        """Id and partition -> how often the record at an offset had been replayed when it was written there."""
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Takes another replay."""
        source = entry.source
        self._done.setdefault((source.group, entry.topic_id, source.partition), set()).add(source.offset)
        self._counts.setdefault((entry.topic_id, entry.partition), {})[entry.offset] = entry.replays

    def has(self, source: Source, topic_id: bytes) -> bool:
        """Whether this record was replayed."""
        found = self._done.get((source.group, uuid_to_text(topic_id), source.partition))
        return found is not None and source.offset in found

    def count(self, source: Source, topic_id: bytes) -> int:
        """How often the record had been replayed when the group gave it up; 0 for one that a producer wrote."""
        return self._counts.get((uuid_to_text(topic_id), source.partition), {}).get(source.offset, 0)


def entry_for(replayed: Replayed) -> Entry:
    """The entry that reading the journal would give."""
    return Entry(
        replayed.source,
        uuid_to_text(replayed.topic_id),
        replayed.replays,
        replayed.partition,
        replayed.offset,
        replayed.at_ms,
    )
