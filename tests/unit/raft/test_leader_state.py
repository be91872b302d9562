from tests.unit.raft.driver import disk, voters
from tidelog.raft.leader_state import MOST_OBSERVERS, OBSERVER_SESSION_MS, LeaderState, successors, unheard
from tidelog.raft.voters import ReplicaKey


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, disk(node_id))


def leader(*ids: int, start: int = 10) -> LeaderState:
    state = LeaderState(key(1), start, 3000, 0)
    state.set_voters(voters(*ids))
    return state


def test_committed_is_what_a_majority_has_from_the_leaders_first_record_on() -> None:
    state = leader(1, 2, 3)
    state.local_synced(12)
    state.replica_fetched(key(2), 10, 12, 1)
    assert state.advance() is None, "nothing of the own epoch is on a majority"
    state.replica_fetched(key(2), 11, 12, 2)
    assert state.advance() == 11
    state.replica_fetched(key(3), 12, 12, 3)
    assert state.advance() == 12
    assert state.advance() is None


def test_a_lagging_new_voter_does_not_take_back_what_is_committed() -> None:
    state = leader(1, 2, 3)
    state.local_synced(20)
    state.replica_fetched(key(2), 20, 20, 1)
    assert state.advance() == 20
    state.set_voters(voters(1, 2, 3, 4))
    assert state.advance() is None and state.high_watermark == 20


def test_a_leader_that_is_no_voter_any_more_does_not_count_itself() -> None:
    state = leader(2, 3)
    state.local_synced(20)
    state.replica_fetched(key(2), 15, 20, 1)
    assert state.advance() is None
    state.replica_fetched(key(3), 18, 20, 1)
    assert state.advance() == 15


def test_check_quorum_wants_to_hear_a_majority_again_and_again() -> None:
    state = leader(1, 2, 3, 4, 5)
    state.heard(key(2), 1000)
    assert state.quorum_lost(3000) and not state.quorum_lost(2999)
    state.heard(key(3), 1500)
    assert not state.quorum_lost(4499) and state.quorum_lost(4500)
    state.heard(key(9), 2000)
    state.heard(ReplicaKey(2, disk(7)), 2000)
    assert state._fetched == {}, "others, and other disks, are no voters"
    assert leader(1).deadline_ms() is None


def test_who_has_fetched_knows_who_leads() -> None:
    state = leader(1, 2, 3)
    assert unheard(state, key(1), 0, 1000) == (key(2), key(3))
    state.replica_fetched(key(2), 10, 10, 500)
    assert unheard(state, key(1), 600, 1000) == (key(3),)
    assert unheard(state, key(1), 1500, 1000) == (key(2), key(3))


def test_successors_are_named_the_furthest_first() -> None:
    state = leader(1, 2, 3)
    state.replica_fetched(key(2), 10, 20, 1)
    state.replica_fetched(key(3), 15, 20, 1)
    assert successors(state, key(1)) == (key(3), key(2))


def test_observers_are_described_while_they_fetch_and_may_join_when_they_have_caught_up() -> None:
    state = leader(1, 2)
    state.replica_fetched(key(5), 3, 10, 100)
    assert not state.observers[key(5)].caught_up(100)
    state.replica_fetched(key(5), 10, 12, 200)
    assert state.observers[key(5)].caught_up(200), "it had what there was at its last fetch"
    state.set_voters(voters(1, 2, 5))
    assert key(5) not in state.observers and state.voters[5].end_offset == 10
    state.set_voters(voters(1, 2))
    assert key(5) in state.observers
    state.forget_silent_observers(200 + OBSERVER_SESSION_MS)
    assert state.observers == {}


def test_who_led_alone_has_a_whole_period_to_hear_from_the_first_that_comes() -> None:
    state = leader(1)
    state.lead_alone(50_000)
    state.set_voters(voters(1, 2))
    assert not state.quorum_lost(52_999)
    assert state.quorum_lost(53_000)
    state.lead_alone(53_000)
    assert state.quorum_lost(53_000), "it leads alone no more"


def test_invented_observers_are_not_remembered_without_end() -> None:
    state = leader(1, 2, 3)
    for number in range(MOST_OBSERVERS + 10):
        state.replica_fetched(ReplicaKey(100 + number, disk(4)), 5, 12, 1)
    assert len(state.observers) == MOST_OBSERVERS
    state.replica_fetched(key(2), 12, 12, 1)
    assert state.voters[2].end_offset == 12, "voters count as ever"
