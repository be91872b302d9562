"""The choice of dead letters that the flags of a command make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.offset_reset import milliseconds, timestamp_ms
from tidelog.dead_letters.choice import Choice


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
