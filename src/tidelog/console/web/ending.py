"""The end of a console: streams end at once, other requests get a little time, so that the server has none to cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tidelog.console.web.problems import Problem

GRACE_S: Final = 2.0
"""What a request that is no stream may still take: less than uvicorn waits."""
STREAM: Final = "the console was ended"
REQUEST: Final = "the console was ended before the answer. Whether a change was made is not known: look before you repeat it."


class Ending:
    """Whether the console ends, and the time limits of its requests, which that shortens."""

    def __init__(self) -> None:
        self._begun = asyncio.Event()
        self._limits: set[asyncio.Timeout] = set()

    def begin(self) -> None:
        """Streams end now, requests within ``GRACE_S``."""
        self._begun.set()
        latest = asyncio.get_running_loop().time() + GRACE_S
        for each in self._limits:
            when = each.when()
            if when is None or when > latest:
                each.reschedule(latest)

    async def wait(self) -> None:
        """Returns when the console ends."""
        await self._begun.wait()

    @asynccontextmanager
    async def limit(self, seconds: float) -> AsyncIterator[None]:
        """A time limit of a request: TimeoutError. Problem (503) where the console's end shortened it."""
        try:
            async with asyncio.timeout(min(seconds, GRACE_S) if self._begun.is_set() else seconds) as timeout:
                self._limits.add(timeout)
                try:
                    yield
                finally:
                    self._limits.discard(timeout)
        except TimeoutError:
            if self._begun.is_set():
                raise Problem(503, REQUEST) from None
            raise
