"""Usage by client, within bounds: a client that invents client ids must not fill the memory.

As in Kafka, entries idle for an hour are dropped; when there are too many, those idle longest go first. A dropped client starts
again at zero usage.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

IDLE_MS = 3_600_000
MOST = 10_000
"""Each takes a few kilobytes when in constant use."""

K = TypeVar("K")
V = TypeVar("V")


class Usage(Generic[K, V]):
    """Usage by key; ``make`` creates an entry on first use."""

    __slots__ = ("_make", "_most", "_used")

    def __init__(self, make: Callable[[], V], most: int = MOST) -> None:
        self._make = make
        self._most = most
        self._used: OrderedDict[K, tuple[int, V]] = OrderedDict()
        """(last use in ms, entry) by key; longest idle first."""

    def __len__(self) -> int:
        return len(self._used)

    def of(self, key: K, now_ms: int) -> V:
        """The entry of ``key``, created if needed; counts as a use."""
        used = self._used
        known = used.get(key)
        if known is None:
            if len(used) >= self._most:
                used.popitem(last=False)
            value = self._make()
        else:
            value = known[1]
        used[key] = now_ms, value
        used.move_to_end(key)
        self.forget(now_ms)
        return value

    def forget(self, now_ms: int) -> None:
        """Drop the entries that were idle for too long."""
        used = self._used
        while used and now_ms - next(iter(used.values()))[0] >= IDLE_MS:
            used.popitem(last=False)

    def items(self) -> Iterator[tuple[K, V]]:
        return ((key, value) for key, (_, value) in self._used.items())
