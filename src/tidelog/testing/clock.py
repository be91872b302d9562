"""Time that a test can move: a node's sessions, retention and deadlines expire without waiting.

A ``Clock`` runs as the machine's does, plus an offset. ``advance`` is what a suspended machine sees: it is later at once, and
each timer that is due by then fires once, in the order of the deadlines. The last eleven minutes of a long step pass in steps of
one minute, so that duties of several rounds (a segment is rolled, then sealed, then deleted) complete as they would have. Only
the node's time moves, not that of its clients or its sockets (idle connections). A client with a session of 10 s and a heartbeat
every 3 s keeps its session over many small steps, and loses it over a step of 10 s.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from tidelog.server.runtime import LoopRuntime, system_now_ms

T = TypeVar("T")
SETTLE_TURNS = 3
"""How many idle turns of the loop count as settled after a step."""
ADVANCE_TIMEOUT_S = 30.0
STEP_MS = 60_000
WALKED_MS = 660_000
"""Two rounds of what Kafka does every five minutes, and a minute."""


def steps(total_ms: int) -> list[int]:
    """How a step is taken: its last eleven minutes by the minute, all before them at once."""
    tail = min(total_ms, WALKED_MS)
    whole, rest = divmod(tail, STEP_MS)
    walked = [STEP_MS] * whole + ([rest] if rest or not whole else [])
    return walked if tail == total_ms else [total_ms - tail, *walked]


class Clock:
    """One per broker, or one for several. ``start``: the initial time, else the machine's."""

    def __init__(self, start: datetime | None = None) -> None:
        if start is not None and start.tzinfo is None:
            raise ValueError(f"{start} has no time zone; say which: datetime(..., tzinfo=timezone.utc)")
        self._added_ms = 0 if start is None else int(start.timestamp() * 1000) - system_now_ms()
        self._moved_ms = 0
        self._guard = threading.Lock()
        self._runtimes: list[MovableRuntime] = []

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return system_now_ms() + self._added_ms

    def steady_ms(self) -> int:
        """Monotonic milliseconds."""
        return time.monotonic_ns() // 1_000_000 + self._moved_ms

    def advance(self, seconds: float) -> None:
        """Moves the time of all brokers of this clock forward; returns when they have done what was due. Not for their loops."""
        if seconds < 0:
            raise ValueError(f"time cannot be moved back (by {-seconds} s): what has expired stays so")
        for step in steps(round(seconds * 1000)):
            with self._guard:
                self._added_ms += step
                self._moved_ms += step
                futures = [asyncio.run_coroutine_threadsafe(runtime.ring(), runtime.loop) for runtime in self._runtimes]
            for future in futures:
                future.result(ADVANCE_TIMEOUT_S)

    def attach(self, runtime: MovableRuntime) -> None:
        """Its timers follow this clock from now on."""
        with self._guard:
            self._runtimes.append(runtime)

    def detach(self, runtime: MovableRuntime) -> None:
        """Its timers no longer follow this clock."""
        with self._guard:
            self._runtimes = [each for each in self._runtimes if each is not runtime]


class _Timer:
    """A deadline on the clock, with an alarm of the loop for when the clock is not moved."""

    __slots__ = ("alarm", "callback", "deadline_ms", "runtime")

    def __init__(self, runtime: MovableRuntime, deadline_ms: float, callback: Callable[[], object]) -> None:
        self.runtime = runtime
        self.deadline_ms = deadline_ms
        self.callback = callback
        self.alarm: asyncio.TimerHandle | None = None

    def set(self, now_ms: float) -> None:
        """Sets the alarm for the remaining time."""
        if self.alarm is not None:
            self.alarm.cancel()
        self.alarm = self.runtime.loop.call_later(max(0.0, self.deadline_ms - now_ms) / 1000, self.ring)

    def ring(self) -> None:
        """Fires now."""
        self.cancel()
        self.callback()

    def cancel(self) -> None:
        """Cancels the timer."""
        self.runtime.timers.pop(self, None)
        if self.alarm is not None:
            self.alarm.cancel()


class MovableRuntime(LoopRuntime):
    """A node's runtime on a ``Clock``."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        super().__init__(loop)
        self.clock = clock
        self.now_ms = clock.now_ms
        self.timers: dict[_Timer, None] = {}
        self._jobs = 0
        clock.attach(self)

    def steady_ms(self) -> int:
        return self.clock.steady_ms()

    def even_ms(self) -> int:
        """A test moves all clocks together, on purpose: sessions and retention must see it at once."""
        return self.clock.now_ms()

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> _Timer:
        now_ms = self.steady_ms()
        timer = _Timer(self, now_ms + delay_s * 1000, callback)
        self.timers[timer] = None
        timer.set(now_ms)
        return timer

    def run_blocking(self, job: Callable[[], T]) -> asyncio.Future[T]:
        return self._counted(super().run_blocking(job))

    def run_long(self, job: Callable[[], T]) -> asyncio.Future[T]:
        return self._counted(super().run_long(job))

    def _counted(self, future: asyncio.Future[T]) -> asyncio.Future[T]:
        self._jobs += 1
        future.add_done_callback(self._job_done)
        return future

    def _job_done(self, _: asyncio.Future[Any]) -> None:
        self._jobs -= 1

    async def ring(self) -> None:
        """After the clock was moved: fires what is due, resets the rest, then waits until the resulting work is done."""
        now_ms = self.steady_ms()
        for timer in sorted(self.timers, key=lambda each: each.deadline_ms):
            if timer not in self.timers:
                continue  # cancelled by a timer that fired before it
            if timer.deadline_ms <= now_ms:
                timer.ring()
            else:
                timer.set(now_ms)
        quiet = 0
        while quiet < SETTLE_TURNS:
            if self._jobs:
                # threads do not turn the loop; their results do
                await asyncio.sleep(0.001)
                quiet = 0
            else:
                await asyncio.sleep(0)
                quiet += 1

    async def close(self) -> None:
        self.clock.detach(self)
        for timer in list(self.timers):
            timer.cancel()
        await super().close()
