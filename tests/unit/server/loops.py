"""What runs on the event loop of a test: within a limit, and nothing is left when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tidelog.server.runtime import LoopRuntime
from tidelog.server.serving.listener import Listener

LIMIT_S = 20.0


def run(runtime: LoopRuntime, main: Callable[[], Awaitable[Any]], limit_s: float = LIMIT_S) -> Any:
    """What ``main`` returns. TimeoutError after ``limit_s``."""

    async def bounded() -> Any:
        return await asyncio.wait_for(main(), limit_s)

    return runtime.loop.run_until_complete(bounded())


async def until(what: Callable[[], Any]) -> Any:
    """What ``what`` returns once it is true; the limit of the test is the only one."""
    while not (found := what()):  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    return found


def end(*listeners: Listener) -> None:
    """Closes the listeners with their connections."""
    for listener in listeners:
        listener.stop_accepting()
        for connection in list(listener.connections):
            connection.close()


def finish(runtime: LoopRuntime, *listeners: Listener) -> None:
    """Closes the listeners with their connections, then the runtime and its loop."""
    end(*listeners)
    runtime.loop.run_until_complete(runtime.close())
    runtime.loop.close()
