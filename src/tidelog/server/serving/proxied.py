"""PROXY headers on one listener: what happens between a balancer's connection and the client's first byte.

A listed balancer has to send a header, first and within ``WITHIN_S``; the connection then counts as the client's that it names,
for limits, quotas, ACLs and logs. Of more than ``MOST_AT_ONCE`` connections without a whole header the oldest is closed.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Callable

from tidelog.config.listener_proxy import Network
from tidelog.security.proxy_header import LONGEST, BadProxyHeader, parse_header
from tidelog.server.runtime import LoopRuntime
from tidelog.server.serving.violations import LogLimit

log = logging.getLogger(__name__)

WITHIN_S = 10.0
MOST_AT_ONCE = 1000


class Announced:
    """One connection of a balancer, without a whole header."""

    __slots__ = ("alarm", "connected", "host", "kept")

    def __init__(self, connected: socket.socket, host: str) -> None:
        self.connected = connected
        self.host = host
        """The balancer's address."""
        self.kept = b""
        """The part of the header that has come."""
        self.alarm: asyncio.TimerHandle | None = None


class ProxyHeaders:
    """Takes connections of a listener's balancers from ``accept`` to ``named``, or closes them."""

    def __init__(
        self, listener: str, networks: tuple[Network, ...], runtime: LoopRuntime, named: Callable[[socket.socket, str], None]
    ) -> None:
        """``named`` gets the connection and the address of its client."""
        self._listener = listener
        self._networks = networks
        self._runtime = runtime
        self._loop = runtime.loop
        self._named = named
        self._waiting: dict[Announced, None] = {}
        """The oldest first."""
        self._limit = LogLimit()

    def __len__(self) -> int:
        """How many connections have no whole header."""
        return len(self._waiting)

    @property
    def refused(self) -> int:
        """Connections that were closed for their header."""
        return self._limit.total

    def are_due_from(self, host: str) -> bool:
        """Whether the peer at this address is a balancer, which sends headers."""
        address = ipaddress.ip_address(host.partition("%")[0])
        return any(address in network for network in self._networks)

    def accept(self, connected: socket.socket, host: str) -> None:
        """Begins with a connected socket, which belongs to this object until it is named."""
        connected.setblocking(False)
        if len(self._waiting) >= MOST_AT_ONCE:
            self._refuse(next(iter(self._waiting)), f"more than {MOST_AT_ONCE} connections wait for one")
        announced = Announced(connected, host)
        announced.alarm = self._loop.call_later(WITHIN_S, self._too_late, announced)
        self._waiting[announced] = None
        self._loop.add_reader(connected.fileno(), self._readable, announced)

    def close(self) -> None:
        """Closes all connections without a whole header."""
        for announced in list(self._waiting):
            self._drop(announced)

    def _readable(self, announced: Announced) -> None:
        connected = announced.connected
        try:
            # Only the header is taken: what comes after it is the client's, in TLS or not.
            seen = connected.recv(LONGEST, socket.MSG_PEEK)
            if not seen:
                self._drop(announced)
                return
            data = announced.kept + seen
            header = parse_header(data)
            connected.recv(len(seen) if header is None else header.length - len(announced.kept))
        except (BlockingIOError, InterruptedError):
            return
        except BadProxyHeader as problem:
            self._refuse(announced, str(problem))
            return
        except OSError as error:
            log.debug("%s: %s", announced.host, error)
            self._drop(announced)
            return
        if header is None:
            announced.kept = data
            return
        self._forget(announced)
        self._named(connected, header.host or announced.host)

    def _too_late(self, announced: Announced) -> None:
        self._refuse(announced, f"it was not complete within {WITHIN_S:.0f} s")

    def _refuse(self, announced: Announced, reason: str) -> None:
        if untold := self._limit.untold(self._runtime.real_ms()):
            log.warning("listener %s: %d more connections were closed for their PROXY header", self._listener, untold)
        if self._limit.takes():
            log.warning("listener %s: a connection of %s has no PROXY header: %s", self._listener, announced.host, reason)
        self._drop(announced)

    def _drop(self, announced: Announced) -> None:
        self._forget(announced)
        announced.connected.close()

    def _forget(self, announced: Announced) -> None:
        self._loop.remove_reader(announced.connected.fileno())
        if announced.alarm is not None:
            announced.alarm.cancel()
        self._waiting.pop(announced, None)
