"""A connection under TLS: the one of ``connection``, and what OpenSSL keeps to itself.

The selector reports a socket, not what OpenSSL has already read from it or has to send before it can read. So after each read the
transport is asked for bytes that it holds, and a read or write that waits for the other direction is tried again by a timer.
"""

from __future__ import annotations

from tidelog.broker.request import Session
from tidelog.server.serving.connection import Connection, Owner
from tidelog.server.serving.connection_states import State
from tidelog.server.serving.sending import PEER_SLOW
from tidelog.server.serving.tls_transport import TlsTransport

AGAIN_S = 0.01
"""How long a read or write waits for the other direction before it is tried again."""


class TlsConnection(Connection):
    """A client's socket after the TLS handshake."""

    __slots__ = ("_looks", "_tls", "_wanted")

    def __init__(self, owner: Owner, transport: TlsTransport, session: Session, max_request_bytes: int) -> None:
        self._tls = transport
        self._wanted = True
        """Whether the machine wants to read."""
        self._looks = False
        """Whether ``_look`` is scheduled."""
        super().__init__(owner, transport, session, max_request_bytes)
        # The client's first request may have come with the last bytes of its handshake.
        self._look_at_held()

    def read(self, wanted: bool) -> None:
        self._wanted = wanted
        super().read(wanted)
        self._look_at_held()

    def _readable(self) -> None:
        super()._readable()
        if self.machine.state is State.CLOSED:
            return
        if self._tls.read_wants_write:
            self._loop.remove_reader(self._tls.fd)
            self._loop.call_later(AGAIN_S, self._read_again)
        else:
            self._look_at_held()

    def _look_at_held(self) -> None:
        if self._wanted and not self._looks and self.machine.state is not State.CLOSED and self._tls.holds_bytes:
            self._looks = True
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        self._looks = False
        if self._wanted and self.machine.state is not State.CLOSED:
            self._readable()

    def _read_again(self) -> None:
        if self._wanted and self.machine.state is not State.CLOSED:
            self._loop.add_reader(self._tls.fd, self._readable)
            self._readable()

    def _all_left(self, state: int) -> bool:
        if state == PEER_SLOW and self._tls.write_wants_read:
            self._loop.call_later(AGAIN_S, self._send_on)
            return False
        return super()._all_left(state)

    def _writable(self) -> None:
        super()._writable()
        if self._writing and self._tls.write_wants_read:
            # The socket stays writable all the time.
            self._writing = False
            self._loop.remove_writer(self._tls.fd)
            self._loop.call_later(AGAIN_S, self._send_on)
