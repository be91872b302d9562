"""What ``dead-letters list``, ``count`` and ``show`` print: dead letters, found by a choice."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

from tidelog.cli.columns import Column, Row
from tidelog.cli.dead_letters.log_reading import LogReader, Originals, record_at
from tidelog.cli.refusal import CommandFailed
from tidelog.dead_letters.choice import Choice
from tidelog.dead_letters.journal import Entry, Journal, entry_of, journal_topic
from tidelog.dead_letters.letter import UNKNOWN, Letter, bytes_json, headers_json, letter_of, time_text
from tidelog.model.ids import TopicPartition, uuid_to_text
from tidelog.records.record import Record

LIST_COLUMNS = [
    Column("PARTITION", "partition", 10),
    Column("OFFSET", "offset", 8),
    Column("TIME", "time", 24),
    Column("GROUP", "group", 15),
    Column("SOURCE", "source", 15),
    Column("DELIVERIES", "delivery_count", 10),
    Column("REPLAYED", "replayed", 8),
    Column("REASON", "reason", 0, pad=False),
]
COUNT_COLUMNS = [
    Column("GROUP", "group", 15),
    Column("TOPIC", "topic", 15),
    Column("COUNT", "count", 8),
    Column("OLDEST", "oldest", 24),
    Column("NEWEST", "newest", 24),
    Column("REASON", "reason", 0, pad=False),
]


def letters(reader: LogReader, topic: str, choice: Choice) -> Iterator[Letter]:
    """The chosen ones, up to the end that the topic has now, partition by partition."""
    for at, within in sorted(reader.ranges(topic, choice.since_ms).items()):
        for record in reader.scan(at, within):
            letter = letter_of(at.partition, record)
            if letter is not None and choice.takes(letter):
                yield letter


def entries(reader: LogReader, topic: str) -> Iterator[Entry]:
    """The journal of replays from a dead-letter topic, up to the end that it has now."""
    name = journal_topic(topic)
    if reader.topic(name) is None:
        return
    for at, within in reader.ranges(name).items():
        for record in reader.scan(at, within):
            entry = entry_of(record)
            if entry is not None:
                yield entry


def listed(reader: LogReader, topic: str, choice: Choice, limit: int) -> list[Row]:
    """A row each for the newest ones, the oldest of them first; ``limit`` 0 for all."""
    found = letters(reader, topic, choice)
    newest = sorted(found, key=_age) if limit == 0 else sorted(heapq.nlargest(limit, found, key=_age), key=_age)
    journal = Journal(entries(reader, topic)) if newest else Journal()
    ids: dict[str, bytes | None] = {}
    rows = []
    for letter in newest:
        source = letter.source
        if source.topic not in ids:
            target = reader.topic(source.topic)
            ids[source.topic] = None if target is None else target[0]
        topic_id = ids[source.topic]
        done = topic_id is not None and journal.has(source, topic_id)
        text = f"{source.topic}:{source.partition}:{source.offset}"
        rows.append({**letter.as_json(), "source": text, "replayed": "yes" if done else "no"})
    return rows


def _age(letter: Letter) -> tuple[int, int, int]:
    return letter.timestamp, letter.partition, letter.offset


def as_output(rows: list[Row]) -> list[Row]:
    """The rows of ``listed`` for programs."""
    return [
        {name: value == "yes" if name == "replayed" else value for name, value in row.items() if name != "source"} for row in rows
    ]


def counted(reader: LogReader, topic: str, choice: Choice) -> list[Row]:
    """A row for each group, source topic and reason, the most frequent first."""
    found: dict[tuple[str, str, str], list[int]] = {}
    for letter in letters(reader, topic, choice):
        key = letter.source.group, letter.source.topic, letter.reason or UNKNOWN
        at = found.setdefault(key, [0, letter.timestamp, letter.timestamp])
        at[0] += 1
        at[1], at[2] = min(at[1], letter.timestamp), max(at[2], letter.timestamp)
    return [
        {
            "group": group,
            "topic": source,
            "reason": reason,
            "count": count,
            "oldest": time_text(oldest),
            "newest": time_text(newest),
        }
        for (group, source, reason), (count, oldest, newest) in sorted(found.items(), key=lambda each: (-each[1][0], each[0]))
    ]


def shown(reader: LogReader, topic: str, partition: int, offset: int) -> dict[str, Any]:
    """All that there is to know of one dead letter. CommandFailed when there is none at this offset."""
    at = TopicPartition(topic, partition)
    first, end = reader.ranges(topic).get(at, (0, 0))
    record = record_at(reader, at, offset) if first <= offset < end else None
    letter = None if record is None else letter_of(partition, record)
    if letter is None:
        what = f"it has offsets {first} to {end - 1}" if record is None else "its headers do not say where it came from"
        raise CommandFailed(f"There is no dead letter at offset {offset} of {at}: {what}.")
    source = letter.source
    there = TopicPartition(source.topic, source.partition)
    target = reader.topic(source.topic)
    original = None
    if target is not None and source.partition < target[1]:
        low, high = reader.ranges(source.topic).get(there, (0, 0))
        original = Originals(reader).find(there, source.offset) if low <= source.offset < high else None
    replays = [
        {"time": time_text(entry.at_ms), "partition": entry.partition, "offset": entry.offset, "replays": entry.replays}
        for entry in entries(reader, topic)
        if target is not None and entry.source == source and entry.topic_id == uuid_to_text(target[0])
    ]
    return {
        "topic": topic,
        **letter.as_json(),
        "original": None if original is None else original_json(original),
        "replayed": replays[-1] if replays else None,
    }


def original_json(record: Record) -> dict[str, Any]:
    """The record in its topic."""
    return {
        "time": time_text(record.timestamp),
        "key": bytes_json(record.key),
        "value": bytes_json(record.value),
        "headers": headers_json(record.headers),
    }


def shown_text(found: dict[str, Any]) -> Iterator[str]:
    """The lines of ``show`` for a person."""
    yield f"{found['topic']}:{found['partition']}:{found['offset']}, written {found['time']}"
    yield f"group       {found['group']}"
    yield f"source      {found['source_topic']}:{found['source_partition']}:{found['source_offset']}"
    yield f"reason      {found['reason'] or UNKNOWN}"
    yield f"deliveries  {'-' if found['delivery_count'] is None else found['delivery_count']}"
    yield f"key         {_value(found['key'])}"
    yield f"value       {_value(found['value'])}"
    for header in found["headers"]:
        yield f"  {header['name']}: {_value(header['value'])}"
    original = found["original"]
    if original is None:
        yield "original    not in its topic any more"
    else:
        yield f"original    in its topic, of {original['time']}"
        yield f"  key: {_value(original['key'])}"
        yield f"  value: {_value(original['value'])}"
        for header in original["headers"]:
            yield f"  {header['name']}: {_value(header['value'])}"
    replayed = found["replayed"]
    if replayed is None:
        yield "replayed    no"
    else:
        where = f"partition {replayed['partition']}, offset {replayed['offset']}"
        yield f"replayed    {replayed['time']} to {where} (replay {replayed['replays']})"


def _value(value: Any) -> str:
    if value is None:
        return "null"
    return f"base64 {value['base64']}" if isinstance(value, dict) else str(value)
