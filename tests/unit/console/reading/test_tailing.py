from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import count
from typing import Any

from tests.unit.console.reading.batches import GONE, Brokers, Log, budget
from tidelog.console.reading.rows import View
from tidelog.console.reading.tailing import BEAT_S, Allowance, tail
from tidelog.console.reading.walking import Walk


def test_an_allowance_fills_with_time_and_never_above_its_rate() -> None:
    now = [0.0]
    allowance = Allowance(10, lambda: now[0])
    assert [allowance.take(7), allowance.take(7), allowance.take(7)] == [7, 3, 0]
    now[0] = 0.5
    assert allowance.take(100) == 5
    now[0] = 100.0
    assert allowance.take(100) == 10


def test_the_newest_rows_are_shown_and_the_others_counted() -> None:
    brokers = Brokers({0: Log().add(0, "a", "b", "c", "d")})
    found: list[Mapping[str, Any]] = []

    async def watch() -> None:
        walk = Walk(brokers, brokers.topic(), View(), budget())
        async for line in tail(walk, {0: 0}, 3, lambda: 0.0):
            found.append(line)
            if line["kind"] == "record" and line["offset"] == "3":
                return

    asyncio.run(watch())
    assert found[0] == {"kind": "dropped", "count": "1"}
    assert [line["offset"] for line in found[1:]] == ["1", "2", "3"]


def test_a_tail_of_nothing_readable_ends() -> None:
    brokers = Brokers({0: Log(error=GONE)})

    async def watch() -> list[str]:
        walk = Walk(brokers, brokers.topic(), View(), budget())
        return [line["kind"] async for line in tail(walk, {0: 0}, 3, lambda: 0.0)]

    assert asyncio.run(watch()) == ["problem"]


def test_a_tail_of_a_quiet_topic_beats() -> None:
    brokers = Brokers({0: Log()})
    times = count(0.0, BEAT_S)

    async def watch() -> Mapping[str, Any]:
        walk = Walk(brokers, brokers.topic(), View(), budget())
        return await anext(tail(walk, {0: 0}, 3, lambda: next(times)))

    assert asyncio.run(watch()) == {"kind": "beat"}


def test_a_tail_leaves_a_partition_that_it_cannot_read() -> None:
    brokers = Brokers({0: Log([(0, 9, b"\0" * 100)])})

    async def watch() -> list[str]:
        walk = Walk(brokers, brokers.topic(), View(), budget())
        return [line["kind"] async for line in tail(walk, {0: 0}, 3, lambda: 0.0)]

    assert asyncio.run(watch()) == ["problem"]
