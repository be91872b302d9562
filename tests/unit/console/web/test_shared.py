from __future__ import annotations

import asyncio

import pytest

from tidelog.console.web.shared import (
    KEPT_TIMES,
    LONGEST_KEPT_MS,
    LONGEST_STALE_MS,
    MAX_KEPT,
    STALE_TIMES,
    Shared,
    in_a_hurry,
)


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


class Costly:
    """An answer that takes ``took_ms`` each time: how often it was asked for. ``fails``: it raises."""

    def __init__(self, took_ms: int) -> None:
        self.now = 0
        self.took_ms = took_ms
        self.asked = 0
        self.fails = False
        self.shared = Shared(lambda: self.now)

    async def fetch(self) -> int:
        self.asked += 1
        await asyncio.sleep(0)
        self.now += self.took_ms
        if self.fails:
            raise ValueError("no")
        return self.asked

    async def get(self) -> int:
        return int((await self.shared.get("k", 100, self.fetch)).value)


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_an_answer_that_took_long_is_kept_longer_and_then_given_while_the_next_one_comes() -> None:
    async def run() -> None:
        costly = Costly(200)
        assert await costly.get() == 1
        costly.now = KEPT_TIMES * 200 - 1
        assert await costly.get() == 1 and costly.asked == 1
        costly.now = KEPT_TIMES * 200
        assert await costly.get() == 1
        await turns()
        assert costly.asked == 2
        assert await costly.get() == 2

        costly.now += STALE_TIMES * 200
        assert await costly.get() == 3, "one that is too old is not given"

    asyncio.run(run())


def test_there_is_an_end_to_that_however_long_it_takes() -> None:
    async def run() -> None:
        costly = Costly(LONGEST_KEPT_MS)
        assert await costly.get() == 1
        kept = costly.shared._kept["k"]
        assert (kept.fresh_ms, kept.stale_ms) == (LONGEST_KEPT_MS, LONGEST_STALE_MS)

    asyncio.run(run())


def test_one_in_a_hurry_gets_none_that_is_only_kept_because_it_costs_much() -> None:
    async def run() -> None:
        costly = Costly(200)
        assert await costly.get() == 1
        in_a_hurry.set(True)
        costly.now = 99
        assert await costly.get() == 1, "not older than any answer may be"
        costly.now = 100
        assert await costly.get() == 2

    asyncio.run(run())


def test_an_answer_whose_successor_cannot_be_had_is_given_no_longer() -> None:
    async def run() -> None:
        costly = Costly(200)
        assert await costly.get() == 1
        costly.fails = True
        costly.now = KEPT_TIMES * 200
        assert await costly.get() == 1
        await turns()
        with pytest.raises(ValueError, match="no"):
            await costly.get()

    asyncio.run(run())
