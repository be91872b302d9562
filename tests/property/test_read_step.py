"""The compiled read step and its twin in Python: the same bytes in the same pieces, the same answers, states and counters.

``python -m tests.property.test_read_step SEED REQUESTS`` runs as many requests as wanted.
"""

from __future__ import annotations

import logging
import random
import socket
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tidelog.broker.answer_types import CLOSE_CONNECTION, NO_RESPONSE, Waiting
from tidelog.broker.request import Session
from tidelog.broker.request_times import RequestTimes
from tidelog.model.errors import KafkaError
from tidelog.replication.purgatory import Parked, ParkedAppend
from tidelog.server.native import read_steps
from tidelog.server.serving.connection import Connection
from tidelog.server.serving.send_batching import Turn
from tidelog.server.serving.transport import PlainTransport
from tidelog.server.serving.violations import Violations

MOST_BYTES = 60_000
RUNS = 150
ACTIONS = ("small", "two parts", "large", "huge", "nothing", "close", "raise", "wait", "throttle", "drain", "quotas")
"""What a request does, by its third byte; most are small."""


class Wait(Waiting):
    """A request that waits for records to be replicated."""

    lets_next_in = True

    def go_on(self) -> list[bytes]:
        return [b"late"]

    def refuse(self, error: KafkaError) -> list[bytes]:
        return [b"refused"]


class Loop:
    """Remembers what it is asked to call."""

    def __init__(self) -> None:
        self.readers: dict[int, Callable[[], None]] = {}
        self.writers: dict[int, Callable[[], None]] = {}
        self.soon: list[Callable[[], None]] = []

    def add_reader(self, fd: int, call: Callable[[], None]) -> None:
        self.readers[fd] = call

    def remove_reader(self, fd: int) -> None:
        self.readers.pop(fd, None)

    def add_writer(self, fd: int, call: Callable[[], None]) -> None:
        self.writers[fd] = call

    def remove_writer(self, fd: int) -> None:
        self.writers.pop(fd, None)

    def call_soon(self, call: Callable[..., None], *args: Any) -> Loop:
        self.soon.append(lambda: call(*args))
        return self

    def cancel(self) -> None:
        """Of a timer: it is late, and does nothing to a connection that is not throttled."""

    def turn(self) -> None:
        """What was to be called soon, once."""
        soon, self.soon = self.soon, []
        for call in soon:
            call()


class Side:
    """A node with one connection, and the client's end of it. It is the runtime and the owner as well."""

    def __init__(self, make: Callable[..., Any] | None, max_bytes: int) -> None:
        self.loop = Loop()
        self.runtime = self
        self.now_ms = self.real_ms = self.tick
        self.ticks = 0
        self.read_step = make
        self.violations = Violations()
        self.turn = Turn(self.loop, self.tick)  # type: ignore[arg-type]
        self.times = RequestTimes(self.tick)
        self.sasl = None
        self.metered = False
        self.parked: list[tuple[Parked, Callable[[], Callable[[], None] | None]]] = []
        self.said: list[str] = []
        ours, self.client = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.client.setblocking(False)
        self.fd = ours.fileno()
        self.session = Session("PLAINTEXT", "client")
        self.connection = Connection(self, PlainTransport(ours), self.session, max_bytes)  # type: ignore[arg-type]
        self.got = b""

    def tick(self) -> int:
        self.ticks += 1
        return self.ticks

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Loop:
        return self.loop.call_soon(call)

    def when_done(self, parked: Parked, then: Callable[[], Callable[[], None] | None], session: Session) -> None:
        self.parked.append((parked, then))

    def closed(self, connection: Connection) -> None:
        self.said.append("closed")

    def handle(self, session: Session, frame: memoryview) -> Any:
        data = bytes(frame)
        self.said.append(f"{len(data)} {data[:6].hex()}")
        action = ACTIONS[data[2]] if len(data) > 2 and data[2] < len(ACTIONS) else "small"
        machine = self.connection.machine
        if action == "raise":
            raise ValueError("a fault in a handler")
        if action == "throttle":
            machine.throttle(5)
        elif action == "drain":
            machine.drain()
        elif action == "quotas":
            self.connection.meter()
        elif action == "wait":
            return Wait(ParkedAppend(lambda: False, 0))
        answers: dict[str, Any] = {
            "two parts": [b"one", b"two"],
            "large": [data * 20],
            "huge": [b"x" * 70_000],
            "nothing": NO_RESPONSE,
            "close": CLOSE_CONNECTION,
        }
        return answers.get(action, [data[::-1]])

    # -- the client -------------------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Sends, and lets the node read as long as there is something to read."""
        self.client.send(data)
        self.read()

    def read(self) -> None:
        reader = self.loop.readers.get(self.fd)
        if reader is not None:
            reader()

    def take(self, count: int) -> None:
        """Reads answers, and lets the node send on."""
        try:
            self.got += self.client.recv(count)
        except (BlockingIOError, ConnectionResetError):
            return
        writer = self.loop.writers.get(self.fd)
        if writer is not None:
            writer()

    def state(self) -> tuple[object, ...]:
        machine, frames = self.connection.machine, self.connection.machine.frames
        inside = (
            machine.state,
            machine.busy,
            machine.waiting,
            machine.peer_gone,
            machine.active,
            frames.pending,
            frames.capacity,
        )
        counted = (self.session.bytes_in, self.session.bytes_out, self.session.requests, bool(self.session.loop_ns))
        wanted = (self.fd in self.loop.readers, self.fd in self.loop.writers, len(self.loop.soon), len(self.parked))
        return inside, counted, wanted, tuple(self.said), self.got

    def end(self) -> None:
        self.connection.close()
        self.client.close()


def request(rng: random.Random) -> bytes:
    """A frame; now and then one that is too large, or whose size is negative."""
    size = rng.choice([0, 1, 2, 3, 8, 8, 8, 40, 300, 5_000])
    action = rng.randrange(len(ACTIONS)) if rng.random() < 0.15 else 0
    body = bytes([0, rng.randrange(4), action])[:size] + rng.randbytes(max(0, size - 3))
    told = size
    if rng.random() < 0.01:
        told = rng.choice([MOST_BYTES + 1, 0xFFFFFFFF, 0x80000000])
    return told.to_bytes(4, "big") + body


def live_through(seed: int, make: Callable[..., Any]) -> int:
    """Both sides live through the same; returns how many requests were handled."""
    rng = random.Random(seed)
    sides = [Side(None, MOST_BYTES), Side(make, MOST_BYTES)]
    try:
        assert type(sides[1].loop.readers[sides[1].fd]).__name__ == "ReadStep"
        stream = b"".join(request(rng) for _ in range(rng.randrange(1, 120)))
        while stream:
            count = rng.choice([1, 3, 7, 20, 100, 1_000, 4_000])
            piece, stream = stream[:count], stream[count:]
            done = rng.random()
            for side in sides:
                try:
                    side.send(piece)
                except (BlockingIOError, BrokenPipeError, ConnectionResetError):
                    stream = b""
                if done < 0.5:
                    side.loop.turn()
                if done < 0.3:
                    side.take(10_000)
                if done < 0.1 and side.parked:
                    parked, then = side.parked.pop(0)
                    parked.finish()
                    after = then()
                    if after is not None:
                        after()
            assert sides[0].state() == sides[1].state()
        if rng.random() < 0.5:
            for side in sides:
                side.client.close()
        for _ in range(200):
            for side in sides:
                side.read()
                side.loop.turn()
                if side.client.fileno() >= 0:
                    side.take(100_000)
            assert sides[0].state() == sides[1].state()
        return len(sides[0].said)
    finally:
        for side in sides:
            side.end()


def test_the_step_does_what_the_connection_does() -> None:
    make = read_steps()
    if make is None:
        pytest.skip("not compiled here")
    assert sum(live_through(seed, make) for seed in range(RUNS)) > 10 * RUNS


if __name__ == "__main__":
    compiled = read_steps()
    assert compiled is not None, "it is not compiled"
    logging.disable()
    seed, wanted, done = int(sys.argv[1]), int(sys.argv[2]), 0
    while done < wanted:
        done += live_through(seed, compiled)
        seed += 1
    print(done, "requests, no difference")
