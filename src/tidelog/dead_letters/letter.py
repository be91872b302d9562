"""A dead letter as a share group's broker writes it (KIP-1191): where its record came from, and why the group gave it up."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from tidelog.records.record import Headers, Record

TOPIC: Final = "__dlq.errors.topic"
PARTITION: Final = "__dlq.errors.partition"
OFFSET: Final = "__dlq.errors.offset"
GROUP: Final = "__dlq.errors.group"
COUNT: Final = "__dlq.errors.delivery.count"
MESSAGE: Final = "__dlq.errors.message"
UNKNOWN: Final = "(unknown)"
LONGEST_NUMBER: Final = 19
"""Digits of an offset: anyone may write to a dead-letter topic, and Python refuses to read numbers of thousands of digits."""


class Source(NamedTuple):
    """The record that a group gave up."""

    group: str
    topic: str
    partition: int
    offset: int


class Letter(NamedTuple):
    """One dead letter. ``partition``, ``offset`` and ``timestamp`` (ms) are its own, in the dead-letter topic; ``key`` and
    ``value`` are those of the record if they were copied."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    source: Source
    delivery_count: int | None
    reason: str | None

    @property
    def copied(self) -> bool:
        """Whether it has the key or the value of the record."""
        return self.key is not None or self.value is not None

    def as_json(self) -> dict[str, Any]:
        """What ``--output json`` prints."""
        return {
            "partition": self.partition,
            "offset": self.offset,
            "time": time_text(self.timestamp),
            "group": self.source.group,
            "source_topic": self.source.topic,
            "source_partition": self.source.partition,
            "source_offset": self.source.offset,
            "delivery_count": self.delivery_count,
            "reason": self.reason,
            "key": bytes_json(self.key),
            "value": bytes_json(self.value),
            "headers": headers_json(self.headers),
        }


def letter_of(partition: int, record: Record) -> Letter | None:
    """The dead letter in a record of a dead-letter topic; None when its headers do not say where it came from."""
    found = {name: value for name, value in record.headers if isinstance(name, str)}
    topic, group = _text(found.get(TOPIC)), _text(found.get(GROUP))
    at, offset = _number(found.get(PARTITION)), _number(found.get(OFFSET))
    if topic is None or group is None or at is None or offset is None:
        return None
    return Letter(
        partition,
        record.offset,
        record.timestamp,
        record.key,
        record.value,
        record.headers,
        Source(group, topic, at, offset),
        _number(found.get(COUNT)),
        _text(found.get(MESSAGE)),
    )


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _number(value: bytes | None) -> int | None:
    text = _text(value)
    return int(text) if text is not None and len(text) <= LONGEST_NUMBER and text.isascii() and text.isdecimal() else None


def time_text(timestamp: int) -> str | None:
    """A time in ms as ISO 8601 in UTC; None for a time that is no date."""
    try:
        return datetime.fromtimestamp(timestamp / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return None


def bytes_text(value: bytes | None) -> str | None:
    """Bytes for a person: what is not UTF-8 as escapes."""
    return None if value is None else value.decode("utf-8", "backslashreplace")


def bytes_json(value: bytes | None) -> Any:
    """Bytes for a program: a text when they are UTF-8, else an object with ``base64``."""
    if value is None:
        return None
    text = _text(value)
    return {"base64": base64.b64encode(value).decode()} if text is None else text


def headers_json(headers: Headers) -> list[dict[str, Any]]:
    """Headers in order: a name may be there several times."""
    return [{"name": name_text(name), "value": bytes_json(value)} for name, value in headers]


def name_text(name: str | bytes) -> str:
    """The name of a header as text."""
    raw = name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "backslashreplace")
