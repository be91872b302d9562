from __future__ import annotations

import asyncio

from tidelog.console.web.clusters import Cluster


def test_a_broker_that_does_not_answer_is_named() -> None:
    async def run() -> None:
        cluster = Cluster("main", "localhost:1", {}, lambda: 0)

        async def ask(broker: int) -> int:
            if broker == 2:
                raise TimeoutError
            return broker

        assert await cluster.each([1, 2, 3], ask) == ({1: 1, 3: 3}, (("broker 2", "the cluster did not answer in time"),))
        assert cluster.history("g") is cluster.history("g")
        await cluster.close()

    asyncio.run(run())
