from tests.unit.raft.driver import Driver, voters
from tidelog.raft.effects import AppendControl, Effects, LeaderChanged, Persist
from tidelog.raft.quorum_state import QuorumState


def test_only_the_last_of_two_states_in_a_row_is_written() -> None:
    effects = Effects()
    effects.add(Persist(QuorumState(-1, 1, 1)))
    effects.add(Persist(QuorumState(1, 1)))
    effects.add(LeaderChanged(1, 1, 0))
    effects.add(Persist(QuorumState(-1, 2)))
    assert [each.state.leader_epoch for each in effects.take() if isinstance(each, Persist)] == [1, 2]
    assert effects.take() == []


def test_who_is_alone_leads_with_one_write_of_its_state_before_its_first_record() -> None:
    kinds = [type(each) for each in Driver(voters(1)).done]
    assert kinds == [Persist, LeaderChanged, AppendControl]
