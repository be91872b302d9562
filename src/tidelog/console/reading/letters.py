"""Dead letters of one share group among the records of a dead-letter topic, and replays of them in its journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidelog.console.payloads.decoding import decode
from tidelog.console.payloads.framed import Schemas
from tidelog.console.reading.rows import Row, View
from tidelog.console.reading.scanning import Seen
from tidelog.dead_letters.journal import entry_of
from tidelog.dead_letters.letter import Source, letter_of
from tidelog.records.record import Record

REASON: Final = 1000
"""Characters of a reason that are shown."""
SETTLED: Final = frozenset({"plain", "committed"})


@dataclass(frozen=True, slots=True)
class Letters(View):
    """The dead letters of a group, cut as records are. Rows keep their source for ``source_of``."""

    group: str = ""

    def row(self, seen: Seen) -> Row | None:
        letter = letter_of(seen.partition, _record(seen)) if seen.state in SETTLED else None
        if letter is None or letter.source.group != self.group:
            return None
        source = letter.source
        line = {
            "kind": "record",
            "partition": seen.partition,
            "offset": str(seen.offset),
            "timestamp_ms": str(seen.timestamp),
            "source": {"topic": source.topic, "partition": source.partition, "offset": str(source.offset)},
            "delivery_count": letter.delivery_count,
            "reason": None if letter.reason is None else letter.reason[:REASON],
            "key": _payload(letter.key, self.cut, self.schemas),
            "value": _payload(letter.value, self.cut, self.schemas),
        }
        return Row(seen.partition, seen.offset, seen.timestamp, line)

    def source_of(self, line: Mapping[str, Any]) -> Source:
        """The record that a row's letter is about."""
        source = line["source"]
        return Source(self.group, source["topic"], source["partition"], int(source["offset"]))


@dataclass(frozen=True, slots=True)
class Replays(View):
    """The replays of some sources; ``wanted`` has each with the id of its topic as text."""

    wanted: frozenset[tuple[Source, str]] = frozenset()

    def row(self, seen: Seen) -> Row | None:
        entry = entry_of(_record(seen)) if seen.state in SETTLED else None
        if entry is None or (entry.source, entry.topic_id) not in self.wanted:
            return None
        return Row(seen.partition, seen.offset, seen.timestamp, {"kind": "record", "entry": entry})


def _record(seen: Seen) -> Record:
    return Record(seen.offset, seen.timestamp, seen.key, seen.value, seen.headers)


def _payload(data: bytes | None, cut: int, schemas: Schemas | None) -> Mapping[str, Any] | None:
    return None if data is None else decode(data, "auto", cut, schemas).as_json()
