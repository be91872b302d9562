"""One client connection: a socket around a ``ConnectionMachine``.

This module moves bytes in and out when the loop reports the socket ready, and decides which failures are logged. A peer that
breaks the protocol is disconnected and logged; a disk that fails while an answer is read ends only that connection.
``connection_machine`` decides what happens to requests and answers, and in which order.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from tidelog.broker.answer_types import Outgoing
from tidelog.broker.request import Session
from tidelog.broker.request_times import RequestTimes
from tidelog.model.errors import ProtocolViolation
from tidelog.model.ports import Buffer, FileSlice
from tidelog.protocol.framing import MAX_PLAIN_REQUEST_BYTES, FrameReader
from tidelog.replication.purgatory import Parked
from tidelog.server.runtime import Alarm, Driver, LoopRuntime
from tidelog.server.serving.connection_machine import ConnectionMachine
from tidelog.server.serving.connection_ports import Then
from tidelog.server.serving.connection_states import Event, State
from tidelog.server.serving.send_batching import Turn
from tidelog.server.serving.sending import COLD, PEER_SLOW, SENT, TURN_OVER, Output, Part
from tidelog.server.serving.transport import Transport
from tidelog.server.serving.violations import LOOKED_AT, Violations

if TYPE_CHECKING:
    from tidelog.broker.authentication import Authentication, SaslListener

log = logging.getLogger(__name__)

AUTHENTICATE_WITHIN_S = 30
"""A client that has not authenticated by then is disconnected; an idle one may stay for minutes."""

READ_AHEAD_BYTES = 512 * 1024
"""What a client that sends requests in a row may have read with one call: a producer has five in flight, often of 128 KiB. About
what the kernel holds for it (``component_settings.SOCKET_BUFFER_BYTES``). A client that fills its buffer gets a larger one."""


class Owner(Protocol):
    """What a connection needs from the listener that accepted it."""

    runtime: LoopRuntime
    violations: Violations
    turn: Turn
    times: RequestTimes
    read_step: Callable[..., Callable[[], None] | None] | None
    """Makes the compiled form of ``Connection._readable`` for a connection that can have one (``server.native``)."""

    @property
    def handle(self) -> Callable[[Session, memoryview], Any]:
        """Handles a request: the dispatcher, or the metering around it when there are client quotas."""
        ...

    @property
    def metered(self) -> bool:
        """Whether there are client quotas."""
        ...

    @property
    def sasl(self) -> SaslListener | None:
        """How clients authenticate; None: they do not."""
        ...

    def authenticated(self, connection: Connection) -> None:
        """Called when the client of a SASL listener has authenticated for the first time."""
        ...

    def too_late(self, connection: Connection, within_s: float) -> None:
        """Called when the client of a SASL listener has not authenticated in time, for the log."""
        ...

    def closed(self, connection: Connection) -> None:
        """Called when the connection has closed; the owner drops it."""
        ...


class Connection:
    """A client's socket, as the ``Line`` of its machine."""

    __slots__ = (
        "_clock_ns",
        "_deadline",
        "_loop",
        "_on_readable",
        "_output",
        "_owner",
        "_runtime",
        "_session",
        "_strangers",
        "_timed",
        "_transport",
        "_writing",
        "authentication",
        "defers",
        "idle_since_ms",
        "machine",
        "peer_host",
    )

    def __init__(self, owner: Owner, transport: Transport, session: Session, max_request_bytes: int) -> None:
        self.peer_host = session.peer_host
        self.idle_since_ms = owner.runtime.real_ms()
        self._session = session
        self._timed = session.timed
        self._clock_ns = owner.times.clock_ns
        self._owner = owner
        self._runtime = owner.runtime
        self._loop = owner.runtime.loop
        self._transport = transport
        self._output = Output(transport)
        self._writing = False
        self.authentication: Authentication | None = None
        """The client's SASL exchange; None on a listener without SASL."""
        self._deadline: asyncio.TimerHandle | None = None
        if owner.sasl is None:
            frames = FrameReader(max_request_bytes, max_plain_bytes=MAX_PLAIN_REQUEST_BYTES, read_ahead=READ_AHEAD_BYTES)
            self.machine = ConnectionMachine(self, session, owner.handle, frames)
        else:
            from tidelog.server.serving.stranger_frames import StrangerFrames  # a listener without SASL needs none of it

            self._strangers = StrangerFrames(owner.sasl.largest_frame, max_request_bytes, MAX_PLAIN_REQUEST_BYTES)
            self._deadline = self._loop.call_later(AUTHENTICATE_WITHIN_S, self._too_late)
            self.authentication = owner.sasl.begin(session, owner.handle, self._authenticated, self._strangers.limit)
            self.machine = ConnectionMachine(self, session, self.authentication.handle, self._strangers, State.AUTHENTICATING)
        self.defers: Callable[[], bool] = partial(owner.turn.defers, self.machine)
        """Whether the answers leave at the end of the turn; bound once, because every request calls it."""
        step = None if owner.read_step is None else owner.read_step(self, transport, self.machine, owner.turn, self._clock_ns)
        self._on_readable: Callable[[], None] = step or self._readable
        self._loop.add_reader(transport.fd, self._on_readable)

    # -- what its listener asks -------------------------------------------------------------------------------------------

    def take_active(self) -> bool:
        """Whether anything moved since the last call."""
        active, self.machine.active = self.machine.active, False
        return active

    def close(self) -> None:
        """Closes the connection now and abandons a waiting request."""
        self.machine.close()

    def _authenticated(self) -> None:
        assert self._deadline is not None
        self._deadline.cancel()
        self._owner.authenticated(self)
        self.machine.on(Event.AUTHENTICATED)
        self._strangers.authenticated(READ_AHEAD_BYTES)

    def _too_late(self) -> None:
        self._owner.too_late(self, AUTHENTICATE_WITHIN_S)
        self.machine.close()

    def meter(self) -> None:
        """Quotas have changed: they apply from the next request on."""
        if self.authentication is None:
            self.machine.handle = self._owner.handle
        else:
            self.authentication.requests = self._owner.handle
        self.machine.session.mute = self.machine.throttle if self._owner.metered else None
        self._session.throttle_ms = 0
        self.machine.throttle_anew()

    def shrink(self) -> None:
        """Frees memory that an idle connection does not need."""
        if not self.machine.busy:
            self.machine.frames.shrink()

    # -- the machine's line -----------------------------------------------------------------------------------------------

    def send(self, parts: Sequence[Part]) -> bool:
        if self._timed:
            self._owner.times.sending(self._timed)
        for part in parts:
            self._session.bytes_out += part.length if isinstance(part, FileSlice) else len(part)
        try:
            return self._all_left(self._output.send(parts))
        except OSError as error:
            return self._cannot_send(error)

    def send_small(self, data: Buffer) -> bool:
        if self._timed:
            self._owner.times.sending(self._timed)
        self._session.bytes_out += len(data)
        try:
            taken = self._transport.send(data)
        except OSError as error:
            return self._cannot_send(error)
        if taken == len(data):
            return self._all_left(SENT) if self._timed else True
        self._output.add((memoryview(data)[taken:],))
        return self._all_left(PEER_SLOW)

    def pause(self) -> None:
        self._loop.call_soon(self._counted, self.machine.sent)

    def drive(self, coroutine: Coroutine[Any, Any, Outgoing], then: Then) -> Driver:
        return _CountedDriver(coroutine, then, self._counted)

    def when_done(self, parked: Parked, then: Callable[[], Callable[[], None] | None]) -> None:
        self._runtime.when_done(parked, then, self._session)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Alarm:
        return self._runtime.call_later(delay_s, callback) if delay_s else self._loop.call_soon(callback)

    def read(self, wanted: bool) -> None:
        if wanted:
            self._loop.add_reader(self._transport.fd, self._on_readable)
        else:
            self._loop.remove_reader(self._transport.fd)

    def failed(self, error: BaseException) -> None:
        if isinstance(error, ProtocolViolation):
            head = self.machine.frames.head(LOOKED_AT)
            self._owner.violations.tell(self.peer_host, error.client_id, error, self._runtime.now_ms(), head)
        else:
            log.error("a request of %s failed, closing its connection", self.peer_host, exc_info=error)

    def release(self) -> None:
        if self._writing:
            self._loop.remove_writer(self._transport.fd)
        if self._deadline is not None:
            self._deadline.cancel()
        self._output.clear()
        self._transport.close()
        self._owner.turn.forget(self.machine)
        self._owner.closed(self)

    def _counted(self, work: Callable[[], None]) -> None:
        """Does a piece of work, whose time counts for the client."""
        began_ns = self._clock_ns()
        try:
            work()
        finally:
            self._session.loop_ns += self._clock_ns() - began_ns

    # -- bytes in ---------------------------------------------------------------------------------------------------------

    def _readable(self) -> None:
        machine = self.machine
        receives = machine.takes_next
        try:
            if receives:
                count = self._transport.receive(machine.frames.writable())
            else:
                # The next request stays in the kernel until it may be handled, but a closed connection is noticed.
                count = 0 if machine.looks_for_end and self._transport.peer_has_ended() else -1
        except OSError as error:
            log.debug("%s: %s", self.peer_host, error)
            count = 0
        if count > 0:
            session = self._session
            session.received_ns = received_ns = self._clock_ns()
            session.bytes_in += count
            machine.received(count)
            session.loop_ns += self._clock_ns() - received_ns
        elif not count:
            machine.peer_ended()
        elif not receives:
            machine.stop_reading()

    # -- bytes out --------------------------------------------------------------------------------------------------------

    def _all_left(self, state: int) -> bool:
        """Whether everything was sent; otherwise the rest is sent as soon as possible."""
        if state == SENT:
            if self._timed:
                self._owner.times.sent(self._timed)
            return True
        if state == PEER_SLOW:
            self._writing = True
            self._loop.add_writer(self._transport.fd, self._writable)
        elif state == TURN_OVER:
            self._loop.call_soon(self._send_on)
        else:
            assert state == COLD
            self._runtime.run_blocking(self._output.cold_read()).add_done_callback(self._warmed)
        return False

    def _writable(self) -> None:
        began_ns = self._clock_ns()
        state = self._pump()
        if state is not None and state != PEER_SLOW:
            self._writing = False
            self._loop.remove_writer(self._transport.fd)
            self._pumped(state)
        self._session.loop_ns += self._clock_ns() - began_ns

    def _send_on(self) -> None:
        began_ns = self._clock_ns()
        if self.machine.state is not State.CLOSED and (state := self._pump()) is not None:
            self._pumped(state)
        self._session.loop_ns += self._clock_ns() - began_ns

    def _warmed(self, reading: asyncio.Future[bytes]) -> None:
        if self.machine.state is State.CLOSED or reading.cancelled():
            return
        try:
            self._output.warmed(reading.result())
        except OSError as error:
            self._cannot_send(error)
            return
        self._send_on()

    def _pump(self) -> int | None:
        """How far sending got; None when it failed and the connection was closed."""
        self.machine.active = True
        try:
            return self._output.pump()
        except OSError as error:
            self._cannot_send(error)
            return None

    def _pumped(self, state: int) -> None:
        if self._all_left(state):
            self.machine.sent()

    def _cannot_send(self, error: OSError) -> bool:
        if isinstance(error, ConnectionError | TimeoutError):
            log.debug("%s: %s", self.peer_host, error)
        else:
            log.error("closing the connection of %s, its answer cannot be read: %s", self.peer_host, error)
        self.machine.close()
        return False


class _CountedDriver(Driver):
    """Steps a coroutine, and counts the time of each step for the client; the first one is part of reading the request."""

    __slots__ = ("_counted",)

    def __init__(self, coroutine: Coroutine[Any, Any, Any], then: Then, counted: Callable[[Callable[[], None]], None]) -> None:
        super().__init__(coroutine, then)
        self._counted = counted

    def _step(self, future: asyncio.Future[Any] | None) -> None:
        if future is None:
            super()._step(None)
        else:
            self._counted(partial(super()._step, future))
