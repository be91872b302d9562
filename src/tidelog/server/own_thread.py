"""Jobs in threads of their own: those that wait for a machine outside of the cluster, such as the one that gives out tokens.

The worker threads of ``LoopRuntime`` sync and read log files. Such a job would hold one of them for as long as that machine
hangs, and a stop of the node would wait for it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_own_thread(job: Callable[[], T], name: str) -> asyncio.Future[T]:
    """Runs ``job`` in a new thread and returns its result, or its exception, to the running loop. Neither the loop nor the end of
    the process waits for it. RuntimeError when no thread can be started."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # the thread cannot be cancelled

    def run() -> None:
        try:
            result = job()
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(result)

    threading.Thread(target=run, name=name, daemon=True).start()
    return asyncio.wrap_future(done)
