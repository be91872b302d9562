"""The JSON files of ``reassign-partitions``: the replicas for partitions, and the topics to spread."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidelog.cli.refusal import CommandFailed

Partition = tuple[str, int]
"""Topic and partition."""
Replica = tuple[str, int, int]
"""Topic, partition and broker."""
ANY = "any"
"""In place of a log dir: the broker chooses."""
VERSION = 1


@dataclass(frozen=True, slots=True)
class Proposal:
    """The replicas of each partition, preferred leader first, and the requested log dirs by path."""

    replicas: Mapping[Partition, tuple[int, ...]]
    log_dirs: Mapping[Replica, str] = field(default_factory=dict)


def parse_proposal(text: str) -> Proposal:
    """A reassignment file. CommandFailed names the first error."""
    replicas: dict[Partition, tuple[int, ...]] = {}
    log_dirs: dict[Replica, str] = {}
    for row in _rows(text, "partitions"):
        topic, index = str(_field(row, "topic")), _number(row, "partition")
        wanted = _field(row, "replicas")
        if not isinstance(wanted, list) or not all(isinstance(each, int) for each in wanted):
            raise CommandFailed(f"The replicas of {topic}-{index} are {wanted!r}, and must be a list of broker ids")
        if (topic, index) in replicas:
            raise CommandFailed(f"{topic}-{index} is in the file twice: keep one entry")
        if not wanted:
            raise CommandFailed(f'{topic}-{index} has no replicas: list broker ids under "replicas"')
        twice = sorted({each for each in wanted if wanted.count(each) > 1})
        if twice:
            named = ",".join(map(str, twice))
            raise CommandFailed(f"{topic}-{index} lists a broker more than once: {named}")
        replicas[topic, index] = tuple(wanted)
        dirs = row.get("log_dirs") or [ANY] * len(wanted)
        if len(dirs) != len(wanted):
            raise CommandFailed(
                f"{topic}-{index} names {len(dirs)} log dirs for {len(wanted)} replicas; give one for each, or none"
            )
        log_dirs |= {(topic, index, broker): path for broker, path in zip(wanted, dirs, strict=True) if path != ANY}
    if not replicas:
        raise CommandFailed('The file reassigns nothing: list partitions under "partitions"')
    return Proposal(replicas, log_dirs)


def parse_topics(text: str) -> list[str]:
    """A file of topics to move. CommandFailed when it is malformed or names a topic twice."""
    topics = [str(_field(row, "topic")) for row in _rows(text, "topics")]
    twice = sorted({topic for topic in topics if topics.count(topic) > 1})
    if twice:
        raise CommandFailed(f"The file names these topics more than once: {','.join(twice)}")
    return topics


def as_json(replicas: Mapping[Partition, Iterable[int]], log_dirs: Mapping[Replica, str]) -> str:
    """A reassignment file; replicas without a known log dir get any."""
    rows = [
        {
            "topic": topic,
            "partition": index,
            "replicas": list(brokers),
            "log_dirs": [log_dirs.get((topic, index, broker), ANY) for broker in brokers],
        }
        for (topic, index), brokers in sorted(replicas.items())
    ]
    return json.dumps({"version": VERSION, "partitions": rows}, separators=(",", ":"))


def _rows(text: str, name: str) -> list[dict[str, Any]]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise CommandFailed(f"The file is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise CommandFailed("The file is JSON, but not an object: it begins with {")
    if document.get("version", VERSION) != VERSION:
        raise CommandFailed(f"Not supported version field value {document['version']}")
    rows = document.get(name, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise CommandFailed(f"{name!r} must be a list of objects")
    return rows


def _field(row: dict[str, Any], name: str) -> Any:
    if name not in row:
        raise CommandFailed(f"No such field exists: `{name}`")
    return row[name]


def _number(row: dict[str, Any], name: str) -> int:
    value = _field(row, name)
    if not isinstance(value, int):
        raise CommandFailed(f"`{name}` is {value!r}, and must be a number")
    return value
