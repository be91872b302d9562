"""The answers of one turn of the loop, sent together at its end.

When many clients ask at once, each answer that is sent on the spot wakes a client that then asks, is answered and sleeps again,
one by one: with 64 connections nearly half of a node's time was the kernel waking sleepers, and a turn of the loop seldom found
more than a few requests. Sent in a row at the end of the turn, the first answer wakes the client and the others find it awake;
the next turn finds many requests again. A client that is alone is answered at once: there is nothing to wait for.

Whoever asks twice in a row counts as alone. Answers leave before the loop looks at its sockets again.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

log = logging.getLogger(__name__)


class Answering(Protocol):
    """A connection with an answer ready."""

    def send_answers(self) -> None:
        """Send it now."""
        ...


class Turn:
    """Who has an answer ready in this turn of the loop."""

    __slots__ = ("_last", "_loop", "_ready")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._last: Answering | None = None
        self._ready: list[Answering] = []

    def defers(self, connection: Answering) -> bool:
        """Whether the connection's answer leaves at the end of the turn, with those of others; False: send it now."""
        if connection is self._last:
            return False
        self._last = connection
        self._ready.append(connection)
        if len(self._ready) == 1:
            self._loop.call_soon(self._end)
        return True

    def forget(self, connection: Answering) -> None:
        """It has closed."""
        if connection is self._last:
            self._last = None

    def _end(self) -> None:
        ready, self._ready = self._ready, []
        for connection in ready:
            try:
                connection.send_answers()
            except Exception:  # the others' answers leave all the same
                log.exception("the answers of one connection could not be sent")
