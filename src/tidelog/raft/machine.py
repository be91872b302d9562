"""RaftMachine: one replica of the metadata quorum, as a pure machine (KIP-595, KIP-630, KIP-853, KIP-996).

An event goes in, with the time; a list of effects comes out, to be done in order (``effects`` says what that means); then
``deadline_ms`` says when ``tick`` is due. Nothing here reads a clock, a file or a socket. Events:

- ``request``: another node asks; the answer is a ``Reply`` with its token, now or later. ``abandon``: it does not wait any more.
- ``answer`` and ``failed``: what became of a ``Send``.
- ``appended``: the controller, as the leader, put records into the log. ``log_synced``: the disk has it up to there.
- ``snapshot_installed``, ``snapshot_written``, ``log_cleaned``: what became of snapshots.
- ``resign``, ``shut_down``: the leadership is to be given up; the replica is to stop.

A replica that is the only voter leads as soon as it is started: no timer is waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidelog.model.errors import ErrorCode
from tidelog.model.machine import Token
from tidelog.model.ports import Rng
from tidelog.protocol.api_keys import ApiKey
from tidelog.raft import kraft_upgrade, leader_fetch, leader_fetch_snapshot, polling, responses, voter_changes, voter_requests
from tidelog.raft.effects import Effect, Inbound
from tidelog.raft.election import Candidate, Prospective, Resigned, Role
from tidelog.raft.log_shape import NOTHING_LOST, LogEnd, LogShape
from tidelog.raft.quorum import Quorum
from tidelog.raft.quorum_state import QuorumState
from tidelog.raft.raft_config import RaftConfig
from tidelog.raft.snapshots import SnapshotId
from tidelog.raft.voter_history import VoterSets
from tidelog.raft.voters import ReplicaKey, VoterSet

HANDLERS: dict[ApiKey, Callable[[Quorum, Inbound, Any, int], None]] = {
    ApiKey.VOTE: voter_requests.vote,
    ApiKey.BEGIN_QUORUM_EPOCH: voter_requests.begin_quorum_epoch,
    ApiKey.END_QUORUM_EPOCH: voter_requests.end_quorum_epoch,
    ApiKey.FETCH: leader_fetch.fetch,
    ApiKey.FETCH_SNAPSHOT: leader_fetch_snapshot.fetch_snapshot,
    ApiKey.ADD_RAFT_VOTER: voter_changes.add_voter,
    ApiKey.REMOVE_RAFT_VOTER: voter_changes.remove_voter,
    ApiKey.UPDATE_RAFT_VOTER: voter_changes.update_voter,
}
"""The requests that other nodes may send to a replica."""


class RaftMachine:
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
        """``state``: the contents of the quorum-state file; ``sets``: the voters from log and snapshots; ``lost_end``: how far
        the log reached before damage was taken out of it; ``witnesses``: see ``lost_records``."""
        self.quorum = Quorum(
            config, shape=shape, sets=sets, state=state, rng=rng, now_ms=now_ms, lost_end=lost_end, witnesses=witnesses
        )
        self.deadline_ms = now_ms

    # what it is

    @property
    def role(self) -> Role:
        return self.quorum.role

    @property
    def epoch(self) -> int:
        return self.quorum.epoch

    @property
    def leader_id(self) -> int:
        """-1 while it is unknown."""
        return self.quorum.leader_id

    @property
    def is_leader(self) -> bool:
        return self.quorum.role is Role.LEADER

    @property
    def high_watermark(self) -> int:
        """-1 while it is unknown."""
        return self.quorum.log.high_watermark

    @property
    def voters(self) -> VoterSet:
        return self.quorum.log.voters

    @property
    def kraft_version(self) -> int:
        return self.quorum.log.sets.kraft_version

    @property
    def stopped(self) -> bool:
        """After ``shut_down``: all voters know, and there is nothing to wait for."""
        quorum = self.quorum
        state = quorum.state
        tells = quorum.role is Role.LEADER or (isinstance(state, Resigned) and bool(state.unacknowledged))
        return quorum.shut_down_ms is not None and not tells

    # events

    def tick(self, now_ms: int) -> list[Effect]:
        """The first event, and whenever ``deadline_ms`` has come."""
        return self._done(now_ms)

    def request(self, token: Token, api_key: int, version: int, listener: str, message: Any, now_ms: int) -> list[Effect]:
        """One of ``HANDLERS``, in that version, on that listener."""
        HANDLERS[ApiKey(api_key)](self.quorum, Inbound(token, version, listener), message, now_ms)
        return self._done(now_ms)

    def abandon(self, token: Token) -> None:
        """The requesting connection is gone."""
        self.quorum.parked.abandon(token)

    def answer(self, request_id: int, message: Any, now_ms: int) -> list[Effect]:
        """The answer to a ``Send``; an answer that is no longer waited for is ignored."""
        node_id = self.quorum.out.answered(request_id)
        if node_id is None:
            return self._done(now_ms)
        epoch, role = self.quorum.epoch, self.quorum.role
        useful = responses.answered(self.quorum, request_id, node_id, message, now_ms)
        if not useful and (epoch, role) == (self.quorum.epoch, self.quorum.role):
            self.quorum.out.failed(node_id, now_ms)
        return self._done(now_ms)

    def failed(self, request_id: int, now_ms: int, *, refused: bool = False, unsupported: bool = False) -> list[Effect]:
        """A ``Send`` was not answered. ``refused``: nothing listens there. ``unsupported``: not in that version."""
        node_id = self.quorum.out.answered(request_id)
        if node_id is None:
            return self._done(now_ms)
        self.quorum.out.failed(node_id, now_ms)
        state = self.quorum.state
        if unsupported and isinstance(state, Prospective):
            # A voter without pre-vote support: the election is held without one.
            self.quorum.become_candidate(now_ms, f"{node_id} knows no pre-vote")
        elif refused and isinstance(state, Prospective):
            # It will not answer; a pre-vote that cannot be won without it is retried soon.
            responses.count_vote(self.quorum, node_id, False, now_ms)
        elif refused and node_id == self.quorum.leader_id and not isinstance(state, (Candidate, Prospective)):
            polling.leader_unreachable(self.quorum, now_ms)
        elif refused and isinstance(state, Resigned) and self.quorum.shut_down_ms is not None:
            # That process is gone: this replica need not wait for its acknowledgement.
            self.quorum.amend(state.acknowledged_by(node_id))
        change = self.quorum.leading().change if self.is_leader else None
        if change is not None and change.request_id == request_id:
            text = f"Node {node_id} could not be asked which versions it supports."
            voter_changes.drop_change(self.quorum, ErrorCode.REQUEST_TIMED_OUT, text)
        return self._done(now_ms)

    def appended(self, next_offset: int, now_ms: int) -> list[Effect]:
        """The leader's log now ends at ``next_offset``. Only while it leads."""
        assert self.is_leader, self.quorum.role
        self.quorum.log.appended(self.quorum.epoch, next_offset)
        leader_fetch.wake_voters(self.quorum)
        return self._done(now_ms)

    def upgrade_kraft_version(self, now_ms: int) -> list[Effect]:
        """Writes the configured voters to the log. Only while it leads and there is no refusal."""
        kraft_upgrade.upgrade(self.quorum)
        return self._done(now_ms)

    def log_synced(self, end_offset: int, generation: int, now_ms: int) -> list[Effect]:
        """Everything below ``end_offset`` is on disk, as of that generation of the log."""
        if self.quorum.log.was_synced(end_offset, generation) and self.is_leader:
            self.quorum.leading().local_synced(self.quorum.log.shape.synced)
            leader_fetch.advance(self.quorum, now_ms)
        return self._done(now_ms)

    def snapshot_installed(
        self, snapshot_id: SnapshotId, size: int, kraft_version: int, voters: VoterSet | None, now_ms: int
    ) -> list[Effect]:
        """A fetched snapshot has replaced the log. ``voters``: the voter set in it."""
        assert not self.is_leader, self.quorum.role
        self.quorum.log.installed(snapshot_id, size, kraft_version, voters)
        return self._done(now_ms)

    def snapshot_refused(self, now_ms: int) -> list[Effect]:
        """A fetched snapshot was damaged: it is deleted and fetched again."""
        self.quorum.log.install_refused()
        return self._done(now_ms)

    def snapshot_written(self, snapshot_id: SnapshotId, size: int) -> None:
        """A snapshot of this replica's own image was written."""
        self.quorum.log.snapshot_written(snapshot_id, size)

    def log_cleaned(self, start_offset: int, kept: list[SnapshotId]) -> None:
        """Old snapshots, and the log below ``start_offset``, were deleted."""
        self.quorum.log.cleaned(start_offset, kept)

    def resign(self, now_ms: int) -> list[Effect]:
        """Gives up the leadership."""
        if self.is_leader:
            self.quorum.leading().request_resignation()
        return self._done(now_ms)

    def shut_down(self, now_ms: int, timeout_ms: int) -> list[Effect]:
        """The process ends: a leader tells the other voters, see ``stopped``."""
        self.quorum.stop_by(now_ms + timeout_ms)
        return self._done(now_ms)

    def _done(self, now_ms: int) -> list[Effect]:
        self.deadline_ms = polling.poll(self.quorum, now_ms)
        return self.quorum.effects.take()

    def check(self) -> None:
        """Asserts the invariants."""
        self.quorum.check()
