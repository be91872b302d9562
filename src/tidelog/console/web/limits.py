"""What all streams together may cost: how many at a time, and bytes a second."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from tidelog.console.web.problems import Problem


class Gate:
    """At most ``most`` at a time; one more is refused, not queued."""

    def __init__(self, most: int, what: str) -> None:
        self._most = most
        self._what = what
        self.open = 0

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Problem (429) when it is full."""
        if self.open >= self._most:
            raise Problem(429, f"{self._most} {self._what} are under way already; end one, or try again", retry_after_s=2)
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1


class Pace:
    """Bytes a second that searches may read together, averaged over a second or so."""

    def __init__(
        self,
        bytes_per_second: int,
        now: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """``now``: monotonic seconds."""
        self._rate = bytes_per_second
        self._now = now
        self._sleep = sleep
        self._free_at = 0.0

    async def __call__(self, size: int) -> None:
        """Waits until these bytes, which were read, are paid for."""
        now = self._now()
        self._free_at = max(self._free_at, now - 1.0) + size / self._rate
        if self._free_at > now:
            await self._sleep(self._free_at - now)
