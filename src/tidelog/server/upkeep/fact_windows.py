"""What counters and sketches say about the last seconds, for readers who come when they like.

Nothing runs while no reader comes: a reading that is at least ``WINDOW_S`` younger than the last mark sets a new mark, and the
numbers cover the time since the mark before. So a reader that comes every few seconds sees five to ten of them, even if there are
several. After a long silence, that mark is older than ``LONG_S``: then the first reading covers the silence, and the next ones
the time since the first. The first reading of all covers the time since the start.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Final, Generic, TypeVar

from tidelog.broker.usage import Amounts, Client, Usage
from tidelog.metrics.heavy_hitters import Entry

WINDOW_S: Final = 5.0
LONG_S: Final = 4 * WINDOW_S
SHORT_S: Final = 1.0
"""Less says nothing, even after a long silence."""

K = TypeVar("K", bound=Hashable)
_Mark = tuple[float, Mapping[K, tuple[int, ...]]]


class Growth(Generic[K]):
    """How much counters grew. Each key has as many as any other."""

    def __init__(self, now_s: float) -> None:
        self._marks: tuple[_Mark[K], _Mark[K]] = ((now_s, {}), (now_s, {}))
        """The older one, and the newer one."""

    def since(self, now_s: float, counters: Mapping[K, tuple[int, ...]]) -> tuple[float, dict[K, tuple[int, ...]]]:
        """Seconds, and for each key what it grew by. A counter that fell began again at 0."""
        older, newer = self._marks
        before_s, before = newer if _is_better(older[0], newer[0], now_s) else older
        if now_s - newer[0] >= WINDOW_S:
            self._marks = (newer, (now_s, counters))
        grown: dict[K, tuple[int, ...]] = {}
        for key, values in counters.items():
            old = before.get(key)
            grown[key] = values if old is None else tuple(map(_grown, values, old))
        return now_s - before_s, grown


class BusiestClients:
    """The clients of several listeners."""

    def __init__(self, now_s: float) -> None:
        self._marks = (now_s, now_s)

    def since(self, now_s: float, accounts: Iterable[Usage]) -> tuple[float, list[Entry[Client]]]:
        """Seconds, and the clients of that time, the busiest first."""
        accounts = list(accounts)
        older_s, newer_s = self._marks
        latest = _is_better(older_s, newer_s, now_s)
        found: dict[Client, Entry[Client]] = {}
        for each in accounts:
            for sketch in (each.now,) if latest else (each.before, each.now):
                for entry in sketch.entries():
                    total = found.setdefault(entry.key, Entry(entry.key, 0, len(Amounts._fields)))
                    total.weight += entry.weight
                    total.error += entry.error
                    total.amounts = [a + b for a, b in zip(total.amounts, entry.amounts, strict=True)]
        if now_s - newer_s >= WINDOW_S:
            self._marks = (newer_s, now_s)
            for each in accounts:
                each.turn()
        return now_s - (newer_s if latest else older_s), sorted(found.values(), key=lambda entry: -entry.weight)


def _is_better(older_s: float, newer_s: float, now_s: float) -> bool:
    """Whether the newer one of two marks is the better one to compare with."""
    return newer_s - older_s > LONG_S and now_s - newer_s >= SHORT_S


def _grown(value: int, old: int) -> int:
    return value if value < old else value - old
