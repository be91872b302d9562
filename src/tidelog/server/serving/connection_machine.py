"""What a connection does next: requests in, one at a time, answers out, in order. No socket, no clock, no loop.

A ``Line`` carries out the decisions: ``server.serving.connection`` with a socket, tests without one.

- One request is in flight, as Kafka mutes the channel, except that a Produce whose records are in the log lets the next one in
  before it is acknowledged (``response_order``). Later requests wait in the kernel's buffer, which is the back-pressure on a
  client that sends faster than it reads. A request's bytes stay in the read buffer as long as they are needed.
- Small requests that arrived together are answered in a row, with one call to the socket, at most ``REQUESTS_PER_TURN`` before
  other connections get their turn. When several clients ask at once, their small answers leave together at the end of the
  loop's turn (``server.serving.send_batching``).
- When a client disconnects while its request waits, its long poll is abandoned.
- A client over its quota is throttled: answers leave, but its next requests are not read (KIP-219).
- However the connection ends, answers to earlier requests leave first.
- When a client closes, the requests it sent before are still handled: a producer with acks=0 may close right after its last
  batch. A waiting Produce is not abandoned like other waiting requests, because its records have arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from tidelog.broker.answer_types import CLOSE_CONNECTION, NO_RESPONSE, Farewell, Frame, Outgoing, Signal, Waiting, resume
from tidelog.broker.request import Session
from tidelog.model.ports import Buffer, FileSlice
from tidelog.protocol.framing import FrameReader
from tidelog.server.serving.connection_ports import Cancelable, Driving, Handle, Line
from tidelog.server.serving.connection_states import HANDLES, TRANSITIONS, Event, State
from tidelog.server.serving.response_order import InOrder, Place

REQUESTS_PER_TURN = 32
COALESCE_BYTES = 64 * 1024
"""Larger answers are not collected but sent immediately."""
_PRODUCE = b"\0\0"
_DRAINING, _CLOSED = State.DRAINING, State.CLOSED


class ConnectionMachine:
    __slots__ = (
        "_alarm",
        "_answers",
        "_driver",
        "_handling",
        "_in_order",
        "_leaving",
        "_line",
        "_places",
        "_produces",
        "_reading",
        "_sending",
        "active",
        "frames",
        "handle",
        "peer_gone",
        "session",
        "state",
    )

    def __init__(self, line: Line, session: Session, handle: Handle, frames: FrameReader, state: State = State.OPEN) -> None:
        self.state = state
        self._handling = state in HANDLES
        self.session = session
        self.handle = handle
        self.frames = frames
        """The bytes received; the line puts them in."""
        self.active = True
        """Whether anything moved since this was last set to False."""
        self.peer_gone = False
        """The client has disconnected: requests it sent before are handled, answers are dropped."""
        self._line = line
        self._driver: Driving | None = None
        self._produces = False  # whether the driven request is a Produce
        self._answers: list[Buffer] = []
        self._in_order = InOrder()
        self._places = self._in_order.places
        self._sending = False
        self._reading = True
        self._alarm: Cancelable | None = None
        self._leaving: Farewell | None = None

    # -- state ------------------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether a request is in flight or an answer is being sent."""
        return self._driver is not None or self._sending or bool(self._places) or self._leaving is not None

    @property
    def waiting(self) -> bool:
        """Whether the client waits for an answer; until it arrives the connection never counts as idle."""
        return (self._driver is not None or any(each.waiting for each in self._places)) and not self.peer_gone

    @property
    def takes_next(self) -> bool:
        """Whether the requests in flight allow another one now."""
        free = self._driver is None and not self._sending and self._handling
        return free and (not self._places or self._in_order.lets_in(self.frames.next_key()))

    @property
    def looks_for_end(self) -> bool:
        """Whether to check for a disconnected client; a throttled client's received requests are handled first."""
        return not (self.state is State.THROTTLED and self.frames.pending)

    # -- state changes ----------------------------------------------------------------------------------------------------

    def on(self, event: Event) -> bool:
        """Whether the event changed the state."""
        state = TRANSITIONS.get((self.state, event))
        if state is None:
            return False
        self.state = state
        self._handling = state in HANDLES
        return True

    def drain(self) -> None:
        """Handles no further request; closes once nothing is in flight."""
        self.on(Event.DRAIN)
        if not self.busy:
            self.close()

    def throttle(self, wait_ms: int) -> None:
        """Handles no further request for ``wait_ms``; a disconnected client's requests are all handled."""
        if not self.peer_gone and self.on(Event.THROTTLE):
            self._alarm = self._line.call_later(wait_ms / 1000, self._throttle_over)

    def throttle_anew(self) -> None:
        """Quotas have changed: a throttled client may send again, and is throttled again if the new quotas require it."""
        if self._alarm is not None and self._leaving is None:
            self._alarm.cancel()
            # Deferred: a request of this connection may have changed the quotas, and they may change again first.
            self._alarm = self._line.call_later(0, self._throttle_over)

    def _throttle_over(self) -> None:
        self._alarm = None
        self.on(Event.THROTTLE_OVER)
        if not self._sending:
            self._process()

    def close(self) -> None:
        """Closes the connection now and abandons a waiting request."""
        if not self.on(Event.CLOSE):
            return
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self.session.mute = None
        self.stop_reading()
        self._abandon()
        self._in_order.give_up()
        self._answers.clear()
        self._line.release()
        if self.session.on_closed is not None:
            self.session.on_closed()

    # -- called by the line -----------------------------------------------------------------------------------------------

    def received(self, count: int) -> None:
        """``count`` bytes were put into ``frames``."""
        self.active = True
        self.frames.received(count)
        if self._sending or self._driver is not None or self.state is _CLOSED:
            return
        try:  # as in _process, one call less for each request
            self._requests()
        except Exception as error:
            self._break_off(error)

    def peer_ended(self) -> None:
        """The client has closed: handles what it sent, without answering, and closes."""
        self.active = self.peer_gone = True
        self.stop_reading()
        if not self._produces:
            self._abandon()
        # A Produce among these already has its records in the log.
        self._in_order.give_up()
        self._handle_rest()

    def stop_reading(self) -> None:
        """Stops reading: bytes that arrive stay in the kernel."""
        if self._reading:
            self._reading = False
            self._line.read(False)

    def sent(self) -> None:
        """The pending bytes were sent."""
        self._sending = False
        self._send_ready()

    def send_answers(self) -> None:
        """Called at the end of the turn to which the line deferred the answers."""
        if self.state is _CLOSED:
            return
        self._sending = False
        self._flush()
        if not self._sending and (self.frames.pending or self.state is _DRAINING or not self._reading):
            self._process()

    # -- requests ---------------------------------------------------------------------------------------------------------

    def _abandon(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.abandon()

    def _handle_rest(self) -> None:
        """Handles what a disconnected client sent, then closes; a request that must wait resumes here through its callback."""
        before = -1
        while self.state is not _CLOSED and self._driver is None and self.frames.pending != before:
            before = self.frames.pending
            self._process()
        if self._driver is None:
            self.close()

    def _process(self) -> None:
        """Handles the requests that have arrived, up to the limit per turn."""
        if self.state is _CLOSED or self._driver is not None:
            return
        self.session.received_ns = 0  # the time they were kept back is none in a queue
        try:
            self._requests()
        except Exception as error:
            # A bug ends one connection, not the node.
            self._break_off(error)

    def _break_off(self, error: BaseException) -> None:
        """Closes after an error, once the answers to earlier requests have left."""
        self._line.failed(error)
        if self.state is not _CLOSED and not self._sending:
            self._flush()
        self._end()

    def _end(self) -> None:
        """Closes once the pending answers have left."""
        if self._places:
            self.on(Event.DRAIN)
        else:
            self.close()

    def _requests(self, left: int = REQUESTS_PER_TURN, frame: memoryview | None = None, outgoing: Any = None) -> None:
        """Handles at most ``left`` requests that have arrived. ``frame``: one that was handled before them, with ``outgoing``."""
        frames, handle, session, answers = self.frames, self.handle, self.session, self._answers
        next_frame, next_key, places, lets_in = frames.next_frame, frames.next_key, self._places, self._in_order.lets_in
        while frame is not None or (left and self._handling):
            if frame is None:
                if places and not lets_in(next_key()):
                    break
                frame = next_frame()
                if frame is None:
                    break
                left -= 1
                outgoing = handle(session, frame)
            if type(outgoing) is list:
                parts = outgoing
            else:
                self._produces = bytes(frame[:2]) == _PRODUCE
                resolved = self._resolve(outgoing)
                if resolved is None:
                    break
                parts = resolved
            if places:
                if parts:
                    self._in_order.queue(parts)
            elif len(parts) == 1 and not isinstance(only := parts[0], FileSlice) and len(only) <= COALESCE_BYTES:
                answers.append(only)
            elif parts and not self._send([*answers, *parts]):
                return
            if not frames.more:
                break
            frame = None
        self._settle(left)

    def _settle(self, left: int) -> None:
        """The requests of a turn are handled, except ``left``: sends the small answers, and decides what happens next."""
        answers, places = self._answers, self._places
        if answers:
            may_defer = self._driver is None and not (places or self.peer_gone) and self.state is not _DRAINING
            if may_defer and self._line.defers():
                self._sending = True
                return
            self._flush()
        if not self.takes_next:
            if self.state is _DRAINING and not self.busy:
                self.close()
        elif not left:
            self._sending = True
            self._line.pause()
        elif not self._reading and not self.peer_gone:
            self._reading = True
            self._line.read(True)

    def _resolve(self, outgoing: Outgoing | Farewell | Coroutine[Any, Any, Outgoing]) -> Frame | None:
        """The parts of the answer: empty when there is none, None when no further request may be handled now."""
        if isinstance(outgoing, Waiting):
            return self._park(outgoing)
        if isinstance(outgoing, Signal):
            if outgoing is CLOSE_CONNECTION:
                if not self._places:
                    self._flush()
                self._end()
                return None
            return []
        if isinstance(outgoing, list):
            return outgoing
        if isinstance(outgoing, Farewell):
            self._take_leave(outgoing)
            return None
        driven = self._drive(outgoing)
        return None if driven is None else self._resolve(driven)

    def _take_leave(self, farewell: Farewell) -> None:
        """Stops handling requests now, sends the last answer when its time has come, and closes."""
        if self.peer_gone:
            self.close()
            return
        if not self._places:
            self._flush()
        self._leaving = farewell
        self.on(Event.DRAIN)
        self.stop_reading()
        self._alarm = self._line.call_later(farewell.delay_ms / 1000, self._leave)

    def _leave(self) -> None:
        farewell, self._leaving, self._alarm = self._leaving, None, None
        assert farewell is not None
        if self._places or self._sending:
            self._in_order.queue(farewell.parts)
        elif self._send(farewell.parts):
            self.close()

    def _park(self, waiting: Waiting) -> Frame | None:
        """Parks the request; ``_go_on`` answers it when the wait is over."""
        if self.peer_gone:
            waiting.parked.finish()
            return []
        place = self._in_order.wait_for(waiting)
        self._line.when_done(waiting.parked, lambda: self._go_on(place))
        return [] if waiting.lets_next_in else None

    def _go_on(self, place: Place) -> Callable[[], None] | None:
        """Resumes a parked request. Returns the callback that sends the answers that are ready by then."""
        waiting = place.waiting
        if waiting is None:
            return None
        self.active = True
        try:
            outgoing = resume(waiting)
            if isinstance(outgoing, list):
                place.waiting, place.parts = None, outgoing
                return self._send_ready
            if isinstance(outgoing, Waiting):
                place.waiting = outgoing
                self._line.when_done(outgoing.parked, lambda: self._go_on(place))
                return None
            assert not isinstance(outgoing, Signal)
            self._in_order.drop(place)
            place.waiting = None
            self._produces = waiting.lets_next_in
            driven = self._drive(outgoing)
            if driven is not None:
                self._answered(driven, None)
            return None
        except Exception as error:
            self._line.failed(error)
            self.close()
            return None

    def _drive(self, coroutine: Coroutine[Any, Any, Outgoing]) -> Outgoing | None:
        """Starts the coroutine. Its answer if it did not have to wait, else None; ``_answered`` then gets the answer."""
        finished: list[tuple[Outgoing, BaseException | None]] = []
        waiting = False

        def then(outgoing: Outgoing, error: BaseException | None) -> None:
            if waiting:
                self._answered(outgoing, error)
            else:
                finished.append((outgoing, error))

        driver = self._line.drive(coroutine, then)
        driver.start()
        if finished:
            outgoing, error = finished[0]
            if error is not None:
                raise error
            return outgoing
        waiting = True
        if self.peer_gone and not self._produces:
            driver.abandon()
            return NO_RESPONSE
        self._driver = driver
        return None

    def _answered(self, outgoing: Outgoing, error: BaseException | None) -> None:
        """The driven request has finished."""
        self._driver = None
        if self.state is _CLOSED:
            return
        self.active = True
        if error is not None:
            self._break_off(error)
            return
        if self.peer_gone:
            if isinstance(outgoing, Waiting):
                outgoing.parked.finish()
            self._handle_rest()
            return
        parts = self._resolve(outgoing)
        if parts and (self._places or self._sending):
            self._in_order.queue(parts)
            parts = []
        proceed = parts is not None and (not parts or self._send(parts))
        if proceed and not self._sending:
            self._process()

    # -- answers ----------------------------------------------------------------------------------------------------------

    def _send_ready(self) -> None:
        """Sends the answers that are ready, then handles the next requests."""
        if self.state is _CLOSED or self._sending:
            return
        parts = self._in_order.take_ready()
        if parts and not self._send(parts):
            return
        if self.state is _DRAINING and not self.busy:
            self.close()
        elif self.frames.pending or not self._reading:
            self._process()

    def _flush(self) -> None:
        """Sends the collected small answers in one call."""
        answers = self._answers
        if not answers or self.peer_gone:
            answers.clear()
            return
        data = answers[0] if len(answers) == 1 else b"".join(answers)
        answers.clear()
        if not self._line.send_small(data):
            self._sending = True

    def _send(self, parts: Frame) -> bool:
        """Sends ``parts``; False when some of them have to wait."""
        self._answers.clear()
        if self.peer_gone:
            return True
        if len(parts) == 1 and not isinstance(only := parts[0], FileSlice):
            if self._line.send_small(only):
                return True
        elif self._line.send(parts):
            return True
        self._sending = True
        return False
