from __future__ import annotations

from tidelog.replication.replica import Caller, Replica


def fetch(replica: Replica, offset: int, leader_end: int, now_ms: int) -> Caller:
    caller = Caller(2, 7, now_ms)
    replica.fetched(offset, 0, leader_end, caller)
    return caller


def test_a_follower_at_the_leaders_end_has_caught_up_now() -> None:
    replica = Replica(2, 0)
    fetch(replica, 10, leader_end=10, now_ms=500)
    assert (replica.caught_up_ms, replica.log_end_offset, replica.broker_epoch) == (500, 10, 7)


def test_one_that_holds_what_there_was_at_its_last_fetch_had_caught_up_then() -> None:
    replica = Replica(2, 0)
    fetch(replica, 10, leader_end=20, now_ms=500)
    fetch(replica, 20, leader_end=30, now_ms=900)
    assert replica.caught_up_ms == 500
    fetch(replica, 25, leader_end=40, now_ms=1000)
    assert replica.caught_up_ms == 500, "of the 30 that there were at 900 it has 25"


def test_a_quiet_partition_was_caught_up_as_of_its_followers_last_fetch_of_anything() -> None:
    replica = Replica(2, 0)
    caller = fetch(replica, 10, leader_end=10, now_ms=500)
    caller.last_fetch_ms = 60_000
    assert replica.caught_up_within(10, now_ms=90_000, lag_max_ms=30), "it ends where the leader does"
    replica.falls_behind()
    assert replica.caught_up_ms == 60_000
    assert replica.caught_up_within(11, now_ms=60_030, lag_max_ms=30)
    assert not replica.caught_up_within(11, now_ms=60_031, lag_max_ms=30)
    fetch(replica, 10, leader_end=15, now_ms=60_100)
    assert replica.caught_up_ms == 60_000, "the end at its last fetch it had, at that time"


def test_a_replica_outside_of_the_isr_gets_no_time_from_an_election() -> None:
    replica = Replica(2, 400)
    replica.lead_again(900, in_sync=False)
    assert replica.caught_up_ms == 0
    replica.lead_again(900, in_sync=True)
    assert replica.caught_up_ms == 900


def test_one_that_is_asked_for_no_more_had_caught_up_as_of_the_last_fetch_of_its_session() -> None:
    replica = Replica(2, 0)
    caller = fetch(replica, 5, 5, 100)
    caller.last_fetch_ms = 900
    replica.left(caller, 5)
    caller.last_fetch_ms = 5000
    assert (replica.caught_up_ms, replica.is_asking) == (900, False)
    assert not replica.asked_within(5000, 10_000)
