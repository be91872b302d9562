"""One client connection: requests in, one at a time, answers out, in order.

What is decided here:

- One request is in flight, as Kafka mutes the channel; but a Produce whose records are in the log lets the next one in before it
  is acknowledged (``in_order``). What arrives meanwhile waits in the kernel's buffer, and that is the back-pressure on a client
  that asks faster than it reads. The request's bytes stay where they are for as long as they are needed.
- Several small requests that arrived together are answered in a row, with one call to the socket, but not more than
  ``REQUESTS_PER_TURN`` before other connections have their turn. Where several clients ask at once, their small answers leave
  together at the end of the loop's turn (``server.turn``).
- A client that goes while its request waits is noticed, and its long poll abandoned.
- Who has used more than his quota is muted for a while: answers leave, and what he asks meanwhile is not read (KIP-219).
- Whatever ends the connection, answers to earlier requests leave first.
- When a client closes, what it sent before is still handled: a producer with acks=0 may have closed right after its last batch.
  So a Produce is not abandoned like other requests that wait: its records have arrived.

Whoever breaks the protocol loses the connection and gets a line in the debug log. A failing disk under an answer ends that
connection alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from tidelog.broker.answers import CLOSE_CONNECTION, NO_RESPONSE, Outgoing, Waiting, resume
from tidelog.broker.request import Session
from tidelog.model.errors import ProtocolViolation
from tidelog.model.ports import Buffer
from tidelog.protocol.framing import MAX_PLAIN_REQUEST_BYTES, FrameReader
from tidelog.server.in_order import InOrder, Place
from tidelog.server.muting import Muting
from tidelog.server.runtime import Driver
from tidelog.server.sending import COLD, PEER_SLOW, SENT, TURN_OVER, Output, Part
from tidelog.server.transport import PlainTransport

if TYPE_CHECKING:
    from tidelog.server.owner import Owner

log = logging.getLogger(__name__)

REQUESTS_PER_TURN = 32
COALESCE_BYTES = 64 * 1024
"""Larger answers are not collected but sent at once."""


class Connection(Muting):
    """A client's socket and what it is at."""

    __slots__ = (
        "_answers",
        "_driver",
        "_handle",
        "_in_order",
        "_output",
        "_owner",
        "_places",
        "_produces",
        "_reading",
        "_received",
        "_session",
        "_transport",
        "active",
        "idle_since_ms",
        "peer_host",
    )

    def __init__(self, owner: Owner, transport: PlainTransport, session: Session, max_request_bytes: int) -> None:
        self.peer_host = session.peer_host
        super().__init__(owner.runtime)
        self.active = True
        """Whether anything moved since the listener last looked."""
        self.idle_since_ms = owner.runtime.real_ms()
        self._owner = owner
        self._handle = owner.handle
        self._transport = transport
        self._session = session
        self._received = FrameReader(max_request_bytes, max_plain_bytes=MAX_PLAIN_REQUEST_BYTES)
        self._output = Output(transport)
        self._driver: Driver | None = None
        self._produces = False  # whether the driver's request is one
        self._answers: list[Buffer] = []
        self._in_order = InOrder()
        self._places = self._in_order.places
        self._reading = True
        self._loop.add_reader(transport.fd, self._readable)

    def _violated(self, error: ProtocolViolation) -> None:
        self._owner.violations.tell(self.peer_host, error.client_id, error, self._owner.runtime.now_ms())

    @property
    def busy(self) -> bool:
        """Whether a request is in flight or an answer on its way."""
        return self._driver is not None or self._sending or bool(self._places)

    @property
    def waiting(self) -> bool:
        """Whether the client waits for an answer: it may be silent as long as it likes."""
        return (self._driver is not None or any(each.waiting for each in self._places)) and not self._ended

    def drain(self) -> None:
        """Handle no further request; close once nothing is in flight."""
        self.draining = self.halted = True
        if not self.busy:
            self.close()

    def meter(self) -> None:
        """Quotas have changed: what there are now is asked from the next request on."""
        self._handle = self._owner.handle
        self._meter(self._session, self._owner.metered)

    def shrink(self) -> None:
        """Give back memory that an idle connection does not need."""
        if not self.busy:
            self._received.shrink()

    def close(self) -> None:
        """End the connection now; a waiting request is abandoned."""
        if self.closed:
            return
        self.closed = True
        self._forget_mute(self._session)
        self._stop_reading()
        if self._sending:
            self._loop.remove_writer(self._transport.fd)
        self._abandon()
        self._in_order.give_up()
        self._output.clear()
        self._answers.clear()
        self._transport.close()
        self._owner.turn.forget(self)
        if self._session.on_closed is not None:
            self._session.on_closed()
        self._owner.closed(self)

    # Reading

    @property
    def _takes_next(self) -> bool:
        """Whether a request may be handled now, as far as those before it are concerned."""
        if self._driver is not None or self._sending or self.halted:
            return False
        return not self._places or self._in_order.lets_in(self._received.next_key())

    def _readable(self) -> None:
        receives = self._takes_next
        try:
            if receives:
                count = self._transport.receive(self._received.writable())
            else:
                # The next request waits in the kernel until it may be handled; but a client that has gone is noticed, unless
                # it was muted: what it had sent before is to be handled first.
                has_more = self.muted is not None and self._received.pending
                count = 0 if not has_more and self._transport.peer_has_ended() else -1
        except OSError as error:
            log.debug("%s: %s", self.peer_host, error)
            count = 0
        if count < 0:
            if not receives:
                self._stop_reading()
            return
        self.active = True
        if not count:
            self._peer_ended()
            return
        self._received.received(count)
        self._process()

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._transport.fd)

    def _peer_ended(self) -> None:
        """The client will neither send nor read: handle what it sent, without answering, and close."""
        self._ended = True
        self._stop_reading()
        if not self._produces:
            self._abandon()
        # A Produce among them has its records in the log.
        self._in_order.give_up()
        self._handle_rest()

    def _abandon(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.abandon()

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
        if self._places:
            self.draining = self.halted = True
        else:
            self.close()

    def _requests(self) -> None:
        next_frame, handle, session, answers = self._received.next_frame, self._handle, self._session, self._answers
        places, lets_in, next_key = self._places, self._in_order.lets_in, self._received.next_key
        left = REQUESTS_PER_TURN
        while left and not self.halted:
            if places and not lets_in(next_key()):
                break
            frame = next_frame()
            if frame is None:
                break
            left -= 1
            outgoing = handle(session, frame)
            if type(outgoing) is not list:
                self._produces = bytes(frame[:2]) == b"\0\0"
                outgoing = self._resolve(outgoing)
                if outgoing is None:
                    break
            if places:
                if outgoing:
                    self._in_order.queue(outgoing)
            elif len(outgoing) == 1 and len(outgoing[0]) <= COALESCE_BYTES:
                answers.append(outgoing[0])
            elif outgoing and not self._send([*answers, *outgoing]):
                return
        if answers:
            if self._driver is None and not (places or self._ended or self.draining) and self._owner.turn.defers(self):
                self._sending = True
                return
            self._flush()
        if self.closed or not self._takes_next:
            if self.draining and not self.busy:
                self.close()
        elif not left:
            self._sending = True
            self._loop.call_soon(self._sent, SENT)
        elif not self._reading and not self._ended:
            self._reading = True
            self._loop.add_reader(self._transport.fd, self._readable)

    def _resolve(self, outgoing: Any) -> list[Part] | None:
        """The answer in parts; empty when there is none, None when no further request may be handled now."""
        if outgoing is NO_RESPONSE:
            return []
        if outgoing is CLOSE_CONNECTION:
            if self._places:
                self.draining = self.halted = True
            else:
                self._flush()
                self.close()
            return None
        if isinstance(outgoing, Waiting):
            return self._park(outgoing)
        if type(outgoing) is CoroutineType:
            resolved = self._drive(outgoing)
            return None if resolved is None else self._resolve(resolved)
        assert isinstance(outgoing, list)
        return outgoing

    def _park(self, waiting: Waiting) -> list[Part] | None:
        """It is answered when what it waits for is there: then ``_go_on`` goes on."""
        if self._ended:
            waiting.parked.finish()
            return []
        place = self._in_order.wait_for(waiting)
        self._owner.runtime.when_done(waiting.parked, lambda: self._go_on(place))
        return [] if waiting.lets_next_in else None

    def _go_on(self, place: Place) -> Callable[[], None] | None:
        """What this one waited for is there. Returned is what sends the answers that may leave by then."""
        waiting = place.waiting
        if waiting is None:
            return None
        self.active = True
        try:
            outgoing = resume(waiting)
            if isinstance(outgoing, Waiting):
                place.waiting = outgoing
                self._owner.runtime.when_done(outgoing.parked, lambda: self._go_on(place))
                return None
            if isinstance(outgoing, Coroutine):
                self._in_order.drop(place)
                place.waiting = None
                self._produces = waiting.lets_next_in
                driven = self._drive(outgoing)
                if driven is not None:
                    self._answered(driven, None)
                return None
        except Exception:
            log.exception("a request of %s failed, closing its connection", self.peer_host)
            self.close()
            return None
        assert isinstance(outgoing, list)
        place.waiting, place.parts = None, outgoing
        return self._send_ready

    def _send_ready(self) -> None:
        """Send what is ready, and go on."""
        if self.closed or self._sending:
            return
        parts = self._in_order.take_ready()
        if parts:
            try:
                if not self._send(parts):
                    return
            except OSError as error:
                self._cannot_send(error)
                return
        if self.draining and not self.busy:
            self.close()
        else:
            self._process()

    def _drive(self, coroutine: Coroutine[Any, Any, Outgoing]) -> Outgoing | None:
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
        if self._ended and not self._produces:
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
            self._break_off()
            return
        if self._ended:
            if isinstance(outgoing, Waiting):
                outgoing.parked.finish()
            self._handle_rest()
            return
        try:
            parts = self._resolve(outgoing)
            if parts and (self._places or self._sending):
                self._in_order.queue(parts)
                parts = []
            proceed = parts is not None and (not parts or self._send(parts))
        except OSError as failure:
            self._cannot_send(failure)
            return
        if proceed and not self._sending:
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

    def _pump(self) -> int | None:
        """How far sending has come; None when the connection has ended over it."""
        self.active = True
        try:
            return self._output.pump()
        except OSError as error:
            self._cannot_send(error)
            return None

    def _writable(self) -> None:
        state = self._pump()
        if state is not None and state != PEER_SLOW:
            self._loop.remove_writer(self._transport.fd)
            self._sent(state)

    def _send_on(self) -> None:
        state = None if self.closed else self._pump()
        if state is not None:
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
        self._send_ready()

    def _cannot_send(self, error: OSError) -> None:
        if isinstance(error, ConnectionError | TimeoutError):
            log.debug("%s: %s", self.peer_host, error)
        else:
            log.error("closing the connection of %s, its answer cannot be read: %s", self.peer_host, error)
        self.close()
