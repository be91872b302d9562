from __future__ import annotations

import asyncio

import pytest

from tidelog.console.web.limits import Gate, Pace
from tidelog.console.web.problems import Problem


def test_a_full_gate_refuses_and_opens_again() -> None:
    gate = Gate(1, "searches")
    with gate.enter():
        with pytest.raises(Problem) as found, gate.enter():
            pass
        assert (found.value.status, gate.open) == (429, 1)
    with pytest.raises(RuntimeError), gate.enter():
        raise RuntimeError
    assert gate.open == 0


def test_a_pace_makes_readers_wait_together() -> None:
    now = [100.0]
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        now[0] += seconds

    pace = Pace(100, lambda: now[0], sleep)

    async def read() -> None:
        for _ in range(5):
            await pace(100)

    asyncio.run(read())
    assert now[0] == pytest.approx(104.0)
    now[0] = 200.0
    waited.clear()
    asyncio.run(pace(50))
    assert waited == []
