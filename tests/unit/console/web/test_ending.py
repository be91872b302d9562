from __future__ import annotations

import asyncio

import pytest

from tidelog.console.web import ending
from tidelog.console.web.ending import REQUEST, Ending
from tidelog.console.web.problems import Problem


def test_a_request_under_way_is_refused_soon_after_the_end_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "GRACE_S", 0.0)

    async def job() -> None:
        found = Ending()
        async with found.limit(1000):
            found.begin()
            await asyncio.Event().wait()

    with pytest.raises(Problem, match="is not known") as refused:
        asyncio.run(job())
    assert (refused.value.status, refused.value.detail) == (503, REQUEST)


def test_a_request_that_comes_after_the_end_began_has_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "GRACE_S", 0.0)

    async def job() -> None:
        found = Ending()
        found.begin()
        await found.wait()
        async with found.limit(1000):
            await asyncio.Event().wait()

    with pytest.raises(Problem):
        asyncio.run(job())


def test_without_an_end_the_limit_is_a_timeout_and_is_forgotten() -> None:
    async def job() -> None:
        found = Ending()
        with pytest.raises(TimeoutError):
            async with found.limit(0):
                await asyncio.Event().wait()
        async with found.limit(1000):
            pass
        found.begin()
        assert not found._limits

    asyncio.run(job())


def test_a_request_that_ends_in_time_is_answered() -> None:
    async def job() -> int:
        found = Ending()
        async with found.limit(1000):
            found.begin()
            return 1

    assert asyncio.run(job()) == 1
