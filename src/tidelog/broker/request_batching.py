"""Batches questions to other brokers: while one request to a broker is in flight, further questions collect for the next.

So a question never waits for others, and under load there are few requests. Questions with the same key never share a request,
because their answers could not be distinguished.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, Protocol, TypeVar

Q = TypeVar("Q")


class Spawns(Protocol):
    """Runs the tasks that send the requests."""

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> object: ...


class Batches(Generic[Q]):
    """``carry(broker_id, questions)`` sends up to ``most`` questions in one request and must answer each of them, even on
    failure."""

    def __init__(
        self,
        runtime: Spawns,
        carry: Callable[[int, list[Q]], Coroutine[Any, Any, None]],
        *,
        key: Callable[[Q], Hashable],
        most: int,
        purpose: str,
    ) -> None:
        self._runtime = runtime
        self._carry = carry
        self._key = key
        self._most = most
        self._purpose = purpose
        self._waiting: dict[int, list[Q]] = {}
        """Queued questions by broker; an entry exists exactly while a task sends requests to that broker."""

    def put(self, broker_id: int, question: Q) -> None:
        """Queue a question for the next request to this broker."""
        waiting = self._waiting.get(broker_id)
        if waiting is not None:
            waiting.append(question)
            return
        self._waiting[broker_id] = [question]
        self._runtime.spawn(self._run(broker_id), f"{self._purpose} to broker {broker_id}")

    def waiting(self, broker_id: int) -> int:
        """Questions queued for the next request."""
        return len(self._waiting.get(broker_id, ()))

    async def _run(self, broker_id: int) -> None:
        try:
            while batch := self._take(broker_id):
                await self._carry(broker_id, batch)
        finally:
            del self._waiting[broker_id]

    def _take(self, broker_id: int) -> list[Q]:
        taken: dict[Hashable, Q] = {}
        left: list[Q] = []
        for question in self._waiting[broker_id]:
            key = self._key(question)
            if key in taken or len(taken) >= self._most:
                left.append(question)
            else:
                taken[key] = question
        self._waiting[broker_id] = left
        return list(taken.values())
