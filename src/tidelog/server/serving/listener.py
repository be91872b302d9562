"""A listening socket and its connections.

It binds the address, limits the number of connections (``max.connections``, ``max.connections.per.ip`` and its overrides, and
``newcomers`` for those of clients that have not authenticated) and their rate (``max.connection.creation.rate``), of the node and
of itself, closes idle ones, and drains them when the node stops. When the process runs out of descriptors it pauses accepting
before the last ones, which log files need; existing connections are not affected.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tidelog.broker.dispatch import Dispatcher
from tidelog.broker.node import ServingNode
from tidelog.broker.quotas.metering import Metering
from tidelog.broker.quotas.rates import SampledRate, Windows, throttle_ms
from tidelog.broker.request import Session
from tidelog.broker.request_times import RequestTimes
from tidelog.broker.usage import Usage
from tidelog.protocol.api_keys import ApiKey
from tidelog.security.principal import KafkaPrincipal
from tidelog.server.disk import descriptors_allowed
from tidelog.server.native import fetch_lanes, produce_lanes, read_steps
from tidelog.server.runtime import Alarm, LoopRuntime
from tidelog.server.serving.binding import unavailable
from tidelog.server.serving.connection import Connection
from tidelog.server.serving.follower_lane import with_follower_lane
from tidelog.server.serving.newcomers import Newcomers
from tidelog.server.serving.send_batching import Turn
from tidelog.server.serving.slow_requests import SlowRequests
from tidelog.server.serving.transport import PlainTransport, Transport
from tidelog.server.serving.violations import LogLimit, Violations

if TYPE_CHECKING:
    from tidelog.broker.authentication import LoginAudit, SaslListener
    from tidelog.config.listener_proxy import Network
    from tidelog.server.serving.proxied import ProxyHeaders
    from tidelog.server.serving.tls_listener import TlsListener
    from tidelog.server.serving.tls_transport import TlsTransport

log = logging.getLogger(__name__)

ACCEPTS_PER_TURN = 64
PAUSE_S = 0.5
"""How long accepting pauses when there are no descriptors or buffers left."""
LONGEST_PAUSE_S = 60.0
"""At a rate that allows less than a connection a minute; the next connection is counted, too."""
DESCRIPTORS_FOR_FILES = 64
"""Descriptors never given to clients: a log file that cannot be opened looks like a failing disk."""
UNLIMITED = 2_147_483_647
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


@dataclass(frozen=True, slots=True)
class Limits:
    """Kafka's settings for connections, under its names; -1 leaves a buffer size to the system."""

    max_request_bytes: int = 104_857_600
    max_connections: int = UNLIMITED
    max_connections_per_ip: int = UNLIMITED
    per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    max_idle_ms: int = 600_000
    """Negative: no limit."""
    send_buffer_bytes: int = 102_400
    receive_buffer_bytes: int = 102_400
    backlog: int = 50
    max_creation_rate: int = UNLIMITED
    """Connections a second, over all listeners but ``exempt``."""
    exempt: str = ""
    """The listener between brokers, where there are others: a flood of clients must not keep brokers apart, so only its own
    limits hold, and those of an address."""
    max_unauthenticated: int = 2000
    """Of one listener; see ``newcomers``."""
    max_unauthenticated_per_ip: int = 1000
    own_connections: int = UNLIMITED
    """Of this listener alone, as is the next one (``config.listener_connections``)."""
    own_creation_rate: int = UNLIMITED
    slow_request_ms: int = 0
    """Requests that take at least this long are logged; 0: none."""

    def for_host(self, host: str) -> int:
        """The most connections of one address."""
        return self.per_ip_overrides.get(host, self.max_connections_per_ip)


class ConnectionCount:
    """Counts the connections of a listener, or of all listeners of a node, by address, and how many are accepted a second."""

    __slots__ = ("_rate", "by_host", "total", "windows")

    def __init__(self, windows: Windows = Windows()) -> None:
        self.total = 0
        self.by_host: Counter[str] = Counter()
        self._rate = SampledRate()
        self.windows = windows

    def accepted(self, bound: float, now_ms: int) -> int:
        """Records a connection; returns for how many ms none may be accepted, so that ``bound`` a second holds."""
        self._rate.record(1, now_ms, self.windows)
        return throttle_ms(self._rate.measure(now_ms, self.windows), bound)

    def add(self, host: str) -> None:
        self.total += 1
        self.by_host[host] += 1

    def remove(self, host: str) -> None:
        self.total -= 1
        self.by_host[host] -= 1
        if not self.by_host[host]:
            del self.by_host[host]


class Listener:
    """Accepts connections and tracks them."""

    def __init__(
        self,
        name: str,
        listening: socket.socket,
        node: ServingNode,
        runtime: LoopRuntime,
        *,
        limits: Limits,
        count: ConnectionCount,
        sasl: SaslListener | None = None,
        tls: TlsListener | None = None,
        audit: LoginAudit | None = None,
        balancers: tuple[Network, ...] = (),
    ) -> None:
        """``audit``: gets the logins by certificate; ``sasl`` reports its own. ``balancers``: the networks whose connections
        begin with a PROXY header."""
        self.name = name
        self.sasl = sasl
        self.tls = tls
        """None for plain text."""
        self.port: int = listening.getsockname()[1]
        """The actual port; the system chooses one when 0 is configured."""
        self.runtime = runtime
        self.times, self.usage = RequestTimes(runtime.busy_ns, SlowRequests(name, runtime.real_ms).tell), Usage()
        self.dispatcher = Dispatcher(node, node.apis, self.times, self.usage, fetch_lanes(), produce_lanes())
        self.read_step = read_steps()
        self.violations = Violations()
        self.turn = Turn(runtime.loop, runtime.busy_ns)
        self.connections: dict[Connection, None] = {}
        self.refused, self._refusals = 0, LogLimit()
        self._unmetered = with_follower_lane(node, self.dispatcher)
        self.handle: Callable[[Session, memoryview], Any] = self._unmetered
        self.metered = False
        self.metering: Metering | None = None
        """Enforces client quotas, where there are any."""
        self._connected: Callable[[str], int] | None = None
        self._held: dict[Transport, tuple[Alarm, str]] = {}
        self.newcomers = Newcomers(name, runtime.real_ms)
        self._listening = [listening]
        self._count, self._own = count, ConnectionCount(count.windows)
        self._opened = self._accepting = False
        self._emptied: asyncio.Future[None] | None = None
        self._last_descriptor = max(descriptors_allowed() - DESCRIPTORS_FOR_FILES, DESCRIPTORS_FOR_FILES)
        self.change_limits(limits)
        self._sweep_s = min(30.0, max(0.05, limits.max_idle_ms / 4000)) if limits.max_idle_ms >= 0 else 30.0
        self._sweeping: asyncio.TimerHandle | None = None
        self._handshakes = None
        if tls is not None:
            tls.audit = audit
            from tidelog.server.serving.tls_handshake import Handshakes  # a listener in plain text needs none of it

            self._handshakes = Handshakes(tls, runtime, self._secured, self._gone, self.newcomers)
        self.proxied: ProxyHeaders | None = None
        """Reads what balancers say of their clients, where there are any."""
        if balancers:
            from tidelog.server.serving.proxied import ProxyHeaders

            self.proxied = ProxyHeaders(name, balancers, runtime, self._accepted)

    def change_limits(self, limits: Limits) -> None:
        """Applies to new connections; existing ones stay. The backlog and the buffers of the reader are fixed at the start."""
        self._limits = limits
        self.times.slow_ns = limits.slow_request_ms * 1_000_000
        # Half of the descriptors are for clients that have authenticated.
        most = min(limits.max_unauthenticated, self._last_descriptor // 2)
        self.newcomers.allow(most, limits.max_unauthenticated_per_ip)

    def follow_quotas(self, for_clients: bool, connected: Callable[[str], int] | None) -> None:
        """Quotas have changed.

        ``for_clients``: whether any client quota exists. ``connected``: called with the address of each new connection; returns
        how many ms that connection is held before it is closed (KIP-612). None while no address has a quota.
        """
        self._connected = connected
        metering = self.metering if for_clients else None
        self.metered = metering is not None
        self.handle = self._unmetered if metering is None else metering.handle
        for connection in list(self.connections):
            connection.meter()

    @property
    def requests(self) -> Counter[tuple[ApiKey, int]]:
        """Requests read, by API and version."""
        counted = Counter(self.dispatcher.requests)
        if self.metering is not None:
            counted.update(self.metering.dispatcher.requests)
        return counted

    def open(self) -> None:
        """Lets clients connect and wait for ``start``. ConfigError when another process has begun to listen on the address."""
        try:
            self._listening[0].listen(self._limits.backlog)
        except OSError as error:
            raise unavailable(self.name, error) from error
        self._opened = True

    def start(self) -> None:
        """Accepts connections from now on. ConfigError as for ``open``."""
        if self._accepting:
            return
        if not self._opened:
            self.open()
        self._accepting = True
        self._accept_again()
        self._sweeping = self.runtime.loop.call_later(self._sweep_s, self._sweep)

    def accept_also(self, listening: socket.socket) -> None:
        """Accepts from one more socket, which listens already; other processes may accept from it, too."""
        listening.setblocking(False)
        self._listening.append(listening)
        if self._accepting:
            self.runtime.loop.add_reader(listening.fileno(), self._accept, listening)

    def stop_accepting(self) -> None:
        """Accepts no more; existing connections stay open."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        if self._accepting:
            self._accepting = False
            self._accept_nothing()
        for held in list(self._held):
            self._end_held(held)
        if self.proxied is not None:
            self.proxied.close()
        if self._handshakes is not None:
            self._handshakes.close()
        for listening in self._listening:
            listening.close()

    async def drain(self, timeout_s: float) -> None:
        """Lets every connection finish its current request, then closes it; after ``timeout_s`` seconds closes the rest."""
        for connection in list(self.connections):
            connection.machine.drain()
        if self.connections:
            self._emptied = self.runtime.loop.create_future()
            await asyncio.wait([self._emptied], timeout=timeout_s)
        for connection in list(self.connections):
            connection.close()

    def authenticated(self, connection: Connection) -> None:
        """Called by a connection whose client has authenticated for the first time."""
        self.newcomers.remove(connection)

    def too_late(self, connection: Connection, within_s: float) -> None:
        """Called by a connection that is closed because its client has not authenticated in time."""
        self.newcomers.too_late(connection.peer_host, within_s)

    def closed(self, connection: Connection) -> None:
        """Called by a connection that has closed."""
        self.connections.pop(connection, None)
        self.usage.add(connection.machine.session)
        self.newcomers.remove(connection)
        self._gone(connection.peer_host)
        if not self.connections and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            try:
                connected, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                self._pause(error.strerror or str(error))
                return
            if connected.fileno() >= self._last_descriptor:
                # The system assigns the lowest free number, so hardly any is left.
                connected.close()
                self.refused += 1
                self._pause("the last descriptors are for log files")
                return
            host = str(address[0]).removeprefix("::ffff:")
            if self.proxied is not None and self.proxied.are_due_from(host):
                self.proxied.accept(connected, host)
            else:
                self._accepted(connected, host)
            if self._too_many_a_second():
                return

    def _too_many_a_second(self) -> bool:
        """Records a connection, and pauses accepting when there are more than ``max.connection.creation.rate``, of the node or
        of this listener."""
        limits, wait_ms = self._limits, 0
        if limits.max_creation_rate != UNLIMITED and self.name != limits.exempt:
            wait_ms = self._count.accepted(limits.max_creation_rate, self.runtime.even_ms())
        if limits.own_creation_rate != UNLIMITED:
            wait_ms = max(wait_ms, self._own.accepted(limits.own_creation_rate, self.runtime.even_ms()))
        if wait_ms:
            log.debug("listener %s accepts nothing for %d ms (max.connection.creation.rate)", self.name, wait_ms)
            self._pause_for(min(wait_ms / 1000, LONGEST_PAUSE_S))
        return wait_ms > 0

    def _pause(self, reason: str) -> None:
        log.error("listener %s accepts nothing for %s s: %s", self.name, PAUSE_S, reason)
        self._pause_for(PAUSE_S)

    def _pause_for(self, wait_s: float) -> None:
        self._accept_nothing()
        self.runtime.loop.call_later(wait_s, self._accept_again)

    def _accept_nothing(self) -> None:
        for listening in self._listening:
            self.runtime.loop.remove_reader(listening.fileno())

    def _accept_again(self) -> None:
        if self._accepting:
            for listening in self._listening:
                self.runtime.loop.add_reader(listening.fileno(), self._accept, listening)

    def _accepted(self, connected: socket.socket, host: str) -> None:
        limits = self._limits
        if reason := self._why_full(host):
            self.refused += 1
            if untold := self._refusals.untold(self.runtime.real_ms()):
                log.warning("listener %s: %d more connections were refused", self.name, untold)
            if self._refusals.takes():
                log.warning("listener %s refuses a connection of %s: %s", self.name, host, reason)
            connected.close()
            return
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if limits.send_buffer_bytes > 0:
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.send_buffer_bytes)
            if limits.receive_buffer_bytes > 0:
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, limits.receive_buffer_bytes)
            transport = PlainTransport(connected)
        except OSError as error:
            log.debug("%s was gone before it was accepted: %s", host, error)
            connected.close()
            return
        self._count.add(host)
        self._own.add(host)
        if self._connected is not None and (wait_ms := self._connected(host)) > 0:
            end = partial(self._end_held, transport)
            self._held[transport] = self.runtime.call_later(wait_ms / 1000, end), host
            self.newcomers.add(transport, host, end)
            return
        if self._handshakes is not None:
            self._handshakes.accept(connected, host)
        else:
            self._connect(Connection(self, transport, Session(self.name, host), limits.max_request_bytes))

    def _why_full(self, host: str) -> str:
        """The limit because of which no connection of ``host`` is taken; empty when there is none."""
        limits, count = self._limits, self._count
        if self._own.total >= limits.own_connections:
            return f"the listener has {self._own.total} (listener.name.{self.name.lower()}.max.connections)"
        of_node = count.total >= limits.max_connections and self.name != limits.exempt
        if of_node or count.by_host[host] >= limits.for_host(host):
            return f"it has {count.by_host[host]}, all have {count.total} (max.connections, max.connections.per.ip)"
        return ""

    def _gone(self, host: str) -> None:
        """A connection that was counted has ended."""
        self._count.remove(host)
        self._own.remove(host)

    def _secured(self, transport: TlsTransport, host: str, principal: KafkaPrincipal) -> None:
        """A TLS handshake is complete. With SASL, the certificate only lets the client in."""
        from tidelog.server.serving.tls_connection import TlsConnection

        session = Session(self.name, host) if self.sasl is not None else Session(self.name, host, principal)
        if self.tls is not None and self.sasl is None:
            self.tls.entered(session)
        self._connect(TlsConnection(self, transport, session, self._limits.max_request_bytes))

    def _connect(self, connection: Connection) -> None:
        self.connections[connection] = None
        if self.sasl is not None:
            self.newcomers.add(connection, connection.peer_host, connection.close)
        if self.metered:
            connection.meter()

    def _end_held(self, transport: Transport) -> None:
        """Closes a held connection, which exceeded its address's connection rate; the client may retry now."""
        alarm, host = self._held.pop(transport)
        alarm.cancel()
        self.newcomers.remove(transport)
        self._gone(host)
        transport.close()

    def _sweep(self) -> None:
        """Closes connections that have been idle too long and shrinks the buffers of those that are idle now. A client that
        does not read its answer counts as idle."""
        now_ms = self.runtime.real_ms()
        for connection in list(self.connections):
            if connection.take_active() or connection.machine.waiting:
                connection.idle_since_ms = now_ms
            elif 0 <= self._limits.max_idle_ms <= now_ms - connection.idle_since_ms:
                log.debug("closing the connection of %s: idle for %d ms", connection.peer_host, now_ms - connection.idle_since_ms)
                connection.close()
            else:
                connection.shrink()
        self._sweeping = self.runtime.loop.call_later(self._sweep_s, self._sweep)
