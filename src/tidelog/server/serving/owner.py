"""What a connection needs from the listener that accepted it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tidelog.broker.request import Session
    from tidelog.server.runtime import LoopRuntime
    from tidelog.server.serving.connection import Connection
    from tidelog.server.serving.turn import Turn
    from tidelog.server.serving.violations import Violations


class Owner(Protocol):
    runtime: LoopRuntime
    violations: Violations
    turn: Turn

    @property
    def handle(self) -> Callable[[Session, memoryview], Any]:
        """Handles a request: the dispatcher, or the metering around it when there are client quotas."""
        ...

    @property
    def metered(self) -> bool:
        """Whether there are client quotas."""
        ...

    def closed(self, connection: Connection) -> None:
        """Called when the connection has closed; the owner drops it."""
        ...
