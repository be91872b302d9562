from __future__ import annotations

import asyncio
import threading

import pytest

from tidelog.server.own_thread import in_own_thread


def test_a_result_and_an_exception_come_back() -> None:
    async def main() -> None:
        assert await in_own_thread(lambda: threading.current_thread().name, "a login") == "a login"
        with pytest.raises(ZeroDivisionError):
            await in_own_thread(lambda: 1 // 0, "a login")

    asyncio.run(main())


def test_jobs_run_side_by_side_and_no_one_waits_for_those_that_hang() -> None:
    release, both = threading.Event(), threading.Barrier(2)

    def hang() -> None:
        both.wait(20)
        release.wait()

    async def main() -> None:
        waiting = [in_own_thread(hang, "hanging") for _ in range(2)]
        await in_own_thread(lambda: None, "quick")
        for each in waiting:
            each.cancel()

    try:
        asyncio.run(main())  # ends although the threads have not
    finally:
        release.set()
