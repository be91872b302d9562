from __future__ import annotations

from tidelog.replication.leadership import Leadership
from tidelog.replication.replica import Caller


def test_a_replica_to_be_added_counts_at_once_and_one_to_be_removed_until_the_controller_agrees() -> None:
    leadership = Leadership((2, 3), (1, 2), 500)
    leadership.ask((1, 2, 3))
    assert (leadership.pending, leadership.maximal_isr) == ((1, 2, 3), {1, 2, 3})
    leadership.settle((1, 2, 3))
    leadership.ask((1, 3))
    assert (leadership.pending, leadership.maximal_isr) == ((1, 3), {1, 2, 3})
    leadership.settle((1, 3))
    assert (leadership.pending, leadership.maximal_isr) == (None, {1, 3})


def test_known_followers_keep_their_position_and_new_ones_have_none() -> None:
    leadership = Leadership((2, 3), (1, 2), 500)
    leadership.fetched(leadership.replicas[2], 7, 0, 9, Caller(2, 5, 600))
    leadership.assign((2, 4), (1, 2), 700, elected=False)
    assert {key: each.log_end_offset for key, each in leadership.replicas.items()} == {2: 7, 4: -1}
    assert leadership.replicas[2].caught_up_ms == 500
    leadership.assign((2, 4), (1, 4), 800, elected=True)
    assert {key: each.caught_up_ms for key, each in leadership.replicas.items()} == {2: 0, 4: 800}


def test_a_follower_at_the_end_was_in_step_until_the_next_append() -> None:
    leadership = Leadership((2,), (1, 2), 500)
    assert not leadership.quiet
    caller = Caller(2, 5, 600)
    leadership.fetched(leadership.replicas[2], 9, 0, 9, caller)
    assert leadership.quiet
    caller.last_fetch_ms = 900
    leadership.appending(9)
    assert (leadership.quiet, leadership.replicas[2].caught_up_ms) == (False, 900)


def test_a_session_that_drops_the_partition_ends_what_its_later_fetches_say() -> None:
    leadership = Leadership((2,), (1, 2), 500)
    caller = Caller(2, 5, 600)
    leadership.fetched(leadership.replicas[2], 9, 0, 9, caller)
    leadership.left(Caller(3, 5, 600), 9)
    leadership.left(Caller(2, 5, 600), 9)
    assert leadership.replicas[2].is_asking, "another fetcher left"
    leadership.left(caller, 9)
    assert not leadership.replicas[2].is_asking
