from __future__ import annotations

from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from tidelog.http.connections import HEAD_S, Connection

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Timer:
    def __init__(self, seconds: float, run: Callable[[], None]) -> None:
        self.seconds = seconds
        self.run = run
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """Remembers what it shall do later."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []

    def call_later(self, seconds: float, run: Callable[[], None]) -> Timer:
        self.timers.append(Timer(seconds, run))
        return self.timers[-1]

    def create_task(self, job: Any, **_: Any) -> Any:
        job.close()
        return Task()

    @property
    def due(self) -> list[Timer]:
        return [each for each in self.timers if not each.cancelled and each.seconds == HEAD_S]


class Task:
    def add_done_callback(self, _: Any) -> None:
        pass


class Transport:
    closed = False

    def get_extra_info(self, _: str) -> None:
        return None

    def close(self) -> None:
        self.closed = True


def connected() -> tuple[Connection, Loop, Transport]:
    config = uvicorn.Config(lambda: None, log_config=None)
    config.load()
    loop, transport = Loop(), Transport()
    found = Connection(config, ServerState(), {}, loop)  # type: ignore[arg-type]
    found.connection_made(transport)
    return found, loop, transport


def test_half_a_head_is_not_waited_for_without_end() -> None:
    found, loop, transport = connected()
    for piece in (HEAD[:5], HEAD[5:20], HEAD[20:-1]):
        found.data_received(piece)
    (timer,) = loop.due
    timer.run()
    assert transport.closed


def test_a_whole_head_stops_the_time() -> None:
    found, loop, transport = connected()
    found.data_received(HEAD)
    assert (loop.due, transport.closed) == ([], False)


def test_a_connection_that_is_gone_is_not_closed_again() -> None:
    found, loop, _ = connected()
    found.connection_lost(ConnectionResetError())
    assert loop.due == []
