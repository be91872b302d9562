from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace

import pytest

from tests.unit.server.controllers import Controllers, setting
from tidelog.model.errors import KafkaError
from tidelog.server.cluster.raft_files import Job


def test_many_requests_at_once_are_committed_in_order(one: Controllers) -> None:
    async def main() -> None:
        await one.start()
        await one.set("0")
        runner = one.nodes[1].runner
        futures = [runner.controller.submit(setting(str(each)), None) for each in range(50)]
        assert await asyncio.gather(*futures) == [str(each) for each in range(50)]
        assert one.value(1) == "49"

    one.run(main)


def test_hundreds_who_asked_while_the_disk_was_at_work_are_all_answered(one: Controllers) -> None:
    async def main() -> None:
        await one.start()
        await one.set("0")
        runner = one.nodes[1].runner
        disk = threading.Event()
        runner._run(Job(disk.wait, lambda _: []))
        futures = [runner.controller.submit(setting(str(each)), None) for each in range(600)]
        disk.set()
        assert await asyncio.gather(*futures) == [str(each) for each in range(600)]
        assert one.value(1) == "599"
        assert not one.nodes[1].failed.is_set()

    one.run(main)


def test_signs_of_life_move_the_high_watermark(one: Controllers) -> None:
    async def main() -> None:
        await one.start()
        await one.set("1")
        machine = one.nodes[1].runner.member.machine
        before = machine.high_watermark
        await one.until(lambda: machine.high_watermark > before + 2)

    one.run(main)


def test_requests_fail_once_the_leadership_ends_or_the_controller_refuses(one: Controllers) -> None:
    async def main() -> None:
        await one.start()
        await one.set("0")
        controller = one.nodes[1].runner.controller
        waiting = controller.submit(setting("1"), None)
        pending = [SimpleNamespace(token=token) for token in controller._submitted]
        assert len(pending) == 1
        controller.lost(pending)  # type: ignore[arg-type]
        with pytest.raises(KafkaError, match="leadership ended"):
            await waiting

    one.run(main)
