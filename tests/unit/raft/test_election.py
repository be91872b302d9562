import pytest

from tests.unit.raft.driver import disk, voters
from tidelog.raft.election import LEGAL_MOVES, Ballot, Candidate, Resigned, Role, Unattached
from tidelog.raft.voters import ReplicaKey

ME, TWO, THREE = (ReplicaKey(each, disk(each)) for each in (1, 2, 3))


def test_a_majority_wins_and_a_lost_majority_is_known_at_once() -> None:
    ballot = Ballot(voters(1, 2, 3, 4, 5), ME)
    assert ballot.missing == (2, 3, 4, 5)
    ballot.record(2, True)
    ballot.record(3, False)
    ballot.record(4, False)
    assert not ballot.granted and not ballot.rejected
    ballot.record(2, False)
    assert ballot.granting == (1, 2)
    ballot.record(9, True)
    ballot.record(5, False)
    assert ballot.rejected and not ballot.granted


def test_who_is_no_voter_does_not_count_itself() -> None:
    ballot = Ballot(voters(2), ME)
    assert not ballot.granted
    ballot.record(2, True)
    assert ballot.granted


def test_the_vote_of_an_epoch_stays_with_whom_it_was_given_to() -> None:
    free = Unattached(0)
    assert free.grants(TWO, True, False) and not free.grants(TWO, False, False)
    given = Unattached(0, voted=TWO)
    assert given.grants(TWO, True, False) and not given.grants(THREE, True, False)
    assert not given.grants(TWO, False, False), "its log was longer when it got the vote: it has lost it"
    assert given.grants(THREE, True, True), "a pre-vote promises nothing"
    assert not Unattached(0, leader_id=3).grants(TWO, True, False), "the epoch has its leader"


@pytest.mark.parametrize("state", [Candidate(0, Ballot(voters(1, 2, 3), ME)), Resigned(0)])
def test_who_voted_for_itself_grants_pre_votes_only(state: Candidate | Resigned) -> None:
    assert not state.grants(TWO, True, False)
    assert state.grants(TWO, True, True) and not state.grants(TWO, False, True)


def test_every_role_can_be_left() -> None:
    assert set(LEGAL_MOVES) == set(Role)
    assert all(moves for moves in LEGAL_MOVES.values())
    assert Role.LEADER not in LEGAL_MOVES[Role.RESIGNED], "never the same epoch twice"
