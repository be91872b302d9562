from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tidelog.replication.purgatory import ParkedFetch
from tidelog.server.runtime import Driver, LoopRuntime, system_now_ms


def complete(runtime: LoopRuntime, coroutine: Coroutine[Any, Any, Any]) -> Any:
    return runtime.loop.run_until_complete(asyncio.wait_for(coroutine, 10))


def test_the_clock_is_in_milliseconds() -> None:
    assert 1_600_000_000_000 < system_now_ms() < 10_000_000_000_000


def test_blocking_work_runs_in_another_thread_and_its_result_comes_back(runtime: LoopRuntime) -> None:
    async def main() -> None:
        for run in (runtime.run_blocking, runtime.run_long):
            assert await run(threading.get_ident) != threading.get_ident()

    complete(runtime, main())


def test_a_task_that_fails_is_reported_under_its_name(runtime: LoopRuntime, caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise ValueError("gone wrong")

    async def main() -> None:
        task = runtime.spawn(fail(), "the duty")
        await asyncio.wait([task])
        await asyncio.sleep(0)

    with caplog.at_level(logging.ERROR):
        complete(runtime, main())
    assert "the duty failed" in caplog.text
    assert "gone wrong" in caplog.text


def parked(runtime: LoopRuntime, in_ms: int) -> ParkedFetch:
    return ParkedFetch(runtime.now_ms() + in_ms, 1, committed=False)


def test_a_parked_request_that_is_finished_ends_the_wait(runtime: LoopRuntime) -> None:
    async def main() -> None:
        request = parked(runtime, 60_000)
        future = runtime.wait(request)
        assert not future.done()
        request.finish()
        await future

    complete(runtime, main())


def test_a_request_that_is_finished_before_it_is_parked_does_not_wait(runtime: LoopRuntime) -> None:
    request = parked(runtime, 60_000)
    request.finish()
    assert runtime.wait(request).done()


def test_deadlines_end_waits_whatever_their_order(runtime: LoopRuntime) -> None:
    now = 1_000_000
    runtime.now_ms = lambda: now
    latest, later, sooner = (ParkedFetch(now + ms, 1, committed=False) for ms in (60_000, 2, 0))

    async def main() -> None:
        waits = [runtime.wait(latest), runtime.wait(later), runtime.wait(sooner)]
        await waits[2]
        assert sooner.expired
        await waits[1]
        assert later.expired
        assert not latest.done

    complete(runtime, main())


def test_a_wall_clock_that_is_set_back_holds_nobody_up(runtime: LoopRuntime) -> None:
    now = 1_000_000_000
    runtime.now_ms = lambda: now
    request = ParkedFetch(now + 5, 1, committed=False)

    async def main() -> None:
        nonlocal now
        future = runtime.wait(request)
        now -= 3_600_000
        await future
        assert request.expired

    complete(runtime, main())


def test_a_request_without_a_deadline_may_wait(runtime: LoopRuntime) -> None:
    request = ParkedFetch(1 << 62, 1, committed=False)

    async def main() -> None:
        future = runtime.wait(request)
        runtime.loop.call_soon(request.finish)
        await future

    complete(runtime, main())


def test_what_ends_in_one_turn_goes_on_together_and_what_follows_is_done_once(runtime: LoopRuntime) -> None:
    said: list[str] = []
    first, second, third, given_up = (parked(runtime, 60_000) for _ in range(4))

    def send() -> None:
        said.append("sent")

    def says(name: str, then: Callable[[], None] | None = send) -> Callable[[], Callable[[], None] | None]:
        def go_on() -> Callable[[], None] | None:
            said.append(name)
            return then

        return go_on

    async def main() -> None:
        runtime.when_done(first, says("1"))
        runtime.when_done(second, says("2"))
        runtime.when_done(third, says("3", None))
        runtime.when_done(given_up, says("given up"))
        given_up.on_done = None
        for request in (second, first, given_up):
            request.finish()
        assert said == []
        await asyncio.sleep(0)
        assert said == ["2", "1", "sent"]
        third.finish()
        runtime.when_done(third, says("over already", None))
        await asyncio.sleep(0)
        assert said == ["2", "1", "sent", "3", "over already"]

    complete(runtime, main())


class Result:
    """What a driver said, once."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, BaseException | None]] = []

    def __call__(self, value: Any, error: BaseException | None) -> None:
        self.said.append((value, error))


def drive(make: Callable[[], Coroutine[Any, Any, Any]]) -> tuple[Driver, Result]:
    result = Result()
    driver = Driver(make(), result)
    driver.start()
    return driver, result


def test_a_coroutine_that_need_not_wait_is_done_before_start_returns() -> None:
    async def ready() -> int:
        return 7

    _, result = drive(ready)
    assert result.said == [(7, None)]


def test_a_coroutine_that_fails_hands_its_error_on() -> None:
    error = ValueError("no")

    async def fail() -> int:
        raise error

    _, result = drive(fail)
    assert result.said == [(None, error)]


def test_a_coroutine_goes_on_when_what_it_waits_for_is_there(runtime: LoopRuntime) -> None:
    async def main() -> None:
        first, second = runtime.loop.create_future(), runtime.loop.create_future()

        async def wait() -> Any:
            try:
                return await first + await second
            except KeyError as error:
                return error

        _, added = drive(wait)
        assert added.said == []
        first.set_result(1)
        await asyncio.sleep(0)
        second.set_exception(KeyError("k"))
        await asyncio.sleep(0)
        ((value, error),) = added.said
        assert isinstance(value, KeyError)
        assert error is None

    complete(runtime, main())


def test_an_abandoned_coroutine_runs_its_finally_and_says_nothing(runtime: LoopRuntime) -> None:
    async def main() -> None:
        future = runtime.loop.create_future()
        cleaned: list[bool] = []

        async def wait() -> None:
            try:
                await future
            finally:
                cleaned.append(True)

        driver, result = drive(wait)
        driver.abandon()
        assert cleaned == [True]
        future.set_result(None)
        await asyncio.sleep(0)
        driver.abandon()
        assert result.said == []

    complete(runtime, main())


def test_a_promise_that_fails_when_nobody_waits_any_more_is_no_complaint(
    runtime: LoopRuntime, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        runtime.promise().set_exception(OSError("too late"))
        runtime.promise().cancel()
        await asyncio.sleep(0)

    complete(runtime, main())
    gc.collect()
    assert not caplog.records
