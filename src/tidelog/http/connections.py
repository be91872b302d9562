"""Connections of clients. uvicorn waits without end for the rest of a request's head: some hundred clients that send half of one
would keep everyone else out."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S: Final = 20.0
"""From the connection, or from the first byte of a further request, until its head is there."""


class Connection(H11Protocol):
    """Is closed when a request's head takes longer than ``HEAD_S``."""

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """The time runs while a head is incomplete; that of a further request only from its first byte on."""
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_S, self.transport.close)

    def _stop(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
