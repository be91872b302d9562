"""A network in memory: TCP as programs see it, between simulated machines, with delays, stalls, cuts and resets.

Bytes of a connection arrive in order, late, in pieces. Bytes held back by a cut arrive when it is healed, as TCP resends them; a
cut may be one-way. A killed process resets its connections; a machine without power is silent, and its peers find out when it
returns or when they time out.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import random
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from tidelog.model.errors import ConfigError
from tidelog.testing.simulation.loop import Agenda, SimLoop
from tidelog.testing.simulation.sockets import SimSocket, SimTransport

WINDOW_BYTES = 256 * 1024
"""The most bytes in flight in one direction."""
PIECE_BYTES = 16 * 1024


class Network:
    """All machines, by address."""

    def __init__(self, agenda: Agenda, seed: int) -> None:
        self.agenda = agenda
        self.rng = random.Random(seed)
        self.latency_s = 0.0005
        """The mean latency of a packet in seconds; some take ten times that."""
        self.slow: dict[tuple[str, str], float] = {}
        """Additional seconds from one address to another."""
        self.cuts: set[tuple[str, str]] = set()
        """(from, to) pairs between which nothing passes."""
        self.resets = 0
        self.hosts: dict[str, SimLoop] = {}
        self._dark: set[str] = set()
        """Addresses of machines without power, where not even a refusal comes back."""
        self._listening: dict[tuple[str, int], SimListener] = {}
        self._ends: dict[int, End] = {}
        self._held_back: dict[End, None] = {}
        self._fds = 1000
        self._sent = hashlib.sha256()
        self._ephemeral = 40_000

    def attach(self, loop: SimLoop, host: str) -> None:
        """A machine comes (back) to an address; connections of its predecessor are reset."""
        loop.network = self
        loop.host = host  # type: ignore[attr-defined]
        former = self.hosts.get(host)
        self.hosts[host] = loop
        self._dark.discard(host)
        if former is not None:
            self.gone(former, silent=False)

    def gone(self, loop: SimLoop, *, silent: bool) -> None:
        """The process has ended; with ``silent`` its peers are not notified until the address is used again."""
        for where in [where for where, listener in self._listening.items() if listener.loop is loop]:
            del self._listening[where]
        if silent:
            self._dark.update(host for host, there in self.hosts.items() if there is loop)
            return
        for end in [end for end in self._ends.values() if end.loop is loop]:
            end.reset()

    def reset_some(self, share: float) -> None:
        """Resets that share of all connections."""
        for end in list(self._ends.values()):
            if self.rng.random() < share / 2:
                self.resets += 1
                end.lost(ConnectionResetError(errno.ECONNRESET, "reset"))
                end.peer.lost(ConnectionResetError(errno.ECONNRESET, "reset"))

    def cut(self, source: str, target: str) -> None:
        """Lets nothing pass from ``source`` to ``target``."""
        self.cuts.add((source, target))

    def heal(self) -> None:
        """Ends every cut and delay; held bytes move on."""
        self.cuts.clear()
        self.slow.clear()
        held_back, self._held_back = self._held_back, {}
        for end in held_back:
            end.flush()

    def hold_back(self, end: End) -> None:
        """A cut holds back bytes of this end, which may have been closed since."""
        self._held_back[end] = None

    def end(self) -> None:
        """Closes every connection at the end of the world."""
        for end in self._ends.values():
            if end.transport is not None:
                end.transport.gone()

    def digest(self) -> str:
        """A hash of everything that was sent: from, to, when, which bytes."""
        return self._sent.hexdigest()

    def sent(self, source: str, target: str, data: bytes) -> None:
        """Adds to the digest."""
        self._sent.update(f"{self.agenda.now!r} {source} {target} {len(data)} ".encode())
        self._sent.update(data)

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self.cuts

    def delay(self, source: str, target: str) -> float:
        base = self.rng.expovariate(1.0 / self.latency_s)
        if self.rng.random() < 0.01:
            base *= 10
        return base + self.slow.get((source, target), 0.0)

    # Sockets

    def bind(self, loop: SimLoop, host: str, port: int) -> SimListener:
        """ConfigError when the port is in use."""
        here = cast(str, loop.host)  # type: ignore[attr-defined]
        if port == 0:
            self._ephemeral += 1
            port = self._ephemeral
        if (here, port) in self._listening:
            raise ConfigError(f"listener {host}:{port}: the port is in use")
        listener = self._listening[here, port] = SimListener(self, loop, here, port, self.new_fd())
        return listener

    def unbind(self, listener: SimListener) -> None:
        if self._listening.get((listener.host, listener.port)) is listener:
            del self._listening[listener.host, listener.port]

    def new_fd(self) -> int:
        self._fds += 1
        return self._fds

    def register(self, end: End) -> None:
        self._ends[end.fd] = end

    def forget(self, end: End) -> None:
        self._ends.pop(end.fd, None)

    async def connect(self, loop: SimLoop, factory: Callable[[], Any], host: str, port: int) -> tuple[SimTransport, Any]:
        """What ``loop.create_connection`` returns. ConnectionRefusedError when nothing listens; waits when the machine is
        silent."""
        answered: asyncio.Future[End] = loop.create_future()
        here = cast(str, loop.host)  # type: ignore[attr-defined]
        self._knock(loop, here, host, port, answered)
        own = await answered
        protocol = factory()
        transport = SimTransport(own, protocol)
        protocol.connection_made(transport)
        return transport, protocol

    def _knock(self, loop: SimLoop, here: str, host: str, port: int, answered: asyncio.Future[End]) -> None:
        def arrive() -> None:
            if answered.done() or loop.dead:
                return
            target = self.hosts.get(host)
            silent = target is None or target.paused or host in self._dark
            if silent or self.is_cut(here, host) or self.is_cut(host, here):
                self.agenda.call_later(0.2, arrive)  # the SYN is repeated, as TCP does
                return
            listener = self._listening.get((host, port))
            if listener is None or not listener.accepting:
                refusal = ConnectionRefusedError(errno.ECONNREFUSED, f"connect to {host}:{port}")
                loop.call_later(self.delay(host, here), _fail, answered, refusal)
                return
            assert target is not None
            mine, theirs = End(self, loop, here), End(self, target, host)
            mine.peer, theirs.peer = theirs, mine
            self.register(mine)
            self.register(theirs)
            listener.arrived(SimSocket(theirs))
            loop.call_later(self.delay(host, here), _settle, answered, mine)

        self.agenda.call_later(self.delay(here, host), arrive)

    def watch(self, loop: SimLoop, fd: int) -> None:
        """Watches ``fd``; reports at once what is already there."""
        end = self._ends.get(fd)
        if end is not None:
            end.tell()
            return
        for listener in self._listening.values():
            if listener.fd == fd:
                listener.tell()


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def _settle(future: asyncio.Future[Any], value: End) -> None:
    if future.done():
        value.close()
    else:
        future.set_result(value)


class SimListener:
    """A listening socket, as ``server.serving.listener`` uses it."""

    def __init__(self, network: Network, loop: SimLoop, host: str, port: int, fd: int) -> None:
        self.loop, self.host, self.port, self.fd = loop, host, port, fd
        self.accepting = False
        self._network = network
        self._waiting: list[SimSocket] = []

    def listen(self, _backlog: int) -> None:
        self.accepting = True

    def fileno(self) -> int:
        return self.fd

    def getsockname(self) -> tuple[str, int]:
        return self.host, self.port

    def accept(self) -> tuple[SimSocket, tuple[str, int]]:
        if not self._waiting:
            raise BlockingIOError
        connected = self._waiting.pop(0)
        return connected, (connected.end.peer.host, connected.end.peer.fd)

    def close(self) -> None:
        self.accepting = False
        self._network.unbind(self)
        for each in self._waiting:
            each.close()
        self._waiting.clear()

    def arrived(self, connected: SimSocket) -> None:
        self._waiting.append(connected)
        self.tell()

    def tell(self) -> None:
        callback = self.loop.readers.get(self.fd)
        if self._waiting and callback is not None:
            self.loop.call_soon(callback)


class End:
    """One side of a connection."""

    def __init__(self, network: Network, loop: SimLoop, host: str) -> None:
        self.network, self.loop, self.host = network, loop, host
        self.fd = network.new_fd()
        self.peer: End = self
        self.inbox = bytearray()
        self.finished = False
        """The peer sends no more."""
        self.error: OSError | None = None
        self.closed = False
        self.transport: SimTransport | None = None
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
