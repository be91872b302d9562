from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ErrorCode, StorageFailure
from tidelog.server.runtime import LoopRuntime
from tidelog.server.upkeep.periodic_tasks import Housekeeping


class Replicas:
    """Counts its calls."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.logs = SimpleNamespace(upkeep=SimpleNamespace(expire_producers=lambda now_ms: self.done.append("expire")))
        self.dir_jobs = SimpleNamespace(
            checkpoint=lambda: self.done.append("checkpoint"), remove_due=lambda even_ms: self.done.append("remove_due")
        )

    def __getattr__(self, name: str) -> Any:
        def step(*args: object) -> list[str]:
            self.done.append(name)
            return ["a segment of t-0"] if name == "retention_step" else []

        return step


def housekeeping(runtime: LoopRuntime, **values: str) -> tuple[Housekeeping, Replicas]:
    replicas = Replicas()
    config = BrokerConfig.from_properties({name.replace("_", "."): value for name, value in values.items()})
    broker: Any = SimpleNamespace(config=config, replicas=replicas)
    return Housekeeping(broker, runtime), replicas


def test_a_duty_comes_again_and_again_until_the_stop(runtime: LoopRuntime) -> None:
    duties, _ = housekeeping(runtime)
    done: list[int] = []

    async def main() -> None:
        three = runtime.loop.create_future()
        duties.every("count", 1, lambda: done.append(1) or (len(done) == 3 and three.set_result(None)), first_ms=0)
        await asyncio.wait_for(three, 10)
        duties.stop()
        count = len(done)
        await asyncio.sleep(0)
        assert len(done) == count

    runtime.loop.run_until_complete(main())


def test_a_failing_disk_is_reported_and_the_duty_comes_again(runtime: LoopRuntime, caplog: pytest.LogCaptureFixture) -> None:
    duties, _ = housekeeping(runtime)
    calls: list[int] = []

    async def main() -> None:
        again = runtime.loop.create_future()

        def fail() -> None:
            calls.append(1)
            if len(calls) == 2:
                again.set_result(None)
            raise StorageFailure("/data", "no space left")

        duties.every("retention", 1, fail, first_ms=0)
        await asyncio.wait_for(again, 10)
        duties.stop()

    with caplog.at_level(logging.ERROR):
        runtime.loop.run_until_complete(main())
    assert "retention: log dir /data: no space left" in caplog.text


def test_every_duty_of_a_node_has_its_interval(runtime: LoopRuntime, caplog: pytest.LogCaptureFixture) -> None:
    duties, replicas = housekeeping(
        runtime,
        log_retention_check_interval_ms="1",
        log_initial_task_delay_ms="1",
        replica_high_watermark_checkpoint_interval_ms="1",
        producer_id_expiration_check_interval_ms="1",
    )
    duties.start()

    async def main() -> None:
        wanted = {"retention_step", "checkpoint", "expire"}
        for _ in range(100_000):
            if wanted <= set(replicas.done):
                return
            await asyncio.sleep(0)
        raise AssertionError(replicas.done)

    with caplog.at_level(logging.INFO):
        runtime.loop.run_until_complete(main())
    duties.stop()
    assert "a segment of t-0" in caplog.text


@pytest.mark.parametrize("set_by_ms", [-7_200_000, 7_200_000])
def test_a_clock_that_is_set_makes_no_records_old(runtime: LoopRuntime, set_by_ms: int) -> None:
    duties, replicas = housekeeping(runtime)
    even_ms = runtime.even_ms()
    wall_ms = even_ms + set_by_ms
    runtime.now_ms = lambda: wall_ms
    runtime.even_ms = lambda: even_ms  # its clock would tick between the duty and the assertion
    asked: list[tuple[int, int]] = []
    told: Any = replicas
    told.retention_step = lambda now_ms, records_ms: asked.append((now_ms, records_ms)) or []
    duties._retain()
    ((now_ms, records_ms),) = asked
    assert now_ms == even_ms
    assert records_ms == min(even_ms, wall_ms)
    late: Any = SimpleNamespace(look=lambda partitions, now_ms, max_timeout_ms: asked.append((0, now_ms)) or [])
    duties.late = late
    duties._name_late()
    assert asked[1][1] == min(even_ms, wall_ms)


def test_a_late_transaction_is_named_with_the_id_that_its_coordinator_knows(runtime: LoopRuntime) -> None:
    duties, _ = housekeeping(runtime)
    known = SimpleNamespace(transactions={"pay": SimpleNamespace(transactional_id="pay", producer_id=7)})
    broker: Any = duties._broker
    broker.transactions = SimpleNamespace(machines=lambda: [known])
    assert duties._transactional_id(7) == "pay" and duties._transactional_id(8) is None
    broker.transactions = SimpleNamespace(machines=lambda: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert duties._transactional_id(7) is None
