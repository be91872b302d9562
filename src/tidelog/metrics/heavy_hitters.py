"""The largest of many keys in a fixed number of entries: the Space-Saving sketch (Metwally, Agrawal and El Abbadi, 2005).

A key that has no entry when all are taken replaces the one of least weight, and inherits its weight as ``error``. With m entries
and a total weight W, for each key of true weight t:

- if it has an entry: ``t <= weight <= t + error``, and ``error <= W / m``;
- if it has none: ``t <= W / m``.

Proof. Each ``add`` raises the sum of all entries' weights by what was added, a replacement included, so that the sum is W; the
least of m weights is at most W / m, at every moment, and W only grows. ``error`` is such a least weight. Once all entries are
taken the least weight never falls: a replacement and an addition only raise weights. A key's t was at most its entry's weight
when that was replaced, which was the least one, so t without an entry, and what an entry does not count of t, are at most the
least weight since. Hence every key with more than W / m has an entry.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Entry(Generic[K]):
    """One key. ``amounts`` count from the moment when it got its entry, so they are never too large."""

    __slots__ = ("amounts", "error", "key", "weight")

    def __init__(self, key: K, error: int, amounts: int) -> None:
        self.key = key
        self.weight = error
        self.error = error
        self.amounts = [0] * amounts


class HeavyHitters(Generic[K]):
    """A sketch of at most ``capacity`` entries. ``amounts``: how many numbers are added up beside the weight of a key."""

    __slots__ = ("_amounts", "_by_weight", "_capacity", "_entries", "_made", "total")

    def __init__(self, capacity: int, amounts: int = 0) -> None:
        assert capacity > 0
        self.total = 0
        """The sum of all weights."""
        self._capacity = capacity
        self._amounts = amounts
        self._entries: dict[K, Entry[K]] = {}
        self._by_weight: list[tuple[int, int, Entry[K]]] = []
        """A heap with one item an entry. The weight in it may be an older, smaller one; ``_least`` corrects it."""
        self._made = 0

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, key: K, weight: int, amounts: Iterable[int] = ()) -> None:
        """Adds ``weight``, which is not negative, and ``amounts`` to the key."""
        assert weight >= 0
        self.total += weight
        entry = self._entries.get(key)
        if entry is None:
            entry = self._admit(key)
        entry.weight += weight
        for at, amount in enumerate(amounts):
            entry.amounts[at] += amount

    def entries(self) -> list[Entry[K]]:
        """All entries, the heaviest first; of equal weights, the one that came first."""
        return sorted(self._entries.values(), key=lambda entry: -entry.weight)

    def _admit(self, key: K) -> Entry[K]:
        """A new entry for the key, in place of the lightest one when there is no room."""
        self._made += 1
        if len(self._entries) < self._capacity:
            entry = Entry(key, 0, self._amounts)
            heapq.heappush(self._by_weight, (0, self._made, entry))
        else:
            least = self._least()
            del self._entries[least.key]
            entry = Entry(key, least.weight, self._amounts)
            heapq.heapreplace(self._by_weight, (entry.weight, self._made, entry))
        self._entries[key] = entry
        return entry

    def _least(self) -> Entry[K]:
        """The lightest entry, which is then the first of the heap. Each turn makes one item exact, so it ends."""
        heap = self._by_weight
        while True:
            known, made, entry = heap[0]
            if known == entry.weight:
                return entry
            heapq.heapreplace(heap, (entry.weight, made, entry))
