"""The bytes of one connection, non-blocking. This module and ``tls_transport`` are the only ones that call a client's socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Protocol

from tidelog.model.ports import Buffer

_MORE = getattr(socket, "MSG_MORE", 0)
"""Linux: more bytes follow immediately, so do not send a short packet yet. Elsewhere this is 0; Nagle's algorithm is off there
too."""
IOV_MAX = 512
"""Buffers in one call; the kernel's own limit is 1,024 or more on every supported system."""


class Transport(Protocol):
    """What a connection reads from and writes to; ``PlainTransport`` documents the methods."""

    @property
    def fd(self) -> int: ...

    @property
    def can_sendfile(self) -> bool: ...

    def receive(self, buffer: bytearray | memoryview) -> int: ...

    def peer_has_ended(self) -> bool: ...

    def send(self, data: Buffer) -> int: ...

    def send_all(self, buffers: Sequence[Buffer], *, more: bool) -> int: ...

    def send_file(self, fd: int, position: int, length: int) -> int: ...

    def close(self) -> None: ...


class PlainTransport:
    """A TCP socket."""

    __slots__ = ("_socket", "fd")

    can_sendfile = hasattr(os, "sendfile")
    gathers = getattr(socket.socket, "sendmsg", None) is not None
    """False on Windows, where several buffers are joined first."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self._socket = connected
        self.fd = connected.fileno()

    def receive(self, buffer: bytearray | memoryview) -> int:
        """Bytes read into ``buffer``; 0 at the end of the stream, -1 when nothing has arrived. OSError: the connection is
        lost."""
        try:
            return self._socket.recv_into(buffer)
        except (BlockingIOError, InterruptedError):
            return -1

    def peer_has_ended(self) -> bool:
        """Whether the peer has closed and everything that it sent was read. OSError: the connection is lost."""
        try:
            return not self._socket.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return False

    def send(self, data: Buffer) -> int:
        """Bytes taken, 0 when the socket is full. OSError: the connection is lost."""
        try:
            return self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            return 0

    def send_all(self, buffers: Sequence[Buffer], *, more: bool) -> int:
        """Like ``send`` for at most ``IOV_MAX`` buffers; ``more``: further bytes follow immediately."""
        if not self.gathers:
            return self.send(b"".join(buffers))
        try:
            return self._socket.sendmsg(buffers, (), _MORE if more else 0)
        except (BlockingIOError, InterruptedError):
            return 0

    def send_file(self, fd: int, position: int, length: int) -> int:
        """Sends part of a file by ``sendfile``. Bytes taken, -1 when the socket is full, 0 at the end of the file. OSError:
        the disk or the connection failed."""
        try:
            return os.sendfile(self.fd, fd, position, length)
        except (BlockingIOError, InterruptedError):
            return -1

    def close(self) -> None:
        """Closes the socket; bytes already taken by ``send`` still leave."""
        self._socket.close()
