"""Where tidelog answers differently on purpose, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.security_matrix.table import Key


@dataclass(frozen=True)
class Difference:
    """A pattern of rows, and the reason. ``when`` stands in Apache Kafka's outcome, ``instead`` in tidelog's."""

    apis: str
    states: str
    when: str
    instead: str
    reason: str
    listeners: str = "*"

    def covers(self, key: Key, theirs: str, ours: str) -> bool:
        """Whether two outcomes of a cell differ in this way."""
        listener, api, _, state, _ = key
        named = fnmatchcase(listener, self.listeners) and any(fnmatchcase(api, each) for each in self.apis.split())
        return named and fnmatchcase(state, self.states) and self.when in theirs and self.instead in ours


ON_PURPOSE: tuple[Difference, ...] = ()


def reason(key: Key, theirs: str, ours: str) -> Difference | None:
    """The first that covers a cell."""
    return next((each for each in ON_PURPOSE if each.covers(key, theirs, ours)), None)


@dataclass
class Comparison:
    """All cells: equal, different on purpose, different and open."""

    equal: int
    on_purpose: dict[Key, tuple[str, str, Difference]]
    open: dict[Key, tuple[str, str]]


def compare(theirs: dict[Key, str], ours: dict[Key, str]) -> Comparison:
    """Apache Kafka's outcomes beside tidelog's; both must have the same cells."""
    found = Comparison(0, {}, {})
    for key in _same(theirs, ours):
        if theirs[key] == ours[key]:
            found.equal += 1
        elif (why := reason(key, theirs[key], ours[key])) is not None:
            found.on_purpose[key] = theirs[key], ours[key], why
        else:
            found.open[key] = theirs[key], ours[key]
    return found


def _same(theirs: dict[Key, str], ours: dict[Key, str]) -> Iterable[Key]:
    assert theirs.keys() == ours.keys(), sorted(theirs.keys() ^ ours.keys())[:5]
    return theirs
