from __future__ import annotations

import asyncio

import pytest

from tidelog.console.web.clusters import MAX_KEPT, Cluster, Shared


def test_one_fetch_for_all_who_wait_and_for_some_time() -> None:
    now = [0]
    fetched: list[int] = []

    async def run() -> None:
        shared = Shared(lambda: now[0])

        async def fetch() -> int:
            fetched.append(now[0])
            await asyncio.sleep(0)
            return len(fetched)

        assert {each.value for each in await asyncio.gather(*(shared.get("k", 10, fetch) for _ in range(5)))} == {1}
        now[0] = 9
        assert (await shared.get("k", 10, fetch)).value == 1
        now[0] = 10
        found = await shared.get("k", 10, fetch)
        assert (found.value, found.at_ms) == (2, 10)
        shared.forget()
        assert (await shared.get("k", 10, fetch)).value == 3

    asyncio.run(run())


def test_a_failure_is_for_those_who_waited_and_not_kept() -> None:
    async def run() -> None:
        shared = Shared(lambda: 0)
        fails = [True]

        async def fetch() -> str:
            await asyncio.sleep(0)
            if fails[0]:
                raise ValueError("no")
            return "yes"

        found = await asyncio.gather(*(shared.get("k", 10, fetch) for _ in range(3)), return_exceptions=True)
        assert [type(each) for each in found] == [ValueError] * 3
        fails[0] = False
        assert (await shared.get("k", 10, fetch)).value == "yes"

    asyncio.run(run())


def test_one_who_leaves_does_not_end_it_for_the_others() -> None:
    async def run() -> None:
        shared = Shared(lambda: 0)
        going = asyncio.Event()

        async def fetch() -> str:
            await going.wait()
            return "yes"

        first = asyncio.ensure_future(shared.get("k", 10, fetch))
        second = asyncio.ensure_future(shared.get("k", 10, fetch))
        await asyncio.sleep(0)
        first.cancel()
        going.set()
        assert (await second).value == "yes"
        with pytest.raises(asyncio.CancelledError):
            await first

    asyncio.run(run())


def test_what_was_under_way_during_a_change_is_not_kept() -> None:
    async def run() -> None:
        shared = Shared(lambda: 0)
        going = asyncio.Event()

        async def old() -> str:
            await going.wait()
            return "old"

        async def new() -> str:
            return "new"

        first = asyncio.ensure_future(shared.get("k", 10, old))
        await asyncio.sleep(0)
        shared.forget()
        assert (await shared.get("k", 10, new)).value == "new"
        going.set()
        assert (await first).value == "old"
        assert (await shared.get("k", 10, old)).value == "new"

    asyncio.run(run())


def test_answers_are_bounded() -> None:
    async def run() -> None:
        shared = Shared(lambda: 0)

        async def fetch() -> None:
            return

        for number in range(MAX_KEPT + 10):
            await shared.get(number, 10, fetch)
        assert len(shared._kept) == MAX_KEPT

    asyncio.run(run())


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


def test_old_answers_go_when_a_new_one_comes() -> None:
    async def run() -> None:
        now = [0]
        shared = Shared(lambda: now[0])

        async def fetch() -> None:
            return

        await shared.get("old", 100, fetch)
        await shared.get("young", 200, fetch)
        now[0] = 100
        await shared.get("new", 100, fetch)
        assert list(shared._kept) == ["young", "new"]

    asyncio.run(run())
