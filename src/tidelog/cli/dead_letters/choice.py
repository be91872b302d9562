"""Choice: which dead letters a command is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tidelog.cli.dead_letters.letter import Letter, name_text
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.offset_reset import milliseconds, timestamp_ms


class Choice(NamedTuple):
    """A letter is chosen when it fits all that is not empty; of several groups, topics or reasons one is enough, of headers each
    must be there."""

    groups: frozenset[str] = frozenset()
    topics: Mapping[str, frozenset[int] | None] = {}
    """Source topics, with some of their partitions or all of them (None)."""
    reasons: tuple[str, ...] = ()
    """Parts of the reason, in lower case."""
    headers: tuple[tuple[str, bytes | None], ...] = ()
    """A name, and a value or any (None)."""
    key: bytes | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    """The first time that is too late."""

    def takes(self, letter: Letter) -> bool:
        """Whether the letter is chosen."""
        source, reason = letter.source, (letter.reason or "").lower()
        return (
            (not self.groups or source.group in self.groups)
            and (not self.topics or _within(self.topics.get(source.topic, frozenset()), source.partition))
            and (not self.reasons or any(part in reason for part in self.reasons))
            and all(_has(letter, name, value) for name, value in self.headers)
            and (self.key is None or letter.key == self.key)
            and (self.since_ms is None or letter.timestamp >= self.since_ms)
            and (self.until_ms is None or letter.timestamp < self.until_ms)
        )


def _within(partitions: frozenset[int] | None, partition: int) -> bool:
    return partitions is None or partition in partitions


def _has(letter: Letter, name: str, value: bytes | None) -> bool:
    return any(name_text(found) == name and value in (None, said) for found, said in letter.headers)


def choice_of(flags: Mapping[str, Any], now_ms: int) -> Choice:
    """The choice that the flags make. CommandFailed for a text that is none."""
    key = flags["key"]
    return Choice(
        groups=frozenset(flags["group"]),
        topics=_topics(flags["topic"]),
        reasons=tuple(text.lower() for text in flags["reason"]),
        headers=tuple(_header(text) for text in flags["header"]),
        key=None if key is None else key.encode(),
        since_ms=_time("--since", flags["since"], now_ms),
        until_ms=_time("--until", flags["until"], now_ms),
    )


def _topics(texts: Iterable[str]) -> dict[str, frozenset[int] | None]:
    found: dict[str, frozenset[int] | None] = {}
    for text in texts:
        topic, colon, numbers = text.rpartition(":")
        if not colon:
            found[text] = None
            continue
        if not all(number.isascii() and number.isdecimal() for number in numbers.split(",")):
            raise CommandFailed(f"--topic {text}: partitions are numbers, joined by commas: {topic}:0,1")
        before = found.get(topic, frozenset())
        found[topic] = None if before is None else before | {int(number) for number in numbers.split(",")}
    return found


def _header(text: str) -> tuple[str, bytes | None]:
    name, equals, value = text.partition("=")
    return name, value.encode() if equals else None


def _time(flag: str, text: str | None, now_ms: int) -> int | None:
    if text is None:
        return None
    try:
        return now_ms - milliseconds(text) if text[:1] in "Pp" else timestamp_ms(text)
    except CommandFailed:
        raise CommandFailed(
            f"{flag} {text}: give a time as YYYY-MM-DDThh:mm:ss, UTC without a zone, or how long ago it was as PT1H, P1D"
        ) from None
