from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from tidelog.http.connections import HEAD_S, LEAST_READ, READ_S, Connection

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
WITH_BODY = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"


class Timer:
    def __init__(self, seconds: float, run: Callable[..., None], *given: Any) -> None:
        self.seconds = seconds
        self.run = lambda: run(*given)
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """Remembers what it shall do later."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []
        self.jobs: list[Any] = []

    def call_later(self, seconds: float, run: Callable[..., None], *given: Any) -> Timer:
        self.timers.append(Timer(seconds, run, *given))
        return self.timers[-1]

    def create_task(self, job: Any, **_: Any) -> Any:
        self.jobs.append(job)
        return Task()

    @property
    def due(self) -> list[Timer]:
        return [each for each in self.timers if not each.cancelled and each.seconds == HEAD_S]

    @property
    def unread(self) -> Timer:
        (found,) = (each for each in self.timers if not each.cancelled and each.seconds == READ_S)
        found.cancelled = True
        return found


class Task:
    def add_done_callback(self, _: Any) -> None:
        pass


class Transport:
    closed = aborted = False
    waiting = 0

    def get_extra_info(self, _: str) -> None:
        return None

    def set_write_buffer_limits(self, high: int) -> None:
        assert high == 0

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def write(self, data: bytes) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True

    def resume_reading(self) -> None:
        pass


async def answers(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


def connected() -> tuple[Connection, Loop, Transport]:
    config = uvicorn.Config(answers, log_config=None, timeout_keep_alive=77)
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
    loop.jobs.pop().close()


def test_a_connection_that_is_gone_is_not_closed_again() -> None:
    found, loop, _ = connected()
    found.connection_lost(ConnectionResetError())
    assert loop.due == []


def answered(loop: Loop) -> None:
    """Runs the application, which never has to wait."""
    with contextlib.suppress(StopIteration):
        loop.jobs.pop().send(None)


def test_the_rest_of_a_body_is_not_waited_for_without_end() -> None:
    found, loop, transport = connected()
    found.data_received(WITH_BODY)
    assert loop.due == []  # what reads the body has a limit of its own
    answered(loop)
    found.data_received(b"12345")
    (timer,) = loop.due
    timer.run()
    assert transport.closed


def test_a_connection_is_closed_when_no_request_follows_such_a_rest() -> None:
    found, loop, _ = connected()
    found.data_received(WITH_BODY)
    answered(loop)
    found.data_received(b"1234567890")
    assert len(loop.due) == 1


def test_an_idle_connection_has_one_timer() -> None:
    found, loop, _ = connected()
    found.data_received(HEAD)
    answered(loop)
    assert [each.seconds for each in loop.timers if not each.cancelled] == [77]


def test_a_client_that_does_not_read_is_cut_off() -> None:
    found, loop, transport = connected()
    transport.waiting = 4 * LEAST_READ
    found.pause_writing()
    transport.waiting -= LEAST_READ
    loop.unread.run()
    assert not transport.aborted  # it reads, slowly
    transport.waiting -= LEAST_READ - 1
    loop.unread.run()
    assert transport.aborted


def test_a_client_that_has_read_everything_is_not_cut_off() -> None:
    found, loop, _ = connected()
    found.pause_writing()
    found.resume_writing()
    assert all(each.cancelled for each in loop.timers if each.seconds == READ_S)
