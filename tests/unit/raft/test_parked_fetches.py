from tidelog.model.ids import Uuid
from tidelog.model.machine import Token
from tidelog.protocol.messages.fetch import FetchPartition
from tidelog.raft.effects import Inbound
from tidelog.raft.parked_fetches import SPARE, ParkedFetch, ParkedFetches
from tidelog.raft.voters import ReplicaKey

KEY = ReplicaKey(7, Uuid(bytes(16)))


def poll(token: int, deadline_ms: int) -> ParkedFetch:
    return ParkedFetch(Inbound(Token(token), 18, "CONTROLLER"), KEY, FetchPartition(), 1000, deadline_ms)


def tokens(fetches: list[ParkedFetch]) -> list[int]:
    return [each.inbound.token for each in fetches]


def test_the_next_deadline_is_that_of_who_still_waits() -> None:
    parked = ParkedFetches()
    assert parked.next_deadline_ms() is None
    for token, deadline_ms in ((1, 500), (2, 300), (3, 400)):
        parked.park(poll(token, deadline_ms))
    assert parked.next_deadline_ms() == 300
    parked.abandon(Token(2))
    parked.abandon(Token(2))
    assert parked.next_deadline_ms() == 400 and len(parked) == 2


def test_whose_time_is_over_is_taken_out_and_the_others_wait_on() -> None:
    parked = ParkedFetches()
    for token, deadline_ms in ((1, 500), (2, 300), (3, 400)):
        parked.park(poll(token, deadline_ms))
    assert tokens(parked.take_expired(299)) == []
    assert tokens(parked.take_expired(400)) == [2, 3]
    assert tokens(list(parked)) == [1]
    assert tokens(parked.take_all()) == [1] and not len(parked) and parked.next_deadline_ms() is None


def test_polls_that_are_answered_and_asked_anew_leave_nothing_behind() -> None:
    parked = ParkedFetches()
    for token in range(10 * SPARE):
        parked.park(poll(token, 60_000 + token))
        parked.abandon(Token(token - 1))
    assert len(parked) == 1 and len(parked._deadlines) <= SPARE + 2
    assert parked.next_deadline_ms() == 60_000 + 10 * SPARE - 1
