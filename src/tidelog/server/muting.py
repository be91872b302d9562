"""A connection that is not read for a while, because its client has used more than its quota (KIP-219).

What was asked before is answered meanwhile. Time is the node's, as it is for the rates.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.broker.request import Session
    from tidelog.server.runtime import Alarm, LoopRuntime


class Muting:
    """What a connection knows of it."""

    __slots__ = ("_ended", "_loop", "_runtime", "_sending", "closed", "draining", "halted", "muted")

    def __init__(self, runtime: LoopRuntime) -> None:
        self.closed = False
        self.draining = False
        self.halted = False
        """No further request is handled: draining, or muted."""
        self.muted: Alarm | None = None
        self._sending = False
        self._ended = False
        self._runtime = runtime
        self._loop = runtime.loop

    @abstractmethod
    def _process(self) -> None:
        """Handle the requests that have arrived."""

    def mute(self, wait_ms: int) -> None:
        """Handle no further request for so long; but all that a client has left behind that has gone."""
        if self.muted is None and not self._ended and not self.closed:
            self.halted = True
            self.muted = self._runtime.call_later(wait_ms / 1000, self._unmuted)

    def _unmuted(self) -> None:
        self.muted, self.halted = None, self.draining
        if not self.closed and not self._sending:
            self._process()

    def _meter(self, session: Session, metered: bool) -> None:
        """Quotas have changed. Who is muted may ask again: he may have more now, or is muted anew."""
        session.mute = self.mute if metered else None
        if self.muted is not None:
            self.muted.cancel()
            # Not here: it may be a request of this very connection that has changed them. They may change again before.
            self.muted = self._loop.call_soon(self._unmuted)

    def _forget_mute(self, session: Session) -> None:
        """The connection has closed."""
        session.mute = None
        if self.muted is not None:
            self.muted.cancel()
            self.muted = None
