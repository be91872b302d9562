"""The machine of a connection without a socket, a clock or a loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tidelog.broker.answer_types import CLOSE_CONNECTION, NO_RESPONSE, Farewell, Outgoing, Waiting
from tidelog.broker.request import Session
from tidelog.model.errors import KafkaError, ProtocolViolation
from tidelog.model.ports import Buffer
from tidelog.protocol.framing import FrameReader
from tidelog.replication.purgatory import Parked, ParkedAppend
from tidelog.server.serving.connection_machine import REQUESTS_PER_TURN, ConnectionMachine
from tidelog.server.serving.connection_states import State

FETCH, PRODUCE = b"\0\1", b"\0\0"


class Steps:
    """A coroutine stepped by hand: ``go`` lets it go on where it waits."""

    def __init__(self, coroutine: Coroutine[Any, Any, Outgoing], then: Callable[[Any, BaseException | None], None]) -> None:
        self._coroutine = coroutine
        self._then = then
        self.abandoned = False

    def start(self) -> None:
        try:
            self._coroutine.send(None)
        except StopIteration as stop:
            self._then(stop.value, None)
        except Exception as error:
            self._then(None, error)

    go = start

    def abandon(self) -> None:
        self.abandoned = True
        self._coroutine.close()


class Pause:
    def __await__(self) -> Any:
        yield


class Timer:
    def __init__(self, delay_s: float, ring: Callable[[], None]) -> None:
        self.delay_s, self.ring, self.cancelled = delay_s, ring, False

    def cancel(self) -> None:
        self.cancelled = True


class FakeLine:
    """Notes what it was asked to do."""

    def __init__(self) -> None:
        self.out: list[bytes] = []
        self.slow = False
        self.deferring = False
        self.paused = 0
        self.steps: list[Steps] = []
        self.parked: list[tuple[Parked, Callable[[], Callable[[], None] | None]]] = []
        self.timers: list[Timer] = []
        self.reading: list[bool] = []
        self.failures: list[BaseException] = []
        self.released = 0

    def send(self, parts: Any) -> bool:
        self.out.append(b"".join(parts))
        return not self.slow

    def send_small(self, data: Buffer) -> bool:
        self.out.append(bytes(data))
        return not self.slow

    def defers(self) -> bool:
        return self.deferring

    def pause(self) -> None:
        self.paused += 1

    def drive(self, coroutine: Coroutine[Any, Any, Outgoing], then: Any) -> Steps:
        self.steps.append(Steps(coroutine, then))
        return self.steps[-1]

    def when_done(self, parked: Parked, then: Callable[[], Callable[[], None] | None]) -> None:
        self.parked.append((parked, then))

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        self.timers.append(Timer(delay_s, callback))
        return self.timers[-1]

    def read(self, wanted: bool) -> None:
        self.reading.append(wanted)

    def failed(self, error: BaseException) -> None:
        self.failures.append(error)

    def release(self) -> None:
        self.released += 1

    def finish(self, number: int = 0) -> None:
        """What the request ``number`` waited for is there."""
        last = self.parked[number][1]()
        if last is not None:
            last()


class Talk:
    """A machine whose requests are answered by what the test has prepared, or by an echo."""

    def __init__(self, state: State = State.OPEN) -> None:
        self.line = FakeLine()
        self.handled: list[bytes] = []
        self.answers: deque[Any] = deque()
        self.session = Session("L", "10.0.0.1")
        self.machine = ConnectionMachine(self.line, self.session, self._handle, FrameReader(1000), state)

    def _handle(self, session: Session, frame: memoryview) -> Any:
        body = bytes(frame)
        self.handled.append(body[2:])
        answer = self.answers.popleft() if self.answers else [b"re:" + body[2:]]
        return answer() if callable(answer) else answer

    def come(self, *bodies: bytes, key: bytes = FETCH) -> None:
        data = b"".join((2 + len(body)).to_bytes(4, "big") + key + body for body in bodies)
        self.machine.frames.writable()[: len(data)] = data
        self.machine.received(len(data))


class Acks(Waiting):
    """A Produce whose records are in the log."""

    def __init__(self, answer: bytes, *, lets_next_in: bool = True) -> None:
        super().__init__(ParkedAppend(1 << 50, -1))
        self._answer = answer
        self.lets_next_in = lets_next_in

    def go_on(self) -> Any:
        return [self._answer]

    def refuse(self, error: KafkaError) -> Any:
        return [error.code.name.encode()]


async def after_a_pause(answer: Outgoing) -> Outgoing:
    await Pause()
    return answer


@pytest.mark.parametrize("state", list(State))
def test_only_an_open_or_authenticating_connection_handles_requests(state: State) -> None:
    talk = Talk(state)
    talk.come(b"a")
    assert talk.handled == ([b"a"] if state in (State.OPEN, State.AUTHENTICATING) else [])


# -- requests and answers ----------------------------------------------------------------------------------------------------


def test_requests_that_came_together_are_answered_with_one_send() -> None:
    talk = Talk()
    talk.come(b"a", b"b")
    assert talk.line.out == [b"re:are:b"]


def test_after_so_many_requests_other_connections_have_their_turn() -> None:
    talk = Talk()
    talk.come(*(b"%d" % number for number in range(REQUESTS_PER_TURN + 1)))
    assert (len(talk.handled), talk.line.paused) == (REQUESTS_PER_TURN, 1)
    talk.machine.sent()
    assert len(talk.handled) == REQUESTS_PER_TURN + 1


def test_answers_that_the_line_defers_leave_at_the_end_of_the_turn() -> None:
    talk = Talk()
    talk.line.deferring = True
    talk.come(b"a")
    assert talk.line.out == [] and talk.machine.busy
    talk.machine.send_answers()
    assert talk.line.out == [b"re:a"] and not talk.machine.busy


def test_a_request_waits_until_the_answer_before_it_has_left() -> None:
    talk = Talk()
    talk.line.slow = True
    talk.come(b"a")
    talk.come(b"b")
    assert talk.handled == [b"a"]
    talk.line.slow = False
    talk.machine.sent()
    assert talk.handled == [b"a", b"b"]


def test_a_request_that_waits_holds_up_those_behind_it() -> None:
    talk = Talk()
    talk.answers.append(lambda: after_a_pause([b"late"]))
    talk.come(b"a", b"b")
    assert talk.handled == [b"a"] and talk.machine.waiting
    talk.line.steps[0].go()
    assert talk.line.out == [b"late", b"re:b"]


def test_a_produce_whose_records_are_in_the_log_lets_the_next_in_and_answers_keep_their_order() -> None:
    talk = Talk()
    talk.answers.extend((Acks(b"1"), Acks(b"2")))
    talk.come(b"a", b"b", key=PRODUCE)
    assert talk.handled == [b"a", b"b"]
    talk.line.finish(1)
    assert talk.line.out == []
    talk.line.finish(0)
    assert talk.line.out == [b"12"]


def test_a_request_without_an_answer_lets_the_next_be_handled() -> None:
    talk = Talk()
    talk.answers.append(NO_RESPONSE)
    talk.come(b"a", b"b")
    assert talk.line.out == [b"re:b"]


# -- ends --------------------------------------------------------------------------------------------------------------------


def test_what_cannot_be_answered_ends_the_connection_behind_the_answers_before_it() -> None:
    talk = Talk()
    talk.answers.extend(([b"good"], CLOSE_CONNECTION))
    talk.come(b"a", b"b", b"c")
    assert (talk.line.out, talk.line.released) == ([b"good"], 1)
    assert talk.handled == [b"a", b"b"] and talk.machine.state is State.CLOSED


def test_a_violation_waits_for_the_acknowledgement_of_the_produce_before_it() -> None:
    def breaks() -> None:
        raise ProtocolViolation("no")

    talk = Talk()
    talk.answers.extend((Acks(b"1"), breaks))
    talk.come(b"a", b"b", key=PRODUCE)
    assert (talk.machine.state, talk.line.released) == (State.DRAINING, 0)
    assert isinstance(talk.line.failures[0], ProtocolViolation)
    talk.line.finish()
    assert (talk.line.out, talk.machine.state) == ([b"1"], State.CLOSED)


def test_draining_ends_when_nothing_is_in_flight() -> None:
    talk = Talk()
    talk.answers.append(lambda: after_a_pause([b"late"]))
    talk.come(b"a", b"b")
    talk.machine.drain()
    assert talk.machine.state is State.DRAINING
    talk.line.steps[0].go()
    assert (talk.line.out, talk.handled, talk.machine.state) == ([b"late"], [b"a"], State.CLOSED)


def test_an_idle_connection_drains_at_once() -> None:
    talk = Talk()
    talk.machine.drain()
    assert (talk.machine.state, talk.line.released) == (State.CLOSED, 1)


def test_a_client_that_goes_abandons_its_long_poll_but_what_it_sent_is_handled_unanswered() -> None:
    talk = Talk()
    talk.answers.append(lambda: after_a_pause([b"late"]))
    talk.come(b"a", b"b")
    talk.machine.peer_ended()
    assert talk.line.steps[0].abandoned
    assert (talk.handled, talk.line.out, talk.machine.state) == ([b"a", b"b"], [], State.CLOSED)


def test_a_produce_that_is_being_checked_when_its_client_goes_is_finished() -> None:
    talk = Talk()
    talk.answers.append(lambda: after_a_pause(NO_RESPONSE))
    talk.come(b"a", b"b", key=PRODUCE)
    talk.machine.peer_ended()
    assert not talk.line.steps[0].abandoned and talk.machine.state is State.OPEN
    talk.line.steps[0].go()
    assert (talk.handled, talk.machine.state) == ([b"a", b"b"], State.CLOSED)


def test_the_session_hears_of_the_end_once() -> None:
    talk = Talk()
    ends: list[int] = []
    talk.session.on_closed = lambda: ends.append(1)
    talk.machine.close()
    talk.machine.close()
    assert (ends, talk.line.released, talk.session.mute) == ([1], 1, None)


# -- throttling --------------------------------------------------------------------------------------------------------------


def test_a_throttled_client_gets_its_answers_and_its_next_request_waits() -> None:
    talk = Talk()
    talk.answers.append(lambda: (talk.machine.throttle(1500), [b"a"])[1])
    talk.come(b"a", b"b")
    assert (talk.handled, talk.line.out, talk.machine.state) == ([b"a"], [b"a"], State.THROTTLED)
    (timer,) = talk.line.timers
    assert timer.delay_s == 1.5
    timer.ring()
    assert (talk.handled, talk.machine.state) == ([b"a", b"b"], State.OPEN)


def test_of_two_waits_the_first_counts_and_new_quotas_end_it() -> None:
    talk = Talk()
    talk.machine.throttle(1000)
    talk.machine.throttle(9000)
    talk.machine.throttle_anew()
    first, anew = talk.line.timers
    assert first.cancelled and anew.delay_s == 0
    anew.ring()
    assert talk.machine.state is State.OPEN


def test_the_end_of_a_throttled_client_is_looked_for_only_when_nothing_of_it_is_left() -> None:
    talk = Talk()
    talk.machine.throttle(1000)
    assert talk.machine.looks_for_end
    talk.come(b"a")
    assert not talk.machine.looks_for_end


def test_draining_ends_a_throttled_connection_and_its_timer() -> None:
    talk = Talk()
    talk.machine.throttle(1000)
    talk.machine.drain()
    assert talk.machine.state is State.CLOSED and talk.line.timers[0].cancelled


# -- the last answer ---------------------------------------------------------------------------------------------------------


def test_a_farewell_is_sent_after_its_delay_and_then_the_connection_closes() -> None:
    talk = Talk(State.AUTHENTICATING)
    talk.answers.append(Farewell([b"no"], 100))
    talk.come(b"a", b"b")
    assert (talk.handled, talk.line.out, talk.line.released) == ([b"a"], [], 0)
    assert talk.machine.busy
    assert talk.line.reading[-1] is False
    (timer,) = talk.line.timers
    assert timer.delay_s == 0.1
    timer.ring()
    assert (talk.handled, talk.line.out, talk.line.released) == ([b"a"], [b"no"], 1)
    assert talk.machine.state is State.CLOSED


def test_new_quotas_do_not_hold_up_a_farewell() -> None:
    talk = Talk(State.AUTHENTICATING)
    talk.answers.append(Farewell([b"no"], 100))
    talk.come(b"a")
    talk.machine.throttle_anew()
    (timer,) = talk.line.timers
    assert not timer.cancelled
    timer.ring()
    assert (talk.line.out, talk.line.released) == ([b"no"], 1)


def test_a_farewell_that_has_to_wait_for_the_socket_still_leaves_before_the_end() -> None:
    talk = Talk()
    talk.line.slow = True
    talk.answers.append(Farewell([b"no"], 100))
    talk.come(b"a")
    talk.line.timers[0].ring()
    assert (talk.line.out, talk.line.released) == ([b"no"], 0)
    talk.machine.sent()
    assert talk.line.released == 1


def test_earlier_answers_leave_before_a_farewell() -> None:
    talk = Talk()
    talk.answers += [[b"first"], Farewell([b"no"], 100)]
    talk.come(b"a", b"b")
    assert talk.line.out == [b"first"]
    waiting = Talk()
    waiting.answers += [Acks(b"ack"), Farewell([b"no"], 100)]
    waiting.come(b"a", key=PRODUCE)
    waiting.come(b"b", key=PRODUCE)
    waiting.line.timers[0].ring()
    assert waiting.line.released == 0
    waiting.line.finish()
    assert b"".join(waiting.line.out) == b"ackno"
    assert waiting.line.released == 1


def test_a_client_that_leaves_before_its_farewell_gets_none() -> None:
    talk = Talk()
    talk.answers.append(Farewell([b"no"], 100))
    talk.come(b"a")
    talk.machine.peer_ended()
    assert talk.line.released == 1
    assert talk.line.timers[0].cancelled


def test_a_node_that_drains_waits_for_a_farewell() -> None:
    talk = Talk()
    talk.answers.append(Farewell([b"no"], 100))
    talk.come(b"a")
    talk.machine.drain()
    assert talk.line.released == 0
    talk.line.timers[0].ring()
    assert (talk.line.out, talk.line.released) == ([b"no"], 1)
