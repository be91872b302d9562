from tests.unit.raft.driver import at, disk
from tidelog.raft.follower_state import FollowerState
from tidelog.raft.voters import ReplicaKey


def test_once_the_leader_was_heard_no_pre_vote_is_granted() -> None:
    state = FollowerState(2, (at(2),), 1000, 1000)
    other = ReplicaKey(3, disk(3))
    assert state.grants(other, True, True)
    assert not state.grants(other, False, True)
    assert not state.grants(other, True, False)
    state = state.fetched(5000, 2000)
    assert state.deadline_ms == 7000
    assert not state.grants(other, True, True)
    gone = state.leader_gone(5100)
    assert (gone.deadline_ms, gone.leader_id) == (5100, 2)
    assert gone.grants(other, True, True), "its leader has resigned"
