from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.controller.test_metadata_node import CLUSTER, FS, NOW, config_of
from tidelog.config.resolve import BrokerConfig
from tidelog.controller.config_rules import OptionRules
from tidelog.controller.metadata_node import MetadataNode
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import ControllerResult
from tidelog.model.errors import ErrorCode, KafkaError, StorageFailure
from tidelog.protocol.messages.config_record import ConfigRecord
from tidelog.raft.format import FormatRequest, format_dirs
from tidelog.raft.metadata_log import MetadataLogConfig
from tidelog.server.quorum import LocalController
from tidelog.server.runtime import LoopRuntime, new_event_loop


class World:
    def __init__(self, directory: Path, log: MetadataLogConfig | None = None) -> None:
        format_dirs(FS, FormatRequest([str(directory)], 1, CLUSTER), rng=random.Random(1), now_ms=NOW)
        self.runtime = LoopRuntime(new_event_loop())
        rules = OptionRules(BrokerConfig.from_properties({}))
        node = MetadataNode.start(FS, config_of(directory, log=log), rng=random.Random(3), rules=rules, now_ms=NOW)
        self.failures: list[StorageFailure] = []
        self.controller = LocalController(node, self.runtime, self.failures.append)

    def run(self, main: Callable[[], Awaitable[Any]]) -> Any:
        async def bounded() -> Any:
            return await asyncio.wait_for(main(), 20)

        return self.runtime.loop.run_until_complete(bounded())


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "d")
    yield world
    world.runtime.loop.run_until_complete(world.runtime.close())
    world.runtime.loop.close()


def setting(value: str) -> Callable[[QuorumController, Any, int], ControllerResult]:
    """Decides on one record and answers with the value."""
    record = ConfigRecord(resource_type=4, resource_name="", name="num.partitions", value=value)
    return lambda controller, request, now_ms: ControllerResult.of(value, [record])


def test_an_answer_comes_when_its_records_are_committed_and_visible(world: World) -> None:
    async def main() -> None:
        future = world.controller.submit(setting("2"), None)
        assert not future.done()
        assert await future == "2"
        assert world.controller.node.image.cluster_configs["num.partitions"] == "2"

    world.run(main)


def test_many_requests_are_committed_together_in_their_order(world: World) -> None:
    async def main() -> None:
        flushes = 0
        make = world.controller.node.flush_job

        def counted() -> Any:
            nonlocal flushes
            flushes += 1
            return make()

        world.controller.node.flush_job = counted  # type: ignore[method-assign]
        answered: list[str] = []
        futures = [world.controller.submit(setting(str(number)), None) for number in range(1, 51)]
        for future in futures:
            future.add_done_callback(lambda done: answered.append(done.result()))
        await asyncio.gather(*futures)
        assert answered == [str(number) for number in range(1, 51)]
        assert flushes <= 3

    world.run(main)


def test_a_refusal_comes_at_once(world: World) -> None:
    def refuse(controller: QuorumController, request: Any, now_ms: int) -> ControllerResult:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "no")

    async def main() -> None:
        future = world.controller.submit(refuse, None)
        assert future.done()
        with pytest.raises(KafkaError, match="no"):
            await future

    world.run(main)


class Broken:
    """A file that cannot be synced."""

    def sync(self) -> None:
        raise OSError(5, "Input/output error")


def test_a_failing_disk_is_told_once_and_refuses_everybody(world: World) -> None:
    async def main() -> None:
        job = world.controller.node.flush_job

        def failing() -> Any:
            made = job()
            made.sync_files.append(Broken())
            return made

        world.controller.node.flush_job = failing  # type: ignore[method-assign]
        futures = [world.controller.submit(setting("1"), None) for _ in range(3)]
        for future in futures:
            with pytest.raises(KafkaError) as refused:
                await future
            assert refused.value.code == ErrorCode.NOT_CONTROLLER
        with pytest.raises(KafkaError):
            await world.controller.submit(setting("1"), None)
        assert len(world.failures) == 1
        await world.controller.close()

    world.run(main)


def test_a_disk_that_fails_before_a_sync_begins_leaves_nobody_waiting(world: World) -> None:
    async def main() -> None:
        first = world.controller.submit(setting("1"), None)
        second = world.controller.submit(setting("2"), None)
        # The next job, which the end of the first one begins, finds a log that is out of service.
        world.controller.node.log.log.fail("open of an index", OSError(5, "Input/output error"))
        for future in (first, second):
            with pytest.raises(KafkaError) as refused:
                await asyncio.wait_for(future, 5)
            assert refused.value.code == ErrorCode.NOT_CONTROLLER
        assert len(world.failures) == 1

    def failing() -> Any:
        raise world.controller.node.log.log.fail("open of an index", OSError(24, "Too many open files"))

    async def at_once() -> None:
        with pytest.raises(KafkaError):
            await asyncio.wait_for(world.controller.submit(setting("3"), None), 5)

    world.controller.node.log.flush_job = failing  # type: ignore[method-assign]
    world.run(main)
    world.run(at_once)


def test_the_stop_waits_for_what_is_under_way(world: World) -> None:
    async def main() -> None:
        future = world.controller.submit(setting("4"), None)
        await world.controller.close()
        assert await future == "4"

    world.run(main)


def test_snapshots_are_written_when_they_are_due(tmp_path: Path) -> None:
    world = World(tmp_path / "d", log=MetadataLogConfig(max_record_bytes_between_snapshots=1))

    async def main() -> None:
        await world.controller.submit(setting("5"), None)
        world.controller.snapshot_step()
        for _ in range(100_000):
            if world.controller.node.log.newest_snapshot is not None:
                break
            await asyncio.sleep(0)
        assert world.controller.node.log.newest_snapshot is not None
        await world.controller.close()

    world.run(main)
    world.runtime.loop.run_until_complete(world.runtime.close())
    world.runtime.loop.close()


def test_a_quorum_of_one_passes_nothing_on(world: World) -> None:
    async def main() -> None:
        with pytest.raises(KafkaError, match="UNSUPPORTED_VERSION"):
            await world.controller.forward(80, 1, None)

    world.run(main)
