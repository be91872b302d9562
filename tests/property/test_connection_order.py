"""A connection's machine on a socket that is slow at random, with throttles, waits and quotas that change: no client is left
without its answers and without an end.

``python -m tests.property.test_connection_order SEED COUNT`` runs more.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.unit.server.serving.test_connection_machine import FETCH, PRODUCE, Acks, Steps, Timer, after_a_pause
from tidelog.broker.answer_types import CLOSE_CONNECTION, NO_RESPONSE, Farewell, Outgoing
from tidelog.broker.request import Session
from tidelog.model.ports import Buffer
from tidelog.protocol.framing import FrameReader
from tidelog.replication.purgatory import Parked
from tidelog.server.serving.connection_machine import ConnectionMachine
from tidelog.server.serving.connection_states import Event, State

MOST_REQUESTS = 60
MOST_EVENTS = 400
SEEDS = 20_000 if os.environ.get("TIDELOG_LONG") else 400


class Client:
    """Sends requests in pieces, and is the line of the machine that answers them. Every event happens at a random time."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.requests = self.rng.randint(1, MOST_REQUESTS)
        self.unsent = b"".join(self._frame(number) for number in range(self.requests))
        self.arrived = b""
        """In the kernel."""
        self.reads = True
        self.out = b""
        self.sending = self.deferred = False
        self.timers: list[Timer] = []
        self.steps: list[Steps] = []
        self.parked: list[Callable[[], Callable[[], None] | None]] = []
        self.failures: list[BaseException] = []
        self.expected = b""
        self.handled = 0
        self.ended = False
        state = self.rng.choice([State.OPEN, State.AUTHENTICATING])
        self.machine = ConnectionMachine(self, Session("L", "10.0.0.1"), self._handle, FrameReader(1000), state)

    def _frame(self, number: int) -> bytes:
        body = self.rng.choice([FETCH, PRODUCE, PRODUCE]) + b"%d" % number + b"." * self.rng.choice([0, 3, 500])
        return len(body).to_bytes(4, "big") + body

    def _handle(self, session: Session, frame: memoryview) -> Any:
        assert not self.ended, "a request was handled after the last answer"
        answer = b"re:%d;" % self.handled
        self.handled += 1
        self.machine.on(Event.AUTHENTICATED)
        rng = self.rng
        if rng.random() < 0.1:
            self.machine.throttle(100)
        kind = rng.random()
        if kind < 0.01:
            self.ended = True
            return CLOSE_CONNECTION
        if kind < 0.1:
            return NO_RESPONSE
        self.expected += answer
        if kind < 0.12:
            self.ended = True
            return Farewell([answer], 100)
        if kind < 0.4:
            return Acks(answer, lets_next_in=bytes(frame[:2]) == PRODUCE)
        if kind < 0.6:
            return after_a_pause(Acks(answer) if bytes(frame[:2]) == PRODUCE and rng.random() < 0.3 else [answer])
        return [answer]

    # The line of the machine

    def send(self, parts: Any) -> bool:
        assert not self.sending, "sent before the answer before it has left"
        self.out += b"".join(parts)
        self.sending = self.rng.random() < 0.3
        return not self.sending

    def send_small(self, data: Buffer) -> bool:
        return self.send([data])

    def defers(self) -> bool:
        self.deferred = self.rng.random() < 0.3
        return self.deferred

    def pause(self) -> None:
        self.sending = True

    def drive(self, coroutine: Coroutine[Any, Any, Outgoing], then: Any) -> Steps:
        self.steps.append(Steps(coroutine, then))
        return self.steps[-1]

    def when_done(self, parked: Parked, then: Callable[[], Callable[[], None] | None]) -> None:
        self.parked.append(then)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        self.timers.append(Timer(delay_s, callback))
        return self.timers[-1]

    def read(self, wanted: bool) -> None:
        self.reads = wanted

    def failed(self, error: BaseException) -> None:
        self.failures.append(error)

    def release(self) -> None:
        self.sending = self.deferred = False

    # What can happen

    def events(self) -> list[Callable[[], None]]:
        """What may happen next; in the end each of these has to."""
        self.timers = [each for each in self.timers if not each.cancelled]
        self.steps = [each for each in self.steps if not each.abandoned]
        found: list[Callable[[], None]] = []
        if self.unsent:
            found.append(self._more_arrives)
        if self.arrived and self.reads and self.machine.state is not State.CLOSED:
            found.append(self._readable)
        if self.sending:
            found.append(self._sent)
        if self.deferred:
            found.append(self._turn_ends)
        if self.timers:
            found.append(lambda: self.timers.pop(self.rng.randrange(len(self.timers))).ring())
        if self.steps:
            found.append(lambda: self.steps.pop(self.rng.randrange(len(self.steps))).go())
        if self.parked:
            found.append(self._done)
        return found

    def _more_arrives(self) -> None:
        count = self.rng.choice([1, 5, 40, 2000])
        self.arrived, self.unsent = self.arrived + self.unsent[:count], self.unsent[count:]

    def _readable(self) -> None:
        """As in ``connection``."""
        if not self.machine.takes_next:
            self.machine.stop_reading()
            return
        room = self.machine.frames.writable()
        count = min(len(room), len(self.arrived), self.rng.choice([1, 100, 4000]))
        room[:count], self.arrived = self.arrived[:count], self.arrived[count:]
        self.machine.received(count)

    def _sent(self) -> None:
        self.sending = False
        self.machine.sent()

    def _turn_ends(self) -> None:
        self.deferred = False
        self.machine.send_answers()

    def _done(self) -> None:
        last = self.parked.pop(self.rng.randrange(len(self.parked)))()
        if last is not None:
            last()

    def run(self) -> None:
        for _ in range(self.rng.randint(0, MOST_EVENTS)):
            if self.rng.random() < 0.1:
                self.machine.throttle_anew()  # quotas have changed
            if found := self.events():
                self.rng.choice(found)()
        while found := self.events():
            self.rng.choice(found)()


def check(seed: int) -> None:
    """Everything that could happen has happened: the client has its answers, in order, and an end if there is one."""
    client = Client(seed)
    client.run()
    assert client.failures == []
    assert client.out == client.expected
    assert (client.machine.state is State.CLOSED) == client.ended
    assert client.ended or client.handled == client.requests


@pytest.mark.parametrize("part", range(4))
def test_no_client_is_left_without_its_answers_and_without_an_end(part: int) -> None:
    for seed in range(part, SEEDS, 4):
        try:
            check(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:])
    for number in range(first, first + count):
        try:
            check(number)
        except AssertionError as error:
            print(f"seed {number}: {error!r}"[:300])
