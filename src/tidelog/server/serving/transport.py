"""The bytes of one connection, non-blocking: the only place that calls a client's socket.

A TLS form of the same class stands beside this one when the node speaks TLS; ``can_sendfile`` is then False.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence

from tidelog.model.ports import Buffer

_MORE = getattr(socket, "MSG_MORE", 0)
"""Linux: more follows at once, do not send a short packet yet. Elsewhere Nagle's algorithm is off and that is all."""
IOV_MAX = 512
"""Buffers in one call; the kernel's own limit is 1,024 or more wherever this runs."""


class PlainTransport:
    """A TCP socket."""

    __slots__ = ("_socket", "fd")

    can_sendfile = hasattr(os, "sendfile")
    gathers = getattr(socket.socket, "sendmsg", None) is not None
    """Not on Windows: several buffers are joined there."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self._socket = connected
        self.fd = connected.fileno()

    def receive(self, buffer: bytearray | memoryview) -> int:
        """Bytes read into ``buffer``; 0 when the peer has finished, -1 when there is nothing now. OSError: it is gone."""
        try:
            return self._socket.recv_into(buffer)
        except (BlockingIOError, InterruptedError):
            return -1

    def peer_has_ended(self) -> bool:
        """Whether the peer has finished and everything that it sent was read. OSError: the connection is gone."""
        try:
            return not self._socket.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return False

    def send(self, data: Buffer) -> int:
        """Bytes taken, 0 when the peer reads too slowly. OSError: the connection is gone."""
        try:
            return self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            return 0

    def send_all(self, buffers: Sequence[Buffer], *, more: bool) -> int:
        """The same for several buffers, at most ``IOV_MAX``; ``more`` when something follows at once."""
        if not self.gathers:
            return self.send(b"".join(buffers))
        try:
            return self._socket.sendmsg(buffers, (), _MORE if more else 0)
        except (BlockingIOError, InterruptedError):
            return 0

    def send_file(self, fd: int, position: int, length: int) -> int:
        """The same for a part of a file, without its bytes passing through here; -1 when the peer reads too slowly, 0 at the
        end of the file. OSError may come from the disk as well as from the connection.
        """
        try:
            return os.sendfile(self.fd, fd, position, length)
        except (BlockingIOError, InterruptedError):
            return -1

    def close(self) -> None:
        """End the connection; what was taken by ``send`` still leaves."""
        self._socket.close()
