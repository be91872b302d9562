"""What a ``ConnectionMachine`` needs from its surroundings, provided by a socket and the loop, or by a test."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from tidelog.broker.answer_types import Farewell, Frame, Outgoing
from tidelog.broker.request import Session
from tidelog.model.ports import Buffer
from tidelog.replication.purgatory import Parked


class Cancelable(Protocol):
    """A timer."""

    def cancel(self) -> None: ...


class Driving(Protocol):
    """A handler's coroutine that is being stepped."""

    def start(self) -> None: ...

    def abandon(self) -> None: ...


Handle = Callable[[Session, memoryview], Outgoing | Farewell | Coroutine[Any, Any, Outgoing]]
Then = Callable[[Outgoing, BaseException | None], None]


class Line(Protocol):
    """Carries out a machine's decisions."""

    def send(self, parts: Frame) -> bool:
        """Whether everything was sent; if not, ``sent`` is called later. A failure closes the machine."""
        ...

    def send_small(self, data: Buffer) -> bool:
        """``send`` for one buffer, while nothing else is being sent."""
        ...

    def defers(self) -> bool:
        """Whether ``send_answers`` is called at the end of this turn of the loop; False: the answers leave now."""
        ...

    def pause(self) -> None:
        """Calls ``sent`` after other connections had their turn."""
        ...

    def drive(self, coroutine: Coroutine[Any, Any, Outgoing], then: Then) -> Driving: ...

    def when_done(self, parked: Parked, then: Callable[[], Callable[[], None] | None]) -> None:
        """Calls ``then`` when ``parked`` is done, and later what it returns."""
        ...

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Cancelable: ...

    def read(self, wanted: bool) -> None:
        """Calls ``received`` when bytes arrive, or stops doing so."""
        ...

    def failed(self, error: BaseException) -> None:
        """Logs why the connection ends."""
        ...

    def release(self) -> None:
        """Releases the socket of an ended connection."""
        ...
