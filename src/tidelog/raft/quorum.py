"""Quorum: one replica's role in the metadata quorum, and the moves between roles.

The moves are here because their order matters: what must survive a crash is persisted first (``Effects``), and parked fetches are
answered when the leadership that they wait on ends. What a message or a timer means is decided in ``voter_requests``,
``leader_fetch``, ``voter_changes``, ``responses``, ``follower_fetch`` and ``polling``; ``machine`` is the door to all of it.

Only the methods here change the role, its state, the epoch and the vote. The state of a role is a value: to change it without a
move, a rule makes another one and hands it to ``amend``. ``LeaderState`` and ``RaftLog`` own their fields in the same way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_BROKER, ZERO_UUID
from tidelog.model.ports import Rng
from tidelog.raft import messages
from tidelog.raft.effects import Effects, LeaderChanged, Persist
from tidelog.raft.election import (
    LAST_EPOCH,
    LEGAL_MOVES,
    Ballot,
    Candidate,
    ElectionTimer,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from tidelog.raft.follower_state import FollowerState
from tidelog.raft.leader_state import LeaderState, successors
from tidelog.raft.log_shape import NOTHING_LOST, LogEnd, LogShape
from tidelog.raft.lost_records import LostRecords
from tidelog.raft.outgoing import Outgoing
from tidelog.raft.parked_fetches import ParkedFetches
from tidelog.raft.quorum_state import QuorumState
from tidelog.raft.raft_config import NEVER, RaftConfig
from tidelog.raft.raft_log import RaftLog
from tidelog.raft.voter_history import VoterSets, VoterSetsView
from tidelog.raft.voters import ReplicaKey, VoterSet
from tidelog.records.control import (
    ChangeVoter,
    ControlType,
    Endpoint,
    LeaderChange,
    kraft_version_value,
    leader_change_value,
    voters_value,
)

STORY = 64

RoleState = Unattached | Prospective | Candidate | Resigned | FollowerState | LeaderState
ROLES = {
    Unattached: Role.UNATTACHED,
    Prospective: Role.PROSPECTIVE,
    Candidate: Role.CANDIDATE,
    LeaderState: Role.LEADER,
    FollowerState: Role.FOLLOWER,
    Resigned: Role.RESIGNED,
}


def deadline_of(state: RoleState) -> int:
    """The next deadline of the role, in ms."""
    if isinstance(state, LeaderState):
        lost = state.deadline_ms()
        return NEVER if lost is None else lost
    return state.deadline_ms


def vote_in(state: RoleState, me: ReplicaKey) -> ReplicaKey | None:
    """The vote of replica ``me`` in its epoch."""
    if isinstance(state, (Unattached, Prospective)):
        return state.voted
    return None if isinstance(state, FollowerState) else me


def first_state(
    config: RaftConfig, voters: VoterSet, state: QuorumState | None, deadline_ms: int, now_ms: int, *, complete: bool = True
) -> RoleState:
    """The initial role from the quorum-state file; ``state`` is None when it is of an earlier epoch. ``complete``: whether the
    log has all that this replica ever confirmed."""
    if state is None:
        return Unattached(deadline_ms)
    if state.leader_id == config.key.id:
        return Resigned(deadline_ms)
    voted = None if state.voted_id == NO_BROKER else ReplicaKey(state.voted_id, state.voted_directory_id)
    is_voter = config.can_vote and voters.find(config.key) is not None
    if voted is not None and voted.is_same(config.key) and is_voter and complete:
        return Candidate(deadline_ms, Ballot.open(voters, config.key))
    endpoints = voters.endpoints_of(state.leader_id)
    if state.leader_id != NO_BROKER and endpoints:
        return _following(config, state.leader_id, endpoints, now_ms)
    return Unattached(deadline_ms, voted, state.leader_id)


def _following(config: RaftConfig, leader_id: int, endpoints: tuple[Endpoint, ...], now_ms: int) -> FollowerState:
    period_ms = config.fetch_timeout_ms
    return FollowerState(leader_id, endpoints, now_ms + period_ms, now_ms + period_ms)


def first_records(config: RaftConfig, sets: VoterSetsView, granting: Sequence[int]) -> list[tuple[ControlType, bytes]]:
    """The first records of a new leader: the leader change, and the missing or changed data about the voters (KAFKA-16532)."""
    voters = tuple(ChangeVoter(node_id) for node_id in sets.voters.ids)
    change = LeaderChange(config.key.id, voters, tuple(ChangeVoter(node_id) for node_id in granting))
    records = [(ControlType.LEADER_CHANGE, leader_change_value(change))]
    if sets.kraft_version >= 1:
        known = sets.voters.find(config.key)
        moved = bool(config.endpoints) and config.can_vote and known is not None and known != config.voter
        if moved or not sets.voters_in_log():
            updated = sets.voters.updating(config.voter) if moved else sets.voters
            assert updated is not None, config.key
            records.append((ControlType.KRAFT_VERSION, kraft_version_value(sets.kraft_version)))
            records.append((ControlType.KRAFT_VOTERS, voters_value(updated.voters)))
    return records


class Quorum:
    """See the module."""

    def __init__(
        self,
        config: RaftConfig,
        *,
        shape: LogShape,
        sets: VoterSets,
        state: QuorumState | None,
        rng: Rng,
        now_ms: int,
        lost_end: LogEnd = NOTHING_LOST,
        witnesses: tuple[ReplicaKey, ...] = (),
    ) -> None:
        self.config = config
        self.me = config.key
        self.effects = Effects()
        self.log = RaftLog(shape, sets, self.effects)
        self.out = Outgoing(config, self.effects, rng)
        self.parked = ParkedFetches()
        self.timer = ElectionTimer(config.election_timeout_ms, config.election_backoff_max_ms, rng)
        self._shut_down_ms: int | None = None
        self._story: deque[str] = deque(maxlen=STORY)
        self.persisted = state
        """What the quorum-state file holds, once every effect so far is done; None before the first."""
        self._epoch = max(state.leader_epoch if state is not None else 0, shape.last_epoch)
        self.lost = LostRecords(lost_end, witnesses, self._epoch)
        """What damage took out of the log. Until the log reaches as far again, or has caught up with a leader, this replica does
        not campaign, nor vote for a candidate that has less."""
        deadline_ms = self.timer.deadline_ms(now_ms)
        current = state if state is not None and state.leader_epoch == self._epoch else None
        complete = shape.end >= lost_end
        self._state: RoleState = first_state(config, sets.voters, current, deadline_ms, now_ms, complete=complete)
        self._role = ROLES[type(self._state)]

    # what it is

    @property
    def role(self) -> Role:
        return self._role

    @property
    def epoch(self) -> int:
        return self._epoch

    @property
    def state(self) -> RoleState:
        """The state of the role."""
        return self._state

    @property
    def shut_down_ms(self) -> int | None:
        """The deadline of a shutdown."""
        return self._shut_down_ms

    @property
    def story(self) -> Sequence[str]:
        """The latest moves, for an operator."""
        return self._story

    @property
    def is_voter(self) -> bool:
        return self.config.can_vote and self.log.voters.find(self.me) is not None

    @property
    def may_campaign(self) -> bool:
        """A voter; or one that the latest change removes, until that is known to be committed: its own vote does not count,
        but its log may be needed to commit that very change."""
        if self._epoch >= LAST_EPOCH or self.log.shape.end < self.lost.end:
            return False
        if self.is_voter:
            return True
        before = self.log.sets.before
        uncommitted = self.log.sets.offset >= self.log.high_watermark
        return self.config.can_vote and uncommitted and before is not None and before.find(self.me) is not None

    @property
    def is_only_voter(self) -> bool:
        return self.is_voter and len(self.log.voters.voters) == 1

    @property
    def leader_id(self) -> int:
        """The epoch's leader; -1 while it is unknown."""
        if self._role is Role.LEADER:
            return self.me.id
        state = self._state
        return state.leader_id if isinstance(state, (FollowerState, Prospective, Unattached)) else NO_BROKER

    @property
    def leader_endpoints(self) -> tuple[Endpoint, ...]:
        if self._role is Role.LEADER:
            return self.config.endpoints
        state = self._state
        return state.leader_endpoints if isinstance(state, (FollowerState, Prospective, Unattached)) else ()

    def leading(self) -> LeaderState:
        """Only while it leads."""
        assert isinstance(self._state, LeaderState), self._role
        return self._state

    # what changes without a move

    def amend(self, state: Unattached | Prospective | Candidate | Resigned | FollowerState) -> None:
        """Replaces the value of the current role. Votes go through ``vote_for``, which persists them."""
        assert type(state) is type(self._state), (state, self._role)
        self._state = state

    def note(self, what: str) -> None:
        """Adds a line to the story."""
        self._story.append(f"epoch {self._epoch}: {what}")

    def stop_by(self, deadline_ms: int) -> None:
        """The process ends."""
        self._shut_down_ms = deadline_ms

    # persisting

    def _persist(self, leader_id: int = NO_BROKER, voted: ReplicaKey | None = None) -> None:
        static = self.log.sets.kraft_version == 0
        state = QuorumState(
            leader_id=leader_id,
            leader_epoch=self._epoch,
            voted_id=NO_BROKER if voted is None else voted.id,
            voted_directory_id=ZERO_UUID if voted is None or static else voted.directory_id,
            voters=self.log.voters.ids if static else (),
            version=0 if static else 1,
        )
        if state != self.persisted:
            self.persisted = state
            self.effects.add(Persist(state))

    # the moves

    def _move(self, state: RoleState, why: str) -> None:
        role = ROLES[type(state)]
        assert role in LEGAL_MOVES[self._role], (self._role, role, why)
        leader_before = self.leader_id, self._role is Role.LEADER
        was_leader = self._role is Role.LEADER
        if was_leader and (change := self.leading().change) is not None and change.inbound is not None:
            text = "The leadership ended before the voter set was changed."
            self.out.reply(change.inbound, change.answer(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, error_message=text))
        self._role, self._state = role, state
        self.note(f"{role.value} ({why})")
        self.out.reset()
        if was_leader or leader_before != (self.leader_id, role is Role.LEADER) or role is Role.FOLLOWER:
            start = state.epoch_start if isinstance(state, LeaderState) else -1
            self.effects.add(LeaderChanged(self.leader_id, self._epoch, start))

    def become_unattached(
        self,
        epoch: int,
        now_ms: int,
        why: str,
        *,
        leader_id: int = NO_BROKER,
        leader_endpoints: tuple[Endpoint, ...] = (),
    ) -> None:
        """A higher epoch, or the same one without a reachable leader, in which a given vote stays given. A running election
        timer keeps running, so that a replica that calls elections again and again cannot keep the others from one."""
        assert epoch >= self._epoch, (epoch, self._epoch)
        voted = vote_in(self._state, self.me) if epoch == self._epoch else None
        running = self._state.deadline_ms if not isinstance(self._state, LeaderState) else 0
        fresh = self.timer.deadline_ms(now_ms)
        deadline_ms = running if now_ms < running < fresh else fresh
        self._epoch = epoch
        self._persist(leader_id, voted)
        self._move(Unattached(deadline_ms, voted, leader_id, leader_endpoints), why)
        answer_parked(self)

    def vote_for(self, candidate: ReplicaKey) -> None:
        """Gives the vote of this epoch: it is on disk before the answer leaves."""
        state = self._state
        assert isinstance(state, (Unattached, Prospective)), self._role
        assert state.voted is None or state.voted.is_same(candidate), (state.voted, candidate)
        self._state = state._replace(voted=candidate)
        self._persist(NO_BROKER, candidate)
        self.note(f"votes for {candidate.id}")

    def become_prospective(self, now_ms: int, why: str) -> None:
        """Asks whether an election would be won."""
        assert self.may_campaign and not self.log.installing, why
        ballot = Ballot.open(self.log.voters, self.me)
        deadline_ms = self.timer.deadline_ms(now_ms)
        state = Prospective(deadline_ms, ballot, vote_in(self._state, self.me), self.leader_id, self.leader_endpoints)
        self._move(state, why)
        if ballot.granted:
            self.become_candidate(now_ms, "no other voter")

    def become_candidate(self, now_ms: int, why: str) -> None:
        """Starts a new epoch with its own vote."""
        assert self.may_campaign and not self.log.installing, why
        self._epoch += 1
        self._persist(NO_BROKER, self.me)
        ballot = Ballot.open(self.log.voters, self.me)
        self._move(Candidate(self.timer.deadline_ms(now_ms), ballot), why)
        if ballot.granted:
            self.become_leader(now_ms)

    def become_leader(self, now_ms: int) -> None:
        """Elected: first persisted, then appended to the log."""
        candidate = self._state
        assert isinstance(candidate, Candidate) and candidate.ballot.granted, self._role
        self._persist(self.me.id)
        timeout_ms = self.config.fetch_timeout_ms * 3 // 2
        state = LeaderState(self.me, self.log.shape.end_offset, timeout_ms, now_ms)
        self._move(state, "elected")
        self.timer.settled()
        self.log.append_control(self._epoch, first_records(self.config, self.log.sets, candidate.ballot.granting))
        state.set_voters(self.log.voters)
        state.local_synced(self.log.shape.synced)

    def become_follower(self, epoch: int, leader_id: int, endpoints: tuple[Endpoint, ...], now_ms: int, why: str) -> None:
        """Follows the leader of ``epoch`` at the given endpoints."""
        assert endpoints and leader_id != self.me.id, (leader_id, endpoints)
        assert epoch >= self._epoch, (epoch, self._epoch)
        self._epoch = epoch
        self._persist(leader_id)
        self.timer.settled()
        self._move(_following(self.config, leader_id, endpoints, now_ms), why)
        answer_parked(self)

    def become_resigned(self, now_ms: int, why: str) -> None:
        """Gives up the leadership and notifies the others, the best successor first."""
        preferred = successors(self.leading(), self.me)
        state = Resigned(self.timer.deadline_ms(now_ms), preferred, tuple(key.id for key in preferred))
        self._move(state, why)
        answer_parked(self)

    def check(self) -> None:
        """Asserts the invariants."""
        self.log.check()
        assert self.persisted is None or self.persisted.leader_epoch <= self._epoch, (self.persisted, self._epoch)
        assert self._role is Role.LEADER or not self.parked, self._role
        if isinstance(self._state, LeaderState):
            assert self.log.shape.last_epoch == self._epoch
            assert self._state.high_watermark is None or self._state.high_watermark > self._state.epoch_start


def answer_parked(quorum: Quorum) -> None:
    """The leadership that fetches wait on has ended; the answers name the epoch that is now."""
    for each in quorum.parked.take_all():
        answer = messages.fetch_answer(quorum, each.inbound, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        quorum.out.reply(each.inbound, answer)
