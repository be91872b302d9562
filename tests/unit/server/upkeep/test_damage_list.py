"""The scrub and the repair write the list of damaged segments at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from sim.workload import DIRECTORY, append, batch, new_log
from tidelog.server.upkeep.damage_list import write_damage_list
from tidelog.storage.known_damage import read_damaged
from tidelog.storage.log_config import LogConfig
from tidelog.storage.rotten_range import RottenRange
from tidelog.testing.simulation.disk import SimDisk


class SlowDisk:
    """Jobs run when the test says so."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], bool], asyncio.Future[bool]]] = []

    def run_long(self, job: Callable[[], bool]) -> asyncio.Future[bool]:
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.jobs.append((job, future))
        return future

    async def run_one(self) -> None:
        job, future = self.jobs.pop(0)
        future.set_result(job())
        await asyncio.sleep(0)
        await asyncio.sleep(0)


def test_one_of_them_writes_and_looks_again() -> None:
    async def story() -> None:
        disk, runtime = SimDisk(), SlowDisk()
        log = new_log(disk, LogConfig(segment_bytes=300))
        for _ in range(6):
            append(log, batch(2, value=bytes(100)))
        first, second = log.segments[:2]
        slow: Any = runtime
        first.rotten = (RottenRange(0, 10, 0, 1),)
        scrub = asyncio.create_task(write_damage_list(slow, log))
        await asyncio.sleep(0)
        second.rotten = (RottenRange(0, 10, second.base_offset, second.next_offset),)
        repair = asyncio.create_task(write_damage_list(slow, log))
        await asyncio.sleep(0)
        assert len(runtime.jobs) == 1
        await runtime.run_one()
        assert repair.done()
        assert read_damaged(disk, DIRECTORY) == {0}
        await runtime.run_one()
        await scrub
        assert read_damaged(disk, DIRECTORY) == {0, second.base_offset}
        assert not runtime.jobs

    asyncio.run(story())
