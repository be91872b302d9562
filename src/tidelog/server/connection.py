"""One client connection: requests in, one at a time, answers out, in order.

What is decided here:

- One request is in flight, as Kafka mutes the channel. What arrives meanwhile waits in the kernel's buffer, and that is the
  back-pressure on a client that asks faster than it reads. The request's bytes stay where they are until it is answered.
- Several small requests that arrived together are answered in a row, with one call to the socket, but not more than
  ``REQUESTS_PER_TURN`` before other connections have their turn. Where several clients ask at once, their small answers leave
  together at the end of the loop's turn (``server.turn``).
- A client that goes while its request waits is noticed, and its long poll abandoned.
- Whatever ends the connection, answers to earlier requests leave first.
- When a client closes, what it sent before is still handled: a producer with acks=0 may have closed right after its last batch.
  So a Produce is not abandoned like other requests that wait: its records have arrived.

Whoever breaks the protocol loses the connection and gets a line in the debug log. A failing disk under an answer ends that
connection alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import CoroutineType
from typing import Any, Protocol

from tidelog.broker.context import CLOSE_CONNECTION, NO_RESPONSE, Context
from tidelog.broker.dispatch import Dispatcher, Outgoing
from tidelog.model.errors import ProtocolViolation
from tidelog.model.ports import Buffer
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import MAX_PLAIN_REQUEST_BYTES, FrameReader
from tidelog.server.runtime import Driver, LoopRuntime
from tidelog.server.sending import COLD, PEER_SLOW, SENT, TURN_OVER, Output, Part
from tidelog.server.transport import PlainTransport
from tidelog.server.turn import Turn
from tidelog.server.violations import Violations

log = logging.getLogger(__name__)

REQUESTS_PER_TURN = 32
COALESCE_BYTES = 64 * 1024
"""Larger answers are not collected but sent at once."""


class Owner(Protocol):
    """What a connection asks of the listener that accepted it."""

    runtime: LoopRuntime
    dispatcher: Dispatcher
    violations: Violations
    turn: Turn

    def closed(self, connection: Connection) -> None:
        """It is closed and will not be heard of again."""
        ...


class Connection:
    """A client's socket and what it is at."""

    __slots__ = (
        "_answers",
        "_ctx",
        "_driver",
        "_ended",
        "_handle",
        "_loop",
        "_output",
        "_owner",
        "_reading",
        "_received",
        "_sending",
        "_transport",
        "_turn",
        "active",
        "closed",
        "draining",
        "idle_since_ms",
        "peer_host",
    )

    def __init__(self, owner: Owner, transport: PlainTransport, ctx: Context, max_request_bytes: int) -> None:
        self.peer_host = ctx.peer_host
        self.closed = False
        self.draining = False
        self.active = True
        """Whether anything moved since the listener last looked."""
        self.idle_since_ms = owner.runtime.real_ms()
        self._owner = owner
        self._loop = owner.runtime.loop
        self._handle: Callable[[Context, memoryview], Any] = owner.dispatcher.handle
        self._transport = transport
        self._turn = owner.turn
        self._ctx = ctx
        self._received = FrameReader(max_request_bytes, max_plain_bytes=MAX_PLAIN_REQUEST_BYTES)
        self._output = Output(transport)
        self._driver: Driver | None = None
        self._answers: list[Buffer] = []
        self._sending = False
        self._ended = False
        self._reading = True
        self._loop.add_reader(transport.fd, self._readable)

    def _violated(self, error: ProtocolViolation) -> None:
        self._owner.violations.tell(self.peer_host, self._ctx.client_id, error, self._owner.runtime.now_ms())

    @property
    def busy(self) -> bool:
        """Whether a request is in flight or an answer on its way."""
        return self._driver is not None or self._sending

    @property
    def waiting(self) -> bool:
        """Whether the client waits for an answer: it may be silent as long as it likes."""
        return self._driver is not None and not self._ended

    def drain(self) -> None:
        """Handle no further request; close once nothing is in flight."""
        self.draining = True
        if not self.busy:
            self.close()

    def shrink(self) -> None:
        """Give back memory that an idle connection does not need."""
        if not self.busy:
            self._received.shrink()

    def close(self) -> None:
        """End the connection now; a waiting request is abandoned."""
        if self.closed:
            return
        self.closed = True
        self._stop_reading()
        if self._sending:
            self._loop.remove_writer(self._transport.fd)
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.abandon()
        self._output.clear()
        self._answers.clear()
        self._transport.close()
        self._turn.forget(self)
        if self._ctx.on_closed is not None:
            self._ctx.on_closed()
        self._owner.closed(self)

    # Reading

    def _readable(self) -> None:
        if self._driver is not None or self._sending:
            self._readable_while_busy()
            return
        try:
            count = self._transport.receive(self._received.writable())
        except OSError as error:
            log.debug("%s: %s", self.peer_host, error)
            count = 0
        if count < 0:
            return
        self.active = True
        if not count:
            self._peer_ended()
            return
        self._received.received(count)
        self._process()

    def _readable_while_busy(self) -> None:
        """The next request waits in the kernel until the one in flight is answered; but a client that has gone is noticed."""
        try:
            ended = self._transport.peer_has_ended()
        except OSError as error:
            log.debug("%s: %s", self.peer_host, error)
            ended = True
        if ended:
            self._peer_ended()
        else:
            self._stop_reading()

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._transport.fd)

    def _peer_ended(self) -> None:
        """The client will neither send nor read: handle what it sent, without answering, and close."""
        self._ended = True
        self._stop_reading()
        if self._driver is not None and self._may_abandon():
            driver, self._driver = self._driver, None
            driver.abandon()
        self._handle_rest()

    def _may_abandon(self) -> bool:
        """Whether the request in flight means nothing to anybody but the client that asked."""
        return self._ctx.api_key != ApiKey.PRODUCE

    def _handle_rest(self) -> None:
        """The client has gone: all that it sent, then the end; what has to wait comes back here when it is done."""
        before = -1
        while not self.closed and self._driver is None and self._received.pending != before:
            before = self._received.pending
            self._process()
        if self._driver is None:
            self.close()

    # Requests

    def _process(self) -> None:
        """Handle the requests that have arrived, as far as a turn goes."""
        if self.closed or self._driver is not None:
            return
        try:
            self._requests()
        except ProtocolViolation as error:
            self._violated(error)
            self._break_off()
        except OSError as error:
            self._cannot_send(error)
        except Exception:
            # A bug in one handler ends one connection, not the node.
            log.exception("a request of %s failed, closing its connection", self.peer_host)
            self._break_off()

    def _break_off(self) -> None:
        """The end, behind the answers to what was asked before."""
        try:
            if not self.closed and not self._sending:
                self._flush()
        except OSError as error:
            self._cannot_send(error)
        self.close()

    def _requests(self) -> None:
        next_frame, handle, ctx, answers = self._received.next_frame, self._handle, self._ctx, self._answers
        left = REQUESTS_PER_TURN
        while left and not self.draining:
            frame = next_frame()
            if frame is None:
                break
            left -= 1
            outgoing = handle(ctx, frame)
            if type(outgoing) is not list:
                outgoing = self._resolve(outgoing)
                if outgoing is None:
                    break
            if len(outgoing) == 1 and len(outgoing[0]) <= COALESCE_BYTES:
                answers.append(outgoing[0])
            elif outgoing and not self._send([*answers, *outgoing]):
                return
        if answers:
            if self._driver is None and not self._ended and not self.draining and self._turn.defers(self):
                self._sending = True
                return
            self._flush()
        if self.busy or self.closed:
            return
        if self.draining:
            self.close()
        elif not left:
            self._sending = True
            self._loop.call_soon(self._next_turn)
        elif not self._reading and not self._ended:
            self._reading = True
            self._loop.add_reader(self._transport.fd, self._readable)

    def _next_turn(self) -> None:
        self._sending = False
        self._process()

    def _resolve(self, outgoing: Any) -> list[Part] | None:
        """The answer in parts; empty when there is none, None when no further request may be handled now."""
        if outgoing is NO_RESPONSE:
            return []
        if outgoing is CLOSE_CONNECTION:
            self._flush()
            self.close()
            return None
        if type(outgoing) is CoroutineType:
            resolved = self._drive(outgoing)
            return None if resolved is None else self._resolve(resolved)
        assert isinstance(outgoing, list)
        return outgoing

    def _drive(self, coroutine: CoroutineType[Any, Any, Outgoing]) -> Outgoing | None:
        """Its answer if it did not have to wait, else None: then ``_answered`` goes on."""
        finished: list[tuple[Outgoing, BaseException | None]] = []
        waiting = False

        def then(outgoing: Outgoing, error: BaseException | None) -> None:
            if waiting:
                self._answered(outgoing, error)
            else:
                finished.append((outgoing, error))

        driver = Driver(coroutine, then)
        driver.start()
        if finished:
            outgoing, error = finished[0]
            if error is not None:
                raise error
            return outgoing
        waiting = True
        if self._ended and self._may_abandon():
            driver.abandon()
            return NO_RESPONSE
        self._driver = driver
        return None

    def _answered(self, outgoing: Outgoing, error: BaseException | None) -> None:
        """The request that was waited for has its answer."""
        self._driver = None
        if self.closed:
            return
        self.active = True
        if error is not None:
            if isinstance(error, ProtocolViolation):
                self._violated(error)
            else:
                log.error("a request of %s failed, closing its connection", self.peer_host, exc_info=error)
            self.close()
            return
        if self._ended:
            self._handle_rest()
            return
        try:
            parts = self._resolve(outgoing)
            if self._sending:
                # Answers to earlier requests are still on their way; who sends them goes on with this one.
                self._output.add(parts or ())
                return
            proceed = parts is not None and (not parts or self._send(parts))
        except OSError as failure:
            self._cannot_send(failure)
            return
        if proceed:
            self._process()

    # Answers

    def send_answers(self) -> None:
        """The end of the turn in which this connection was told to wait with its answers."""
        if self.closed:
            return
        self._sending = False
        try:
            self._flush()
        except OSError as error:
            self._cannot_send(error)
            return
        if not self._sending and (self._received.pending or self.draining or not self._reading):
            self._process()

    def _flush(self) -> None:
        """Send the small answers that were collected, in one call."""
        answers = self._answers
        if not answers or self._ended:
            answers.clear()
            return
        state = self._output.send_small(answers[0] if len(answers) == 1 else b"".join(answers))
        answers.clear()
        if state != SENT:
            self._sending = True
            self._wait_to_send(state)

    def _send(self, parts: list[Part]) -> bool:
        """Send ``parts``; False when some of them have to wait."""
        self._answers.clear()
        if self._ended:
            return True
        state = self._output.send(parts)
        if state == SENT:
            return True
        self._sending = True
        self._wait_to_send(state)
        return False

    def _wait_to_send(self, state: int) -> None:
        if state == PEER_SLOW:
            self._loop.add_writer(self._transport.fd, self._writable)
        elif state == TURN_OVER:
            self._loop.call_soon(self._send_on)
        else:
            assert state == COLD
            self._owner.runtime.run_blocking(self._output.cold_read()).add_done_callback(self._warmed)

    def _writable(self) -> None:
        self.active = True
        try:
            state = self._output.pump()
        except OSError as error:
            self._cannot_send(error)
            return
        if state == PEER_SLOW:
            return
        self._loop.remove_writer(self._transport.fd)
        self._sent(state)

    def _send_on(self) -> None:
        if self.closed:
            return
        self.active = True
        try:
            state = self._output.pump()
        except OSError as error:
            self._cannot_send(error)
            return
        self._sent(state)

    def _warmed(self, reading: asyncio.Future[bytes]) -> None:
        if self.closed or reading.cancelled():
            return
        try:
            self._output.warmed(reading.result())
        except OSError as error:
            self._cannot_send(error)
            return
        self._send_on()

    def _sent(self, state: int) -> None:
        if state != SENT:
            self._wait_to_send(state)
            return
        self._sending = False
        self._process()

    def _cannot_send(self, error: OSError) -> None:
        if isinstance(error, ConnectionError | TimeoutError):
            log.debug("%s: %s", self.peer_host, error)
        else:
            log.error("closing the connection of %s, its answer cannot be read: %s", self.peer_host, error)
        self.close()
