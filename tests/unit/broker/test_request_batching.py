from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from tidelog.broker.request_batching import Batches


class Carrier:
    """Carries questions ("a1" has the key "a") and holds each request until it is let go."""

    def __init__(self, most: int = 10) -> None:
        self.carried: list[tuple[int, list[str]]] = []
        self.held: list[asyncio.Event] = []
        self.batches: Batches[str] = Batches(self, self.carry, key=lambda question: question[0], most=most, purpose="test")
        self._tasks: list[asyncio.Task[Any]] = []

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> None:
        assert name.startswith("test to broker ")
        self._tasks.append(asyncio.ensure_future(coroutine))

    async def carry(self, broker_id: int, questions: list[str]) -> None:
        self.carried.append((broker_id, questions))
        event = asyncio.Event()
        self.held.append(event)
        await event.wait()

    async def settle(self) -> None:
        while any(not task.done() for task in self._tasks):
            for event in self.held:
                event.set()
            await asyncio.sleep(0)


def test_what_comes_while_a_request_is_under_way_travels_in_the_next_one() -> None:
    async def main() -> None:
        carrier = Carrier()
        for question in ("a", "b"):
            carrier.batches.put(1, question)
        await asyncio.sleep(0)
        for question in ("c", "d"):
            carrier.batches.put(1, question)
        carrier.batches.put(2, "e")
        assert carrier.batches.waiting(1) == 2
        await asyncio.sleep(0)
        assert carrier.carried == [(1, ["a", "b"]), (2, ["e"])]
        await carrier.settle()
        assert carrier.carried[2:] == [(1, ["c", "d"])]
        carrier.batches.put(1, "f")
        await carrier.settle()
        assert carrier.carried[3:] == [(1, ["f"])]

    asyncio.run(main())


def test_questions_whose_answers_could_not_be_told_apart_travel_one_after_the_other() -> None:
    async def main() -> None:
        carrier = Carrier()
        for question in ("a1", "b1", "a2", "a3", "b2"):
            carrier.batches.put(1, question)
        await carrier.settle()
        assert carrier.carried == [(1, ["a1", "b1"]), (1, ["a2", "b2"]), (1, ["a3"])]

    asyncio.run(main())


def test_a_request_holds_no_more_than_it_may() -> None:
    async def main() -> None:
        carrier = Carrier(most=2)
        for question in "abcde":
            carrier.batches.put(1, question)
        await carrier.settle()
        assert [questions for _, questions in carrier.carried] == [["a", "b"], ["c", "d"], ["e"]]

    asyncio.run(main())
