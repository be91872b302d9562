"""The answers of one turn of the loop, sent together at its end.

When many clients ask at once and each answer is sent immediately, each send wakes a client that asks, is answered and sleeps
again, one by one: with 64 connections the kernel spent nearly half of a node's time waking sleepers, and a turn of the loop
seldom found more than a few requests. Sent in a row at the end of the turn, the first answer wakes the client and the others find
it awake; the next turn finds many requests again. A single active client is answered immediately.

A connection that asks twice in a row counts as the only active one. Answers leave before the loop polls its sockets again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from tidelog.server.runtime import Worked

log = logging.getLogger(__name__)


class Answering(Protocol):
    """A connection with a ready answer."""

    @property
    def session(self) -> Worked:
        """Whom the loop's time is counted for."""
        ...

    def send_answers(self) -> None: ...


class Turn:
    """The connections with a ready answer in this turn of the loop."""

    __slots__ = ("_clock_ns", "_last", "_loop", "_ready")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._loop = loop
        self._last: Answering | None = None
        self._ready: list[Answering] = []

    def defers(self, connection: Answering) -> bool:
        """Whether the answer leaves at the end of the turn, with those of others; False: send it now."""
        if connection is self._last:
            return False
        self._last = connection
        self._ready.append(connection)
        if len(self._ready) == 1:
            self._loop.call_soon(self._end)
        return True

    def forget(self, connection: Answering) -> None:
        """Called when the connection has closed."""
        if connection is self._last:
            self._last = None

    def _end(self) -> None:
        ready, self._ready = self._ready, []
        before_ns = self._clock_ns()
        for connection in ready:
            try:
                connection.send_answers()
            except Exception:  # the other connections' answers must still leave
                log.exception("the answers of one connection could not be sent")
            now_ns = self._clock_ns()
            connection.session.loop_ns += now_ns - before_ns
            before_ns = now_ns
