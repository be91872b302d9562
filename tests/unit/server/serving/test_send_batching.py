"""Who waits for the end of the loop's turn with its answer, and who does not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tidelog.broker.request import Session
from tidelog.server.serving.send_batching import Turn


class Loop(asyncio.AbstractEventLoop):
    """What a turn asks of a loop."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
        self.soon.append(callback)

    def end_of_turn(self) -> None:
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()


class Connection:
    def __init__(self, name: str, sent: list[str]) -> None:
        self.name = name
        self.sent = sent
        self.session = Session("L", "h")

    def send_answers(self) -> None:
        self.sent.append(self.name)


def test_answers_of_several_clients_leave_together_in_the_order_in_which_they_were_ready() -> None:
    loop, sent = Loop(), list[str]()
    turn = Turn(loop, lambda: 0)
    assert all(turn.defers(Connection(name, sent)) for name in ("a", "b", "c"))
    assert sent == []
    assert len(loop.soon) == 1
    loop.end_of_turn()
    assert sent == ["a", "b", "c"]
    loop.end_of_turn()
    assert sent == ["a", "b", "c"]


def test_a_client_that_asks_twice_in_a_row_is_answered_at_once() -> None:
    loop, sent = Loop(), list[str]()
    turn, alone = Turn(loop, lambda: 0), Connection("a", sent)
    assert turn.defers(alone)
    loop.end_of_turn()
    assert not turn.defers(alone)
    assert not turn.defers(alone)
    assert turn.defers(Connection("b", sent))
    assert turn.defers(alone)


def test_a_connection_that_closed_is_not_kept() -> None:
    turn, connection = Turn(Loop(), lambda: 0), Connection("a", [])
    turn.defers(connection)
    turn.forget(connection)
    assert turn.defers(connection), "who comes after it is not taken for it"


def test_who_becomes_ready_while_answers_are_sent_has_its_turn_next() -> None:
    loop, sent = Loop(), list[str]()
    turn = Turn(loop, lambda: 0)
    late = Connection("late", sent)

    class Prompts(Connection):
        def send_answers(self) -> None:
            super().send_answers()
            turn.defers(late)

    turn.defers(Prompts("first", sent))
    turn.defers(Connection("second", sent))
    loop.end_of_turn()
    assert sent == ["first", "second"]
    loop.end_of_turn()
    assert sent == ["first", "second", "late"]


def test_a_connection_that_fails_does_not_keep_the_answers_of_the_others() -> None:
    loop, sent = Loop(), list[str]()
    turn = Turn(loop, lambda: 0)

    class Broken(Connection):
        def send_answers(self) -> None:
            raise RuntimeError("a bug")

    for connection in (Broken("a", sent), Connection("b", sent)):
        turn.defers(connection)
    loop.end_of_turn()
    assert sent == ["b"]
