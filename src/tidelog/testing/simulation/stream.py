"""One direction of a simulated TCP connection: bytes in flight, in pieces, held back by cuts, lost by resets."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable
from typing import Protocol

from tidelog.testing.simulation.loop import Agenda, SimLoop

WINDOW_BYTES = 256 * 1024
"""The most bytes in flight in one direction."""
PIECE_BYTES = 16 * 1024


class Wires(Protocol):
    """What the ends of connections need from the network."""

    agenda: Agenda

    def new_fd(self) -> int: ...

    def forget(self, end: End) -> None: ...

    def sent(self, source: str, target: str, data: bytes) -> None: ...

    def is_cut(self, source: str, target: str) -> bool: ...

    def hold_back(self, end: End) -> None: ...

    def delay(self, source: str, target: str) -> float:
        """Seconds until bytes that leave now arrive."""
        ...


class Transport(Protocol):
    """An ``asyncio.Transport`` over an end."""

    def drained(self) -> None: ...

    def readable(self) -> None: ...

    def gone(self) -> None: ...


class End:
    """One side of a connection."""

    def __init__(self, network: Wires, loop: SimLoop, host: str) -> None:
        self.network, self.loop, self.host = network, loop, host
        self.fd = network.new_fd()
        self.peer: End = self
        self.inbox = bytearray()
        self.finished = False
        """The peer sends no more."""
        self.error: OSError | None = None
        self.closed = False
        self.transport: Transport | None = None
        self._pieces: deque[bytes | None] = deque()
        """In flight, in order; None is the end of the stream."""
        self._held = 0
        """How many of them a cut holds back."""
        self._under_way = 0
        self._arrives = 0.0
        self._told = False

    @property
    def room(self) -> int:
        return WINDOW_BYTES - self._under_way

    def send(self, data: bytes) -> None:
        """Sends ``data``."""
        self.network.sent(self.host, self.peer.host, data)
        for start in range(0, len(data), PIECE_BYTES):
            piece = data[start : start + PIECE_BYTES]
            self._under_way += len(piece)
            self._push(piece)

    def _push(self, piece: bytes | None) -> None:
        self._pieces.append(piece)
        self._go()

    def _go(self) -> None:
        """Schedules the arrival of one more piece."""
        if self.network.is_cut(self.host, self.peer.host):
            self._hold()
            return
        agenda = self.network.agenda
        self._arrives = max(self._arrives, agenda.now + self.network.delay(self.host, self.peer.host))
        agenda.call_at(self._arrives, self._arrive)

    def _hold(self) -> None:
        self._held += 1
        self.network.hold_back(self)

    def flush(self) -> None:
        """A cut was healed."""
        held, self._held = self._held, 0
        for _ in range(held):
            self._go()

    def _arrive(self) -> None:
        if not self._pieces:
            return  # they were lost with the process
        if self.network.is_cut(self.host, self.peer.host):
            self._hold()
            return
        # Whichever piece was scheduled, the next one in order arrives; pieces stopped by a cut are scheduled again later.
        piece = self._pieces.popleft()
        peer = self.peer
        if peer.loop.dead:
            return  # the machine is off: the bytes are lost, and the sender learns of it when the address answers again
        if piece is None:
            peer.finished = True
        elif peer.closed:
            self.lost(ConnectionResetError(errno.ECONNRESET, "the peer has closed"))
            return
        else:
            peer.inbox += piece
        peer.tell()

    def taken(self, count: int) -> None:
        """The program has read this many bytes, so the peer may send more."""
        peer = self.peer
        peer._under_way -= count
        if peer.loop.dead or peer.closed:
            return
        if peer.transport is not None:
            peer.transport.drained()
        elif (callback := peer.loop.writers.get(peer.fd)) is not None:
            peer.loop.call_soon(callback)

    def tell(self) -> None:
        """Reports that there is something to read (or the end)."""
        if self.loop.dead or self.closed or self._told or not (self.inbox or self.finished or self.error is not None):
            if (
                not self.loop.dead
                and not self.closed
                and (callback := self.loop.writers.get(self.fd)) is not None
                and self.room > 0
            ):
                self.loop.call_soon(self._writable, callback)
            return
        self._told = True
        self.loop.call_soon(self._readable)

    def _readable(self) -> None:
        self._told = False
        if self.closed:
            return
        if self.transport is not None:
            self.transport.readable()
            return
        callback = self.loop.readers.get(self.fd)
        if callback is not None:
            callback()
            if not self.closed and (self.inbox or self.finished or self.error is not None) and self.fd in self.loop.readers:
                self.tell()  # level-triggered, as epoll is

    def _writable(self, callback: Callable[[], object]) -> None:
        if not self.closed and self.loop.writers.get(self.fd) is callback:
            callback()

    def lost(self, error: OSError) -> None:
        """The connection is lost."""
        if not self.closed and self.error is None:
            self.error = error
            self.tell()
            if (callback := self.loop.writers.get(self.fd)) is not None and not self.loop.dead:
                self.loop.call_soon(callback)

    def reset(self) -> None:
        """This side's process has ended; the peer is notified as soon as it can be reached."""
        self.closed = True
        if self._held:
            self._pieces.clear()
            self._held = 0
        self.network.forget(self)
        if self.transport is not None:
            self.transport.gone()
        peer, network = self.peer, self.network

        def tell() -> None:
            if network.is_cut(self.host, peer.host):
                network.agenda.call_later(0.2, tell)
            else:
                peer.lost(ConnectionResetError(errno.ECONNRESET, "reset by peer"))

        network.agenda.call_later(network.delay(self.host, peer.host), tell)

    def close(self) -> None:
        """Reads nothing more; queued bytes still leave, then the end of the stream."""
        if self.closed:
            return
        self.closed = True
        self.network.forget(self)
        self.loop.readers.pop(self.fd, None)
        self.loop.writers.pop(self.fd, None)
        if self.inbox:
            self.reset()
        else:
            self._push(None)
