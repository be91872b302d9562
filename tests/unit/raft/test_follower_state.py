from tests.unit.raft.driver import at, disk
from tidelog.raft.follower_state import FollowerState
from tidelog.raft.voters import ReplicaKey


def test_once_the_leader_was_heard_no_pre_vote_is_granted() -> None:
    state = FollowerState(2, (at(2),), 1000, 1000)
    other = ReplicaKey(3, disk(3))
    assert state.grants(other, True, True)
    assert not state.grants(other, False, True)
    assert not state.grants(other, True, False)
    state.fetched(5000, 2000)
    assert state.deadline_ms == 7000
    assert not state.grants(other, True, True)
