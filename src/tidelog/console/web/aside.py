"""A client on a loop of its own, in a thread: answers with many thousand rows are decoded there, and no page waits for that."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import TypeVar

from tidelog.client import AdminClient
from tidelog.client.calls import Call

T = TypeVar("T")


class Aside:
    """Begins with the first call. Belongs to the loop that makes the calls."""

    def __init__(self, bootstrap: str, settings: Mapping[str, str]) -> None:
        self._bootstrap, self._settings = bootstrap, settings
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._admin: AdminClient | None = None

    async def run(self, call: Call[T]) -> T:
        """The call's result; the call's own code runs in the thread."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._serve, args=(self._loop,), name="console-aside", daemon=True)
            self._thread.start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._run(call), self._loop))

    async def close(self) -> None:
        """Ends the client and the thread."""
        loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._end(), loop))
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join)

    async def _run(self, call: Call[T]) -> T:
        if self._admin is None:
            self._admin = AdminClient(self._bootstrap, self._settings)
        return await self._admin.run(call)

    async def _end(self) -> None:
        if self._admin is not None:
            await self._admin.close()
            self._admin = None

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.close()
