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
from typing import Protocol

log = logging.getLogger(__name__)

NEARER = 0.1
"""The most this clock deviates from the speed of elapsed time."""
JUMP_MS = 60_000
"""Jumps from this size on are logged."""


class Clocks(Protocol):
    """The clocks of a node, in ms. Both are looked up for each question: a test that shifts the node's time replaces them."""

    now_ms: Callable[[], int]
    """The wall clock, which may jump."""

    def steady_ms(self) -> int:
        """Never goes back."""
        ...


class EvenClock:
    """Asked several times for each fetch: a question costs few calls."""

    __slots__ = ("_apart_ms", "_asked_ms", "_clocks", "_told_ms")

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self._told_ms = 0.0
        self._asked_ms: int | None = None
        """The steady clock at the last question; None before the first."""
        self._apart_ms = 0.0

    def now_ms(self) -> int:
        """Milliseconds since the epoch, approximately; never goes back."""
        asked_ms, steady_ms = self._asked_ms, self._clocks.steady_ms()
        if steady_ms == asked_ms:
            return int(self._told_ms)
        wall_ms = self._clocks.now_ms()
        self._asked_ms = steady_ms
        if asked_ms is None:
            self._told_ms = float(wall_ms)
            return wall_ms
        passed = steady_ms - asked_ms
        expected = self._told_ms + passed
        apart = wall_ms - expected
        most = passed * NEARER
        if -most <= apart <= most:
            self._told_ms = float(wall_ms)
        else:
            self._told_ms = expected + most if apart > 0 else expected - most
        if not -JUMP_MS < apart - self._apart_ms < JUMP_MS:
            way = "forward" if apart > self._apart_ms else "back"
            log.warning(
                "the machine's clock was set %s by %.0f s: timestamps of records follow at once; sessions, timeouts and "
                "retention are not moved by it",
                way,
                abs(apart - self._apart_ms) / 1000,
            )
        self._apart_ms = apart
        return int(self._told_ms)
