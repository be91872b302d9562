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
from collections.abc import Callable
from typing import Any, cast

from tidelog.model.errors import ConfigError
from tidelog.testing.simulation.loop import Agenda, SimLoop
from tidelog.testing.simulation.sockets import SimSocket, SimTransport
from tidelog.testing.simulation.stream import End


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
