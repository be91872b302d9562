from __future__ import annotations

import asyncio

import uvicorn

from tidelog.console.web.ending import Ending
from tidelog.console.web.serving import Server


def test_streams_are_told_of_the_end_before_uvicorn_waits_for_them() -> None:
    async def application(scope: object, receive: object, send: object) -> None:
        raise AssertionError("no request")

    async def job() -> None:
        ending = Ending()
        found = Server(uvicorn.Config(application, port=0, lifespan="off", log_level="critical"), ending)
        serving = asyncio.get_running_loop().create_task(found.serve())
        while not found.started:  # noqa: ASYNC110
            await asyncio.sleep(0)
        found.should_exit = True
        await ending.wait()
        await serving

    asyncio.run(job())
