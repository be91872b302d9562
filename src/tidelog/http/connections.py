"""Connections of clients. uvicorn waits without end for the rest of a request, and for a client that does not read its answer:
some hundred such clients would keep everyone else out."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S: Final = 20.0
"""From the connection, or from the first byte of a further request, until its head is there; and from an answer until the
client has sent the rest of a body that nothing reads."""
READ_S: Final = 30.0
LEAST_READ: Final = 16_384
"""A client that has read fewer bytes than this of what waits for it, in ``READ_S``, has gone."""


class Connection(H11Protocol):
    """Is closed when a request takes longer than ``HEAD_S``, and cut off when its client does not read."""

    _head_timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if self.scheme == "http":  # over TLS asyncio itself ends a connection that is closed and not read
            transport.set_write_buffer_limits(high=0)  # pause_writing is called for every byte that has to wait
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self._stop_unread()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_unread()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_unread()

    def _watch(self) -> None:
        """The time runs while a head is incomplete, that of a further request only from its first byte on, and while the rest of
        a body comes after its answer. An idle connection has uvicorn's timer, but not behind such a rest."""
        rest = self.conn.their_state is h11.SEND_BODY and self.conn.our_state is h11.DONE
        head = self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is None
        if not rest and not head:
            self._stop()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_S, self.transport.close)

    def _stop(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _watch_unread(self) -> None:
        if self._unread_timer is None:
            waiting = self.transport.get_write_buffer_size()
            self._unread_timer = self.loop.call_later(READ_S, self._check_unread, waiting)

    def _check_unread(self, before: int) -> None:
        """Nothing is written while bytes wait, so that their number only falls."""
        self._unread_timer = None
        if before - self.transport.get_write_buffer_size() < LEAST_READ:
            self.transport.abort()
        else:
            self._watch_unread()

    def _stop_unread(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
