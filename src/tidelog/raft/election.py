"""The roles of a replica that neither leads nor follows, and who gets its vote (KIP-595, KIP-996).

    UNATTACHED   in an epoch whose leader it does not know, or has lost; may have voted in it
    PROSPECTIVE  asks the voters whether they would vote for it (pre-vote), without raising the epoch
    CANDIDATE    has voted for itself in a new epoch and asks for votes
    RESIGNED     led this epoch and does not any more; it voted for itself in it, so it never votes in it again

A pre-vote promises nothing and is not persisted. A vote is: it leaves the process only when the quorum-state file is synced.

The states are values: an event makes another one, and ``Quorum`` takes it.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from tidelog.model.ids import NO_BROKER
from tidelog.model.ports import Rng
from tidelog.raft.voters import ReplicaKey, VoterSet
from tidelog.records.control import Endpoint

BACKOFF_BASE_MS = 100
LAST_EPOCH = 2**31 - 1
"""No election can be held in a later one."""
MANY_EPOCHS = 2**30
"""An election each second for 34 years: beyond this, only epochs close to our own are believed."""
EPOCHS_APART = 10_000


def believable(epoch: int, own: int) -> bool:
    """Whether a replica in epoch ``own`` may adopt ``epoch`` from a message: no election is possible after the last one."""
    return epoch <= MANY_EPOCHS or epoch - own <= EPOCHS_APART


class ElectionTimer:
    """When the next election is due. Replicas use random delays, so that they rarely compete."""

    def __init__(self, timeout_ms: int, backoff_max_ms: int, rng: Rng) -> None:
        self._timeout_ms = timeout_ms
        self._backoff_max_ms = backoff_max_ms
        self._rng = rng
        self._losses = 0

    def deadline_ms(self, now_ms: int) -> int:
        """One to two election timeouts from now."""
        return now_ms + self._timeout_ms + self._rng.randrange(0, self._timeout_ms + 1)

    def backoff_ms(self) -> int:
        """The back-off after a lost election, longer with each one in a row."""
        self._losses += 1
        spread = 2 << min(20, self._losses - 1)
        return min(BACKOFF_BASE_MS * self._rng.randrange(0, spread), self._backoff_max_ms)

    def spread_ms(self, pause_ms: int) -> int:
        """One to six back-offs, before an election that is due at once."""
        return pause_ms + self._rng.randrange(0, pause_ms * 5 + 1)

    def settled(self) -> None:
        """A leader is known: the next lost election counts as the first again."""
        self._losses = 0


class Role(Enum):
    """The role of a replica in its epoch."""

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
"""A resigned leader enters a new epoch as an unattached replica, as a follower, or, alone in its quorum, as a candidate."""


class Ballot(NamedTuple):
    """The votes of one round: each voter's answer, None until it has answered."""

    majority: int
    answers: tuple[tuple[int, bool | None], ...]

    @staticmethod
    def open(voters: VoterSet, me: ReplicaKey) -> Ballot:
        """A ballot with this replica's own vote, if it is a voter."""
        return Ballot(voters.majority, tuple((each, True if each == me.id else None) for each in voters.ids))

    def record(self, voter_id: int, granted: bool) -> Ballot:
        """Adds a voter's answer; a granted vote stays granted."""
        said = tuple((each, granted if each == voter_id and vote is not True else vote) for each, vote in self.answers)
        return self._replace(answers=said)

    @property
    def granted(self) -> bool:
        return sum(vote is True for _, vote in self.answers) >= self.majority

    @property
    def rejected(self) -> bool:
        """No majority is possible any more."""
        return sum(vote is not False for _, vote in self.answers) < self.majority

    @property
    def missing(self) -> tuple[int, ...]:
        return tuple(voter_id for voter_id, vote in self.answers if vote is None)

    @property
    def granting(self) -> tuple[int, ...]:
        return tuple(voter_id for voter_id, vote in self.answers if vote)


class Unattached(NamedTuple):
    """``voted``: the vote given in this epoch. ``leader_id``: the epoch's leader, when it is known but unreachable."""

    deadline_ms: int
    voted: ReplicaKey | None = None
    leader_id: int = NO_BROKER
    leader_endpoints: tuple[Endpoint, ...] = ()

    def grants(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        return _may_vote(self.voted, self.leader_id, candidate, up_to_date, pre_vote)


class Prospective(NamedTuple):
    """Keeps what it knew of the epoch: vote and leader."""

    deadline_ms: int
    ballot: Ballot
    voted: ReplicaKey | None = None
    leader_id: int = NO_BROKER
    leader_endpoints: tuple[Endpoint, ...] = ()

    def grants(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        return _may_vote(self.voted, self.leader_id, candidate, up_to_date, pre_vote)


class Candidate(NamedTuple):
    """``backoff_ms``: set after a lost election; until then it waits before it retries."""

    deadline_ms: int
    ballot: Ballot
    backoff_ms: int | None = None

    def grants(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        return pre_vote and up_to_date


class Resigned(NamedTuple):
    """``preferred``: possible successors, the most complete log first. ``unacknowledged``: voters that have not confirmed the
    end of the epoch."""

    deadline_ms: int
    preferred: tuple[ReplicaKey, ...] = ()
    unacknowledged: tuple[int, ...] = ()

    def acknowledged_by(self, node_id: int) -> Resigned:
        """The voter knows about the end of the epoch."""
        return self._replace(unacknowledged=tuple(each for each in self.unacknowledged if each != node_id))

    def grants(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        return pre_vote and up_to_date


def _may_vote(voted: ReplicaKey | None, leader_id: int, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
    if pre_vote:
        return up_to_date
    if voted is not None:
        # A voter that asks again has the same log, or has lost it: with an emptied disk it must not lead on the strength of an
        # old vote.
        return up_to_date and voted.is_same(candidate)
    return leader_id == NO_BROKER and up_to_date
