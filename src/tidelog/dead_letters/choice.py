"""Choice: which dead letters are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tidelog.dead_letters.letter import Letter, name_text


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
