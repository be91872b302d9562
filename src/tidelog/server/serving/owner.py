"""What a connection asks of the listener that accepted it."""

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
    """See the module."""

    runtime: LoopRuntime
    violations: Violations
    turn: Turn

    @property
    def handle(self) -> Callable[[Session, memoryview], Any]:
        """What makes an answer of a request: the dispatcher, or what records quotas around it."""
        ...

    @property
    def metered(self) -> bool:
        """Whether there are quotas for clients."""
        ...

    def closed(self, connection: Connection) -> None:
        """It is, and will not be heard of again."""
        ...
