"""The roles of a replica that neither leads nor follows, and who gets its vote (KIP-595, KIP-996).

    UNATTACHED   in an epoch whose leader it does not know, or has lost; may have voted in it
    PROSPECTIVE  asks the voters whether they would vote for it (pre-vote), without raising the epoch
    CANDIDATE    has voted for itself in a new epoch and asks for votes
    RESIGNED     led this epoch and does not any more; it voted for itself in it, so it never votes in it again

A pre-vote promises nothing and is not persisted. A vote is: it leaves the process only when the quorum-state file is synced.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from tidelog.model.ids import NO_BROKER
from tidelog.raft.voters import ReplicaKey, VoterSet
from tidelog.records.control import Endpoint


class Role(Enum):
    """What a replica is in its epoch."""

    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


LEGAL_MOVES = {
    Role.UNATTACHED: frozenset({Role.UNATTACHED, Role.PROSPECTIVE, Role.CANDIDATE, Role.FOLLOWER}),
    Role.PROSPECTIVE: frozenset({Role.UNATTACHED, Role.CANDIDATE, Role.FOLLOWER}),
    Role.CANDIDATE: frozenset({Role.UNATTACHED, Role.PROSPECTIVE, Role.LEADER, Role.FOLLOWER}),
    Role.LEADER: frozenset({Role.UNATTACHED, Role.FOLLOWER, Role.RESIGNED}),
    Role.FOLLOWER: frozenset({Role.UNATTACHED, Role.PROSPECTIVE, Role.FOLLOWER}),
    Role.RESIGNED: frozenset({Role.UNATTACHED, Role.FOLLOWER, Role.CANDIDATE}),
}
"""A resigned leader comes to a new epoch: as an unattached replica, a follower, or, alone in its quorum, as its candidate."""


class Ballot:
    """The votes of one round."""

    __slots__ = ("_majority", "answers")

    def __init__(self, voters: VoterSet, me: ReplicaKey) -> None:
        self._majority = voters.majority
        self.answers: dict[int, bool | None] = dict.fromkeys(voters.ids)
        if me.id in self.answers:
            self.answers[me.id] = True

    def record(self, voter_id: int, granted: bool) -> None:
        """A voter's answer; one that has said yes stays with it."""
        if voter_id in self.answers and self.answers[voter_id] is not True:
            self.answers[voter_id] = granted

    @property
    def granted(self) -> bool:
        return sum(answer is True for answer in self.answers.values()) >= self._majority

    @property
    def rejected(self) -> bool:
        """No majority can come together any more."""
        return sum(answer is not False for answer in self.answers.values()) < self._majority

    @property
    def missing(self) -> tuple[int, ...]:
        return tuple(voter_id for voter_id, answer in self.answers.items() if answer is None)

    @property
    def granting(self) -> tuple[int, ...]:
        return tuple(voter_id for voter_id, answer in self.answers.items() if answer)


@dataclass(slots=True)
class Unattached:
    """``voted``: whom it voted for in this epoch. ``leader_id``: the epoch's leader, when it is known but cannot be reached."""

    deadline_ms: int
    voted: ReplicaKey | None = None
    leader_id: int = NO_BROKER
    leader_endpoints: tuple[Endpoint, ...] = ()

    def grants(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        return _may_vote(self.voted, self.leader_id, candidate, up_to_date, pre_vote)


@dataclass(slots=True)
class Prospective:
    """It keeps what it knew of the epoch: vote and leader."""

    deadline_ms: int
    ballot: Ballot
    voted: ReplicaKey | None = None
    leader_id: int = NO_BROKER
    leader_endpoints: tuple[Endpoint, ...] = ()

    def grants(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        return _may_vote(self.voted, self.leader_id, candidate, up_to_date, pre_vote)


@dataclass(slots=True)
class Candidate:
    """``backoff_ms``: set when it has lost; until then it waits before it tries again."""

    deadline_ms: int
    ballot: Ballot
    backoff_ms: int | None = None

    def grants(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        return pre_vote and up_to_date


@dataclass(slots=True)
class Resigned:
    """``preferred``: who should come next, the most complete log first. ``unacknowledged``: who has not heard of it yet."""

    deadline_ms: int
    preferred: tuple[ReplicaKey, ...] = ()
    unacknowledged: list[int] = field(default_factory=list)

    def grants(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        return pre_vote and up_to_date


def _may_vote(voted: ReplicaKey | None, leader_id: int, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
    if pre_vote:
        return up_to_date
    if voted is not None:
        # Who asks again has the log it had, or has lost it: with an emptied disk it must not lead on the strength of an old vote.
        return up_to_date and voted.is_same(candidate)
    return leader_id == NO_BROKER and up_to_date
