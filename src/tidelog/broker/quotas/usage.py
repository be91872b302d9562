"""What was measured of whom, within bounds: whoever invents client ids must not fill the memory.

Forgotten is who was idle for an hour, as in Kafka, and, where there are too many, who was idle longest. Who is forgotten begins
anew with nothing used.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

IDLE_MS = 3_600_000
MOST = 10_000
"""Some kilobytes each when it is in use all the time."""

K = TypeVar("K")
V = TypeVar("V")


class Usage(Generic[K, V]):
    """By whom, what ``make`` made when it was first asked for."""

    __slots__ = ("_make", "_most", "_used")

    def __init__(self, make: Callable[[], V], most: int = MOST) -> None:
        self._make = make
        self._most = most
        self._used: OrderedDict[K, tuple[int, V]] = OrderedDict()
        """When it was last used, and what it is; longest idle first."""

    def __len__(self) -> int:
        return len(self._used)

    def of(self, key: K, now_ms: int) -> V:
        """It is used now."""
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
        """Those that were idle for too long."""
        used = self._used
        while used and now_ms - next(iter(used.values()))[0] >= IDLE_MS:
            used.popitem(last=False)

    def items(self) -> Iterator[tuple[K, V]]:
        """All that is known."""
        return ((key, value) for key, (_, value) in self._used.items())
