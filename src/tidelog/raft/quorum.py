"""Quorum: one replica's state in the metadata quorum, and the moves between roles.

The moves are here because their order matters: what must survive a crash is persisted first (``Effects``), and parked fetches
are let go when the leadership that they wait on ends. What a message or a timer means is decided in ``inbound``, ``serving``,
``membership``, ``answers``, ``replication`` and ``polling``; ``machine`` is the door to all of it.
"""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass
from typing import Any

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_BROKER, ZERO_UUID
from tidelog.model.machine import Token
from tidelog.model.ports import Rng
from tidelog.raft import messages
from tidelog.raft.connections import Connections
from tidelog.raft.effects import AppendControl, Effects, HighWatermarkMoved, LeaderChanged, Node, Persist, Reply, Send, Truncate
from tidelog.raft.election import LEGAL_MOVES, Ballot, Candidate, Prospective, Resigned, Role, Unattached
from tidelog.raft.follower_state import FollowerState
from tidelog.raft.leader_state import LeaderState
from tidelog.raft.log_shape import LogEnd, LogShape
from tidelog.raft.parked import ParkedFetches
from tidelog.raft.quorum_state import QuorumState
from tidelog.raft.voter_history import VoterSets
from tidelog.raft.voters import ReplicaKey
from tidelog.records.control import (
    ChangeVoter,
    ControlType,
    Endpoint,
    LeaderChange,
    Voter,
    kraft_version_value,
    leader_change_value,
    voters_value,
)

NEVER = sys.maxsize
STORY = 64
BACKOFF_BASE_MS = 100
LAST_EPOCH = 2**31 - 1
"""No election can be held in a later one."""
MANY_EPOCHS = 2**30
"""An election each second for 34 years: beyond this, only epochs close to our own are believed."""
EPOCHS_APART = 10_000


class QuorumFault(Exception):
    """The quorum has lost what was committed, or says what cannot be: this replica must not go on."""


@dataclass(frozen=True, slots=True)
class RaftConfig:
    """Who this replica is, and the ``controller.quorum.*`` options; times in ms, sizes in bytes."""

    key: ReplicaKey
    cluster_id: str
    endpoints: tuple[Endpoint, ...] = ()
    """This node's controller listeners, the first of them where voters talk to each other."""
    bootstrap: tuple[tuple[str, int], ...] = ()
    """``controller.quorum.bootstrap.servers``: where to ask who leads."""
    can_vote: bool = True
    """Whether the process is a controller: others only observe."""
    auto_join: bool = False
    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    answer_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 1 << 20
    snapshot_max_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True)
class Inbound:
    """A request: who waits for the answer, in which version, and on which listener it came."""

    token: Token
    version: int
    listener: str


RoleState = Unattached | Prospective | Candidate | Resigned | FollowerState | LeaderState


class Quorum:
    """See the module."""

    def __init__(
        self, config: RaftConfig, *, shape: LogShape, sets: VoterSets, state: QuorumState | None, rng: Rng, now_ms: int
    ) -> None:
        self.config = config
        self.me = config.key
        self.rng = rng
        self.shape = shape
        self.sets = sets
        self.effects = Effects()
        self.connections = Connections(config.answer_timeout_ms, config.retry_backoff_ms, rng)
        self.parked = ParkedFetches()
        self.high_watermark = -1
        """-1 until this process has heard of one."""
        self.installing = False
        """A snapshot is being put in the log's place: until that is done there is nothing to campaign with."""
        self.shut_down_ms: int | None = None
        """By when a replica that is stopping has to have stopped."""
        self.story: deque[str] = deque(maxlen=STORY)
        self.persisted = state
        self.losses = 0
        self._bootstrap_turn = 0
        self.epoch = max(state.leader_epoch if state is not None else 0, shape.last_epoch)
        self.role = Role.UNATTACHED
        self.state: RoleState = self._first_state(state, now_ms)

    def _first_state(self, state: QuorumState | None, now_ms: int) -> RoleState:
        """What the quorum-state file makes of a replica that starts."""
        deadline_ms = self.election_deadline(now_ms)
        if state is None or state.leader_epoch < self.epoch:
            return Unattached(deadline_ms)
        if state.leader_id == self.me.id:
            self.role = Role.RESIGNED
            return Resigned(deadline_ms)
        voted = None if state.voted_id == NO_BROKER else ReplicaKey(state.voted_id, state.voted_directory_id)
        if voted is not None and voted.is_same(self.me) and self.is_voter:
            self.role = Role.CANDIDATE
            return Candidate(deadline_ms, Ballot(self.sets.voters, self.me))
        endpoints = self.sets.voters.endpoints_of(state.leader_id)
        if state.leader_id != NO_BROKER and endpoints:
            self.role = Role.FOLLOWER
            return self._follower_state(state.leader_id, endpoints, now_ms)
        return Unattached(deadline_ms, voted, state.leader_id)

    # what it is

    @property
    def is_voter(self) -> bool:
        return self.config.can_vote and self.sets.voters.find(self.me) is not None

    @property
    def may_campaign(self) -> bool:
        """A voter; or one that the latest change removes, as long as that is not known to be committed: its own vote does not
        count, but its log may be needed to commit that very change."""
        if self.epoch >= LAST_EPOCH:
            return False
        if self.is_voter:
            return True
        before = self.sets.before
        uncommitted = self.sets.offset >= self.high_watermark
        return self.config.can_vote and uncommitted and before is not None and before.find(self.me) is not None

    @property
    def is_only_voter(self) -> bool:
        return self.is_voter and len(self.sets.voters.voters) == 1

    @property
    def leader_id(self) -> int:
        """The epoch's leader; -1 while it is not known."""
        if self.role is Role.LEADER:
            return self.me.id
        state = self.state
        return state.leader_id if isinstance(state, (FollowerState, Prospective, Unattached)) else NO_BROKER

    @property
    def leader_endpoints(self) -> tuple[Endpoint, ...]:
        if self.role is Role.LEADER:
            return self.config.endpoints
        state = self.state
        return state.leader_endpoints if isinstance(state, (FollowerState, Prospective, Unattached)) else ()

    def leading(self) -> LeaderState:
        assert isinstance(self.state, LeaderState), self.role
        return self.state

    def following(self) -> FollowerState:
        assert isinstance(self.state, FollowerState), self.role
        return self.state

    def deadline_of_role(self) -> int:
        state = self.state
        if isinstance(state, LeaderState):
            lost = state.deadline_ms()
            return NEVER if lost is None else lost
        return state.deadline_ms

    # time

    def election_deadline(self, now_ms: int) -> int:
        timeout_ms = self.config.election_timeout_ms
        return now_ms + timeout_ms + self.rng.randrange(0, timeout_ms + 1)

    def election_backoff(self) -> int:
        """After a lost election: longer with each one in a row, and never the same for all."""
        self.losses += 1
        spread = 2 << min(20, self.losses - 1)
        return min(BACKOFF_BASE_MS * self.rng.randrange(0, spread), self.config.election_backoff_max_ms)

    def believes(self, epoch: int) -> bool:
        """Whether ``epoch``, which somebody names, can be: who moved to the last one could never hold an election again."""
        return epoch <= MANY_EPOCHS or epoch - self.epoch <= EPOCHS_APART

    # output

    def reply(self, inbound: Inbound, response: Any) -> None:
        self.effects.add(Reply(inbound.token, response))

    def send(self, to: Node, request: Any, now_ms: int) -> int:
        """Sends it if the node may be asked now; the request's id, or 0."""
        if not self.connections.ready(to.id, now_ms):
            return 0
        request_id = self.connections.sent(to.id, now_ms)
        self.effects.add(Send(request_id, to, request))
        return request_id

    def voter_node(self, node_id: int) -> Node | None:
        at = self.sets.voters.endpoint_of(node_id)
        return None if at is None else Node(node_id, at.host, at.port)

    def next_place_to_ask(self, now_ms: int) -> Node | None:
        """A bootstrap server, or without any a voter, that may be asked who leads; each in turn."""
        places = [Node(-2 - index, host, port) for index, (host, port) in enumerate(self.config.bootstrap)]
        if not places:
            nodes = (self.voter_node(node_id) for node_id in self.sets.voters.ids if node_id != self.me.id)
            places = [node for node in nodes if node is not None]
        for _ in range(len(places)):
            self._bootstrap_turn = (self._bootstrap_turn + 1) % len(places)
            place = places[self._bootstrap_turn]
            if self.connections.ready(place.id, now_ms):
                return place
        return None

    # persisting

    def _persist(self, leader_id: int = NO_BROKER, voted: ReplicaKey | None = None) -> None:
        static = self.sets.kraft_version == 0
        state = QuorumState(
            leader_id=leader_id,
            leader_epoch=self.epoch,
            voted_id=NO_BROKER if voted is None else voted.id,
            voted_directory_id=ZERO_UUID if voted is None or static else voted.directory_id,
            voters=self.sets.voters.ids if static else (),
            version=0 if static else 1,
        )
        if state != self.persisted:
            self.persisted = state
            self.effects.add(Persist(state))

    def _voted(self) -> ReplicaKey | None:
        state = self.state
        if isinstance(state, (Unattached, Prospective)):
            return state.voted
        return None if isinstance(state, FollowerState) else self.me

    # the moves

    def _move(self, role: Role, state: RoleState, why: str) -> None:
        assert role in LEGAL_MOVES[self.role], (self.role, role, why)
        leader_before = self.leader_id, self.role is Role.LEADER
        was_leader = self.role is Role.LEADER
        if was_leader:
            self._stop_leading()
        self.role, self.state = role, state
        self.story.append(f"epoch {self.epoch}: {role.value} ({why})")
        self.connections.reset()
        if was_leader or leader_before != (self.leader_id, role is Role.LEADER) or role is Role.FOLLOWER:
            start = state.epoch_start if isinstance(state, LeaderState) else -1
            self.effects.add(LeaderChanged(self.leader_id, self.epoch, start))

    def _stop_leading(self) -> None:
        state = self.leading()
        if state.change is not None:
            state.change.refuse(self, ErrorCode.NOT_LEADER_OR_FOLLOWER, "The leadership ended before the voter set was changed.")
            state.change = None

    def let_parked_go(self) -> None:
        """The leadership they wait on has ended; said in the epoch that is now."""
        for each in self.parked.take_all():
            self.reply(each.inbound, messages.fetch_answer(self, each.inbound, ErrorCode.NOT_LEADER_OR_FOLLOWER))

    def become_unattached(
        self,
        epoch: int,
        now_ms: int,
        why: str,
        *,
        leader_id: int = NO_BROKER,
        leader_endpoints: tuple[Endpoint, ...] = (),
    ) -> None:
        """A higher epoch, or the same one without a reachable leader; then the vote that was given in it stays given. An
        election timer that runs goes on running: whoever calls for elections again and again must not keep the others from
        having one."""
        assert epoch >= self.epoch, (epoch, self.epoch)
        voted = self._voted() if epoch == self.epoch else None
        running = self.deadline_of_role() if not isinstance(self.state, LeaderState) else 0
        fresh = self.election_deadline(now_ms)
        deadline_ms = running if now_ms < running < fresh else fresh
        self.epoch = epoch
        self._persist(leader_id, voted)
        self._move(Role.UNATTACHED, Unattached(deadline_ms, voted, leader_id, leader_endpoints), why)
        self.let_parked_go()

    def vote_for(self, candidate: ReplicaKey) -> None:
        """The vote of this epoch is given: it is safe before the answer leaves."""
        state = self.state
        assert isinstance(state, (Unattached, Prospective)), self.role
        assert state.voted is None or state.voted.is_same(candidate), (state.voted, candidate)
        state.voted = candidate
        self._persist(NO_BROKER, candidate)
        self.story.append(f"epoch {self.epoch}: votes for {candidate.id}")

    def become_prospective(self, now_ms: int, why: str) -> None:
        """Ask whether an election would be won."""
        assert self.may_campaign and not self.installing, why
        ballot = Ballot(self.sets.voters, self.me)
        deadline_ms = self.election_deadline(now_ms)
        state = Prospective(deadline_ms, ballot, self._voted(), self.leader_id, self.leader_endpoints)
        self._move(Role.PROSPECTIVE, state, why)
        if ballot.granted:
            self.become_candidate(now_ms, "no other voter")

    def become_candidate(self, now_ms: int, why: str) -> None:
        """A new epoch, with the own vote."""
        assert self.may_campaign and not self.installing, why
        self.epoch += 1
        self._persist(NO_BROKER, self.me)
        ballot = Ballot(self.sets.voters, self.me)
        self._move(Role.CANDIDATE, Candidate(self.election_deadline(now_ms), ballot), why)
        if ballot.granted:
            self.become_leader(now_ms)

    def become_leader(self, now_ms: int) -> None:
        """Elected: said to the disk, then to the log."""
        candidate = self.state
        assert isinstance(candidate, Candidate) and candidate.ballot.granted, self.role
        self._persist(self.me.id)
        timeout_ms = self.config.fetch_timeout_ms * 3 // 2
        state = LeaderState(self.me, self.shape.end_offset, timeout_ms, now_ms + timeout_ms, now_ms)
        self._move(Role.LEADER, state, "elected")
        self.losses = 0
        self.append_control(self._first_records(candidate.ballot.granting))
        state.set_voters(self.sets.voters)
        state.local_synced(self.shape.synced)

    def _first_records(self, granting: tuple[int, ...]) -> list[tuple[ControlType, bytes]]:
        """The leader change; and what the log has still to say of the voters: all of it (KAFKA-16532), or what is not true any
        more of this one."""
        voters = tuple(ChangeVoter(node_id) for node_id in self.sets.voters.ids)
        change = LeaderChange(self.me.id, voters, tuple(ChangeVoter(node_id) for node_id in granting))
        records = [(ControlType.LEADER_CHANGE, leader_change_value(change))]
        if self.sets.kraft_version >= 1:
            mine = self.own_entry()
            moved = bool(self.config.endpoints) and self.is_voter and self.sets.voters.find(self.me) != mine
            if moved or not self.sets.voters_in_log():
                updated = self.sets.voters.updating(mine) if moved else self.sets.voters
                assert updated is not None, self.me
                records.append((ControlType.KRAFT_VERSION, kraft_version_value(self.sets.kraft_version)))
                records.append((ControlType.KRAFT_VOTERS, voters_value(updated.voters)))
        return records

    def own_entry(self) -> Voter:
        """What the voter set should say of this replica."""
        return Voter(self.me.id, self.me.directory_id, self.config.endpoints)

    def append_control(self, records: list[tuple[ControlType, bytes]]) -> int:
        """As the leader, one batch; the last offset."""
        base = self.shape.end_offset
        self.shape.append(self.epoch, base, base + len(records))
        self.effects.add(AppendControl(base, self.epoch, tuple(records), self.shape.generation))
        messages.note_control(self.sets, base, records)
        return base + len(records) - 1

    def become_follower(self, epoch: int, leader_id: int, endpoints: tuple[Endpoint, ...], now_ms: int, why: str) -> None:
        """Somebody leads ``epoch``, and says where."""
        assert endpoints and leader_id != self.me.id, (leader_id, endpoints)
        assert epoch >= self.epoch, (epoch, self.epoch)
        self.epoch = epoch
        self._persist(leader_id)
        self.losses = 0
        self._move(Role.FOLLOWER, self._follower_state(leader_id, endpoints, now_ms), why)
        self.let_parked_go()

    def _follower_state(self, leader_id: int, endpoints: tuple[Endpoint, ...], now_ms: int) -> FollowerState:
        period_ms = self.config.fetch_timeout_ms
        return FollowerState(leader_id, endpoints, now_ms + period_ms, now_ms + period_ms)

    def become_resigned(self, now_ms: int, why: str) -> None:
        """The leadership is given up; the others are told, the best of them first."""
        preferred = self.leading().successors()
        state = Resigned(self.election_deadline(now_ms), preferred, [key.id for key in preferred])
        self._move(Role.RESIGNED, state, why)
        self.let_parked_go()

    # the log

    def truncate(self, offset: int) -> None:
        if offset < self.high_watermark:
            raise QuorumFault(
                f"the leader {self.leader_id} of epoch {self.epoch} asks to cut the metadata log at {offset}, below what "
                f"is committed ({self.high_watermark}): a majority of the voters has lost its log. Restore it before going on"
            )
        self.shape.truncate(offset)
        self.sets.truncate(offset)
        self.effects.add(Truncate(offset, self.shape.generation))

    def raise_high_watermark(self, offset: int) -> None:
        """It never goes back."""
        if offset > self.high_watermark:
            self.high_watermark = offset
            self.effects.add(HighWatermarkMoved(offset))

    @property
    def end(self) -> LogEnd:
        return self.shape.end

    def check(self) -> None:
        """The invariants."""
        self.shape.check()
        assert self.high_watermark <= self.shape.end_offset, (self.high_watermark, self.shape.end_offset)
        assert self.persisted is None or self.persisted.leader_epoch <= self.epoch, (self.persisted, self.epoch)
        assert self.role is Role.LEADER or not self.parked, self.role
        if isinstance(self.state, LeaderState):
            assert self.shape.last_epoch == self.epoch
            assert self.state.high_watermark is None or self.state.high_watermark > self.state.epoch_start
