"""The even clock: the wall clock's time without its jumps, for what depends on how old something is.

Somebody sets the machine's clock, by hours even. Timestamps of records follow at once: they are of the wall clock. But sessions,
transaction timeouts, in-sync replicas, throttles and retention ask how long ago something was; a clock set forward would end them
all in that moment, and one set back would never end them. This clock goes as fast as time passes, and comes nearer to the wall
clock by no more than a tenth of that: a jump of one hour is made up for within ten, a correction of some milliseconds at once.
The age of records is the lesser of both clocks' answers: behind a clock that was set back, records of now have times of the past.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

log = logging.getLogger(__name__)

NEARER = 0.1
"""How much faster or slower than time itself."""
JUMP_MS = 60_000
"""From here on somebody is told."""


class EvenClock:
    """``wall_ms`` may be set; ``steady_ms`` only grows. Both in ms."""

    __slots__ = ("_apart_ms", "_asked_ms", "_steady_ms", "_told_ms", "_wall_ms")

    def __init__(self, wall_ms: Callable[[], int], steady_ms: Callable[[], int]) -> None:
        self._wall_ms = wall_ms
        self._steady_ms = steady_ms
        self._told_ms: float | None = None
        self._asked_ms = 0
        self._apart_ms = 0.0

    def now_ms(self) -> int:
        """Milliseconds since the epoch, more or less; never less than before."""
        steady_ms = self._steady_ms()
        if self._told_ms is None:
            self._told_ms, self._asked_ms = float(self._wall_ms()), steady_ms
        passed = steady_ms - self._asked_ms
        if not passed:
            return int(self._told_ms)
        self._asked_ms = steady_ms
        expected = self._told_ms + passed
        apart = self._wall_ms() - expected
        most = passed * NEARER
        self._told_ms = expected + max(-most, min(most, apart))
        if abs(apart - self._apart_ms) >= JUMP_MS:
            way = "forward" if apart > self._apart_ms else "back"
            log.warning(
                "the machine's clock was set %s by %.0f s: timestamps of records follow at once; sessions, timeouts and "
                "retention are not moved by it",
                way,
                abs(apart - self._apart_ms) / 1000,
            )
        self._apart_ms = apart
        return int(self._told_ms)
