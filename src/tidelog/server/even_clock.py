"""The even clock: the wall clock without its jumps, for the age of things.

When the machine's clock is set, even by hours, the timestamps of new records follow immediately, because they are wall-clock
time. But sessions, transaction timeouts, in-sync replicas, throttles and retention depend on elapsed time: a clock set forward
would expire them all in that moment, and one set back would never expire them. This clock runs at the speed of elapsed time and
approaches the wall clock by at most a tenth of that: a jump of one hour is made up within ten hours, a correction of some
milliseconds almost immediately. The age of records uses the earlier of the two clocks, because after the wall clock was set back,
new records have past timestamps.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

log = logging.getLogger(__name__)

NEARER = 0.1
"""The most this clock deviates from the speed of elapsed time."""
JUMP_MS = 60_000
"""Jumps from this size on are logged."""


class EvenClock:
    """``wall_ms`` may jump; ``steady_ms`` never goes back. Both in ms."""

    __slots__ = ("_apart_ms", "_asked_ms", "_steady_ms", "_told_ms", "_wall_ms")

    def __init__(self, wall_ms: Callable[[], int], steady_ms: Callable[[], int]) -> None:
        self._wall_ms = wall_ms
        self._steady_ms = steady_ms
        self._told_ms: float | None = None
        self._asked_ms = 0
        self._apart_ms = 0.0

    def now_ms(self) -> int:
        """Milliseconds since the epoch, approximately; never goes back."""
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
