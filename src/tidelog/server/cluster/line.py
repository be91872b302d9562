"""What a ``ConnectionMachine`` has done outside of itself: by a socket and the loop, or by a test."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from tidelog.broker.answers import Frame, Outgoing
from tidelog.broker.request import Session
from tidelog.model.ports import Buffer
from tidelog.replication.delayed import Parked


class Cancelable(Protocol):
    """A timer."""

    def cancel(self) -> None: ...


class Driving(Protocol):
    """A handler's coroutine that is being stepped."""

    def start(self) -> None: ...

    def abandon(self) -> None: ...


Handle = Callable[[Session, memoryview], Outgoing | Coroutine[Any, Any, Outgoing]]
Then = Callable[[Outgoing, BaseException | None], None]


class Line(Protocol):
    """What a machine has done outside of itself."""

    def send(self, parts: Frame) -> bool:
        """Whether all has left; if not, ``sent`` is called once it has. A failure closes the machine."""
        ...

    def send_small(self, data: Buffer) -> bool:
        """``send`` for one buffer, while nothing else is being sent."""
        ...

    def defers(self) -> bool:
        """Whether ``send_answers`` is called at the end of this turn of the loop; False: the answers leave now."""
        ...

    def pause(self) -> None:
        """Call ``sent`` after other connections had their turn."""
        ...

    def drive(self, coroutine: Coroutine[Any, Any, Outgoing], then: Then) -> Driving: ...

    def when_done(self, parked: Parked, then: Callable[[], Callable[[], None] | None]) -> None:
        """``then`` is called when ``parked`` is done, and later what it returns."""
        ...

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Cancelable: ...

    def read(self, wanted: bool) -> None:
        """Call ``received`` when bytes come; or do not."""
        ...

    def failed(self, error: BaseException) -> None:
        """Say in the log why the connection ends."""
        ...

    def release(self) -> None:
        """It has ended: give back the socket."""
        ...
