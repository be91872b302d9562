from __future__ import annotations

from tidelog.server.serving.stranger_frames import StrangerFrames


def largest(mechanism: str) -> tuple[int, str]:
    return {"": 10, "LONG": 500, "LONGER": 5000}[mechanism], mechanism or "none"


def fill(frames: StrangerFrames, times: int) -> None:
    """Receives empty frames, each time as many as there is room for."""
    for _ in range(times):
        room = frames.writable()
        room[:] = bytes(len(room))
        frames.received(len(room))
        while frames.next_frame() is not None:
            pass


def test_the_limit_follows_the_login_and_is_never_above_that_of_requests() -> None:
    frames = StrangerFrames(largest, 1000, 1000)
    assert (frames._max, frames._option) == (10, "none")
    frames.limit("LONG")
    assert (frames._max, frames._option) == (500, "LONG")
    frames.limit("LONGER")
    assert (frames._max, frames._option) == (1000, "socket.request.max.bytes")
    frames.limit("LONG")
    frames.authenticated(100_000)
    assert (frames._max, frames._option) == (1000, "socket.request.max.bytes")


def test_there_is_no_read_ahead_before_the_end_of_the_login() -> None:
    frames = StrangerFrames(largest, 1000, 1000)
    initial = frames.capacity
    fill(frames, 4)
    assert frames.capacity == initial
    frames.authenticated(100_000)
    fill(frames, 4)
    assert frames.capacity > initial
