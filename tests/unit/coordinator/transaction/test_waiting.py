from __future__ import annotations

from tests.unit.coordinator.transaction.driver import P0
from tidelog.coordinator.transaction.settings import NEVER_MS
from tidelog.coordinator.transaction.transitions import Producer
from tidelog.coordinator.transaction.waiting import PartitionsRequest, WaitingRequests
from tidelog.model.machine import Token


def request(token: int, until_ms: int) -> PartitionsRequest:
    return PartitionsRequest(Token(token), Producer(1, 0), [P0], 2, until_ms)


def test_requests_of_an_id_are_taken_in_order_of_arrival() -> None:
    waiting = WaitingRequests()
    later, sooner, other = request(1, 90), request(2, 50), request(3, 70)
    waiting.add("x", later)
    waiting.add("x", sooner)
    waiting.add("y", other)
    assert waiting.take("x") == [later, sooner]
    assert waiting.take("x") == []
    assert waiting.take_late(1_000) == [other]


def test_only_requests_that_have_waited_long_enough_are_late() -> None:
    waiting = WaitingRequests()
    assert waiting.next_deadline() == NEVER_MS
    later, sooner = request(1, 90), request(2, 50)
    waiting.add("x", later)
    waiting.add("x", sooner)
    assert waiting.next_deadline() == 50
    assert waiting.take_late(49) == []
    assert waiting.take_late(50) == [sooner]
    assert waiting.next_deadline() == 90
    assert waiting.take_late(90) == [later]
    assert waiting.next_deadline() == NEVER_MS and waiting.take("x") == []
