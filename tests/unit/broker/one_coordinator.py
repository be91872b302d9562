"""A transaction coordinator behind a handler's context, without partitions and without a loop: waiting lets time pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.broker.node_world import NodeWorld, Ready
from tests.unit.coordinator.transaction.driver import Driver
from tidelog.broker.node import BrokerContext
from tidelog.coordinator.shard import Waiting
from tidelog.model.errors import ErrorCode
from tidelog.model.machine import Outcome, Token


class OneCoordinator:
    """Stands for ``Shards`` and for its only shard. ``error``: why there is none."""

    def __init__(self) -> None:
        self.driver = Driver()
        self.machine: object | None = self.driver.machine
        self.error: ErrorCode | None = None
        self.abandoned: list[Token] = []
        self._waiting: dict[Token, Waiting] = {}

    def context(self) -> BrokerContext:
        """A handler's view of it; what it waits for is there after a tenth of a second, or never."""
        world = NodeWorld()
        world.broker.transactions = self  # type: ignore[assignment]

        def wait(parked: object) -> Ready:
            self.driver.advance(100)
            self._look()
            return Ready(None)

        world.runtime.wait = wait  # type: ignore[method-assign]
        return world.context()

    def find(self, key: str, *, writes: bool = True) -> Any:
        return self.error or self

    def ask(self, shard: Any, call: Callable[[Any, Token, int], Outcome]) -> tuple[Token, Waiting]:
        token = self.driver.token()
        waiting = self._waiting[token] = Waiting()
        self.driver.run(call(self.driver.machine, token, self.driver.now))
        self._look()
        return token, waiting

    def abandon(self, token: Token) -> None:
        self.abandoned.append(token)

    def stop(self, error: ErrorCode) -> None:
        """Every waiting request gets ``error``."""
        for waiting in self._waiting.values():
            waiting.error = error
            waiting.finish()

    def _look(self) -> None:
        for token in [token for token in self._waiting if token in self.driver.answers]:
            waiting = self._waiting.pop(token)
            waiting.response = self.driver.answers[token]
            waiting.finish()
