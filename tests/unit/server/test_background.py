from __future__ import annotations

import asyncio
import threading

from tidelog.server.background import Background
from tidelog.server.runtime import LoopRuntime


def test_a_job_whose_end_starts_another_is_waited_for_with_it(runtime: LoopRuntime) -> None:
    background = Background(runtime)
    done: list[str] = []
    gate = threading.Event()

    def first_done(now_ms: int) -> None:
        assert abs(now_ms - runtime.even_ms()) < 60_000
        done.append("first")
        background.run(lambda: None, lambda _: done.append("second"))

    async def main() -> None:
        background.run(lambda: gate.wait() and None, first_done)
        drained = asyncio.ensure_future(background.drained())
        await asyncio.sleep(0)
        assert not drained.done()
        gate.set()
        await drained
        assert done == ["first", "second"]
        await background.drained()

    runtime.loop.run_until_complete(main())
