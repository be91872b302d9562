"""Two views of a simulated connection: a socket that a server reads when it is ready, and a transport for protocols."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Sequence
from typing import Any

from tidelog.model.ports import Buffer
from tidelog.testing.simulation.stream import End


class SimSocket:
    """A connected socket, as ``server.serving.transport`` uses it."""

    def __init__(self, end: End) -> None:
        self.end = end

    def fileno(self) -> int:
        return self.end.fd

    def setblocking(self, _flag: bool) -> None:
        """It never blocks."""

    def setsockopt(self, *_: Any) -> None:
        """Options have no effect here."""

    def recv_into(self, buffer: bytearray | memoryview) -> int:
        inbox = self._readable()
        count = min(len(buffer), len(inbox))
        buffer[:count] = inbox[:count]
        del inbox[:count]
        self.end.taken(count)
        return count

    def recv(self, count: int, flags: int = 0) -> bytes:
        inbox = self._readable()
        data = bytes(inbox[:count])
        if not flags & socket.MSG_PEEK:
            del inbox[:count]
            self.end.taken(len(data))
        return data

    def _readable(self) -> bytearray:
        end = self.end
        if end.error is not None:
            raise end.error
        if not end.inbox and not end.finished:
            raise BlockingIOError
        return end.inbox

    def send(self, data: Buffer) -> int:
        end = self.end
        if end.error is not None:
            raise end.error
        if end.closed:
            raise ConnectionResetError(errno.ECONNRESET, "closed")
        room = end.room
        if room <= 0:
            raise BlockingIOError
        taken = bytes(memoryview(data)[:room])
        if not end.loop.dead:
            end.send(taken)
        return len(taken)

    def sendmsg(self, buffers: Sequence[Buffer], _ancillary: Any = (), _flags: int = 0) -> int:
        return self.send(b"".join(buffers))

    def close(self) -> None:
        self.end.close()


class SimTransport(asyncio.Transport):
    """The side of a connection that was opened with ``create_connection``."""

    def __init__(self, end: End, protocol: Any) -> None:
        super().__init__()
        self._end = end
        self._protocol = protocol
        self._unsent = bytearray()
        self._closing = False
        self._lost = False
        self._paused_writing = False
        self._reading = True
        end.transport = self

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def get_protocol(self) -> Any:
        return self._protocol

    def write(self, data: Any) -> None:
        if self._lost or self._end.loop.dead:
            return
        self._unsent += data
        self.drained()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def drained(self) -> None:
        """There may be room again."""
        end = self._end
        room = end.room
        if room > 0 and self._unsent and not end.closed:
            piece = bytes(self._unsent[:room])
            del self._unsent[: len(piece)]
            end.send(piece)
        if self._unsent and not self._paused_writing:
            self._paused_writing = True
            self._protocol.pause_writing()
        elif not self._unsent and self._paused_writing:
            self._paused_writing = False
            end.loop.call_soon(self._protocol.resume_writing)
        if self._closing and not self._unsent:
            self._end_now(None)

    def readable(self) -> None:
        """Called on the loop when there is something to read."""
        end = self._end
        while end.inbox and self._reading and not self._lost:
            if isinstance(self._protocol, asyncio.BufferedProtocol):
                buffer = memoryview(self._protocol.get_buffer(len(end.inbox)))
                count = min(len(buffer), len(end.inbox))
                buffer[:count] = end.inbox[:count]
                del end.inbox[:count]
                end.taken(count)
                self._protocol.buffer_updated(count)
            else:
                data = bytes(end.inbox)
                end.inbox.clear()
                end.taken(len(data))
                self._protocol.data_received(data)
        if self._lost or not self._reading:
            return
        if end.error is not None:
            self._end_now(end.error)
        elif end.finished and not end.inbox:
            self._protocol.eof_received()
            self._end_now(None)

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._end.tell()

    def is_reading(self) -> bool:
        return self._reading

    def is_closing(self) -> bool:
        return self._closing or self._lost

    def close(self) -> None:
        self._closing = True
        self.drained()

    def abort(self) -> None:
        self._unsent.clear()
        self._end_now(None)

    def can_write_eof(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return len(self._unsent)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """The window is the limit."""

    def gone(self) -> None:
        """Its process has ended, or it gave the connection up."""
        self._lost = self._closing = True

    def _end_now(self, error: Exception | None) -> None:
        if not self._lost:
            self._lost = self._closing = True
            self._end.close()
            self._end.loop.call_soon(self._protocol.connection_lost, error)
