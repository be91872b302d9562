"""The child's side, without a process: calls in, answers out."""

from __future__ import annotations

import io

from tidelog.testing.child import receive, send
from tidelog.testing.child_process import portable, serve


def exchange(*calls: tuple[str, tuple[object, ...], dict[str, object]]) -> list[tuple[bool, object]]:
    commands, answers = io.BytesIO(), io.BytesIO()
    for each in calls:
        send(commands, each)
    commands.seek(0)
    serve(commands, answers)
    answers.seek(0)
    found = []
    while answers.tell() < len(answers.getvalue()):
        found.append(receive(answers))
    return found


def test_calls_and_properties_are_answered_until_stop() -> None:
    started, topics, pending, stopped = exchange(
        ("start", ({"port": 0},), {}), ("topics", (), {}), ("faults.pending", (), {}), ("stop", (), {}), ("topics", (), {})
    )
    assert started[0]
    assert isinstance(started[1], int)
    assert (topics, pending, stopped) == ((True, []), (True, 0), (True, None))


def test_an_error_travels_and_the_next_call_is_served() -> None:
    _, failed, fine, _ = exchange(
        ("start", ({"port": 0},), {}), ("messages", ("x", None, False), {}), ("topics", (), {}), ("stop", (), {})
    )
    assert not failed[0]
    assert isinstance(failed[1], ValueError)
    assert fine == (True, [])


def test_an_error_that_cannot_travel_is_told_in_words() -> None:
    class Odd(Exception):
        pass

    found = portable(Odd("why"))
    assert type(found) is RuntimeError
    assert str(found) == "Odd: why"
