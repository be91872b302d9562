import random

import pytest

from tests.unit.raft.driver import disk, voters
from tidelog.raft.election import (
    BACKOFF_BASE_MS,
    LAST_EPOCH,
    LEGAL_MOVES,
    MANY_EPOCHS,
    Ballot,
    Candidate,
    ElectionTimer,
    Resigned,
    Role,
    Unattached,
    believable,
)
from tidelog.raft.voters import ReplicaKey

ME, TWO, THREE = (ReplicaKey(each, disk(each)) for each in (1, 2, 3))


def test_a_majority_wins_and_a_lost_majority_is_known_at_once() -> None:
    ballot = Ballot.open(voters(1, 2, 3, 4, 5), ME)
    assert ballot.missing == (2, 3, 4, 5)
    ballot = ballot.record(2, True)
    ballot = ballot.record(3, False)
    ballot = ballot.record(4, False)
    assert not ballot.granted and not ballot.rejected
    ballot = ballot.record(2, False)
    assert ballot.granting == (1, 2)
    ballot = ballot.record(9, True)
    ballot = ballot.record(5, False)
    assert ballot.rejected and not ballot.granted


def test_who_is_no_voter_does_not_count_itself() -> None:
    ballot = Ballot.open(voters(2), ME)
    assert not ballot.granted
    ballot = ballot.record(2, True)
    assert ballot.granted


def test_the_vote_of_an_epoch_stays_with_whom_it_was_given_to() -> None:
    free = Unattached(0)
    assert free.grants(TWO, True, False) and not free.grants(TWO, False, False)
    given = Unattached(0, voted=TWO)
    assert given.grants(TWO, True, False) and not given.grants(THREE, True, False)
    assert not given.grants(TWO, False, False), "its log was longer when it got the vote: it has lost it"
    assert given.grants(THREE, True, True), "a pre-vote promises nothing"
    assert not Unattached(0, leader_id=3).grants(TWO, True, False), "the epoch has its leader"


@pytest.mark.parametrize("state", [Candidate(0, Ballot.open(voters(1, 2, 3), ME)), Resigned(0)])
def test_who_voted_for_itself_grants_pre_votes_only(state: Candidate | Resigned) -> None:
    assert not state.grants(TWO, True, False)
    assert state.grants(TWO, True, True) and not state.grants(TWO, False, True)


def test_every_role_can_be_left() -> None:
    assert set(LEGAL_MOVES) == set(Role)
    assert all(moves for moves in LEGAL_MOVES.values())
    assert Role.LEADER not in LEGAL_MOVES[Role.RESIGNED], "never the same epoch twice"


def test_a_resigned_leader_remembers_which_voters_have_not_acknowledged() -> None:
    assert Resigned(0, (), (2, 3)).acknowledged_by(2).unacknowledged == (3,)
    assert Resigned(0, (), (2, 3)).acknowledged_by(9).unacknowledged == (2, 3)


def test_an_epoch_far_away_is_believed_only_while_elections_remain() -> None:
    assert believable(MANY_EPOCHS, 0)
    assert not believable(LAST_EPOCH, 0)
    assert believable(LAST_EPOCH, LAST_EPOCH - 1)


def test_the_pause_after_lost_elections_grows_until_there_is_a_leader() -> None:
    timer = ElectionTimer(1000, 100_000, random.Random(3))
    assert all(1000 <= timer.deadline_ms(0) <= 2000 for _ in range(50))
    first = timer.backoff_ms()
    assert first <= BACKOFF_BASE_MS
    assert max(timer.backoff_ms() for _ in range(12)) > 10 * BACKOFF_BASE_MS
    timer.settled()
    assert timer.backoff_ms() <= BACKOFF_BASE_MS
    assert all(20 <= timer.spread_ms(20) <= 120 for _ in range(50))
