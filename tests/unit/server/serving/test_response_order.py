from __future__ import annotations

from tidelog.broker.answer_types import Waiting
from tidelog.protocol.api_keys import ApiKey
from tidelog.replication.purgatory import ParkedAppend
from tidelog.server.serving.response_order import MOST_PLACES, InOrder


class Polled(Waiting):
    def go_on(self) -> list[bytes]:
        return []


class Appended(Polled):
    lets_next_in = True


def waiting(kind: type[Polled] = Appended) -> Waiting:
    return kind(ParkedAppend(1000, -1))


def test_answers_leave_in_the_order_of_their_requests() -> None:
    answers = InOrder()
    first = answers.wait_for(waiting())
    answers.queue([b"b"])
    third = answers.wait_for(waiting())
    answers.queue([b"d", b"e"])
    assert answers.take_ready() == []
    third.parts = [b"c"]
    assert answers.take_ready() == []
    first.parts = [b"a"]
    assert answers.take_ready() == [b"a", b"b", b"c", b"d", b"e"]
    assert not answers.places


def test_a_produce_that_waits_lets_in_another_one_and_nothing_else() -> None:
    answers = InOrder()
    answers.wait_for(waiting())
    assert answers.lets_in(ApiKey.PRODUCE) and answers.lets_in(-1)
    assert not answers.lets_in(ApiKey.METADATA)
    answers.queue([b"refused"])
    assert answers.lets_in(ApiKey.PRODUCE)


def test_a_fetch_that_waits_lets_nothing_in() -> None:
    answers = InOrder()
    answers.wait_for(waiting(Polled))
    assert not answers.lets_in(ApiKey.PRODUCE) and not answers.lets_in(-1)


def test_no_more_answers_wait_than_there_are_places() -> None:
    answers = InOrder()
    for _ in range(MOST_PLACES):
        assert not answers.places or answers.lets_in(ApiKey.PRODUCE)
        answers.wait_for(waiting())
    assert not answers.lets_in(ApiKey.PRODUCE) and not answers.lets_in(-1)


def test_what_nobody_wants_any_more_watches_nothing_and_tells_nobody() -> None:
    answers = InOrder()
    given_up = waiting()
    told: list[bool] = []
    given_up.parked.on_done = lambda: told.append(True)
    place = answers.wait_for(given_up)
    answers.give_up()
    assert given_up.parked.done and not told and place.waiting is None and not answers.places


def test_the_last_answer_may_go_on_elsewhere() -> None:
    answers = InOrder()
    first = answers.wait_for(waiting())
    last = answers.wait_for(waiting(Polled))
    answers.drop(last)
    assert answers.lets_in(ApiKey.PRODUCE)
    first.parts = [b"a"]
    assert answers.take_ready() == [b"a"] and not answers.places
