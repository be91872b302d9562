"""Blocking jobs whose end the loop acts on, such as flushes: run in threads, and waited for before the logs are closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tidelog.server.runtime import LoopRuntime


class Background:
    """The jobs of one node that are running."""

    def __init__(self, runtime: LoopRuntime) -> None:
        self._runtime = runtime
        self._running: set[asyncio.Future[None]] = set()

    def run(self, job: Callable[[], None], done: Callable[[int], None]) -> None:
        """Runs ``job`` in a thread, then ``done`` on the loop with the time in ms (``even_ms``). An error of ``job`` is raised in
        the loop's exception handler, and ``done`` is not called."""

        def finished(future: asyncio.Future[None]) -> None:
            self._running.discard(future)
            if not future.cancelled():
                future.result()
                done(self._runtime.even_ms())

        future = self._runtime.run_blocking(job)
        self._running.add(future)
        future.add_done_callback(finished)

    async def drained(self) -> None:
        """Returns when no job runs. The end of one may start the next."""
        while self._running:
            await asyncio.wait(self._running)
