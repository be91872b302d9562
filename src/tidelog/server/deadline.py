"""A deadline that moves with every event, mostly later: the loop's timer is only replaced when it has to ring earlier."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tidelog.server.runtime import LoopRuntime

NEVER_MS = 1 << 32
"""A delay of this many ms or more means no deadline."""


class Deadline:
    """Calls ``ring`` at the latest ``delay_ms`` after the last ``after``; it may also call it earlier, without need."""

    def __init__(self, runtime: LoopRuntime, ring: Callable[[], None]) -> None:
        self._runtime = runtime
        self._ring_it = ring
        self._alarm: asyncio.TimerHandle | None = None
        self._at_ms = 0

    def after(self, delay_ms: int) -> None:
        """Sets the deadline to ``delay_ms`` of real time from now."""
        if delay_ms >= NEVER_MS:
            return
        at_ms = self._runtime.real_ms() + max(delay_ms, 0)
        if self._alarm is not None:
            if self._at_ms <= at_ms:
                return
            self._alarm.cancel()
        self._at_ms = at_ms
        self._alarm = self._runtime.loop.call_later(max(delay_ms, 0) / 1000, self._ring)

    def cancel(self) -> None:
        """Cancels the timer."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _ring(self) -> None:
        self._alarm = None
        self._ring_it()
