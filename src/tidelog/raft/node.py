"""RaftNode: the consensus part of a metadata quorum, as a pure machine. So far for the quorum of one.

An event goes in, an Outcome comes out; whoever runs the node does what it says, in this order: ``persist`` is written to
quorum-state and synced, then ``append`` goes to the log. What the log has synced comes back as ``synced``. The sole voter
elects itself in a new epoch at each start: every leadership has an epoch of its own, and (epoch, offset) names a record for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tidelog.metadata.records import MetadataLogError
from tidelog.model.ids import uuid_to_text
from tidelog.raft.quorum_state import QuorumState
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


class Role(Enum):
    """What a replica is in its epoch."""

    RESIGNED = "resigned"
    LEADER = "leader"


LEGAL_MOVES = {Role.RESIGNED: frozenset({Role.LEADER}), Role.LEADER: frozenset({Role.RESIGNED})}
"""A restarted leader is RESIGNED in its old epoch until it is elected in a new one."""


@dataclass(frozen=True, slots=True)
class RaftOutcome:
    """``persist`` first, then ``append`` (control records: type and value, one batch) in ``epoch``."""

    epoch: int
    persist: QuorumState | None = None
    append: tuple[tuple[ControlType, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class VoterHistory:
    """What log and snapshots say about the quorum.

    ``voters`` None: nothing, the set is the configured one and kraft.version 0. ``in_log``: said by the log or by a snapshot of
    it, not only by the 0-0 checkpoint that ``format`` wrote, which a leader has to bring into the log (KAFKA-16532).
    """

    kraft_version: int = 0
    voters: VoterSet | None = None
    in_log: bool = False


class RaftNode:
    """One replica of the metadata quorum."""

    def __init__(
        self,
        key: ReplicaKey,
        *,
        history: VoterHistory,
        configured: VoterSet,
        state: QuorumState | None,
        log_end: tuple[int, int],
        endpoints: tuple[Endpoint, ...] = (),
    ) -> None:
        """``log_end`` is (epoch of the last batch, end offset); ``endpoints`` are this node's controller listeners.

        MetadataLogError unless this replica is the only voter: what a quorum of several decided is not ours to continue.
        """
        self.key = key
        self.kraft_version = history.kraft_version
        self.voters = history.voters or configured
        self._voters_in_log = history.in_log or history.voters is None
        self._endpoints = endpoints
        self._check_sole_voter()
        self.epoch = max(state.leader_epoch if state is not None else 0, log_end[0], 0)
        self.role = Role.RESIGNED
        self.high_watermark = 0
        """Every offset below it is committed."""
        self._epoch_start = log_end[1]

    def _check_sole_voter(self) -> None:
        me = f"node {self.key.id} with directory id {uuid_to_text(self.key.directory_id)}"
        if self.voters.find(self.key) is None:
            known = ", ".join(f"{v.voter_id} ({uuid_to_text(v.directory_id)})" for v in self.voters.voters) or "none"
            raise MetadataLogError(
                f"the metadata quorum has no voter {me}; its voters are: {known}. Start it with the node.id and the "
                "metadata directory it was formatted with"
            )
        if len(self.voters.voters) > 1:
            raise MetadataLogError(
                f"the metadata quorum has the voters {', '.join(map(str, self.voters.ids))}, and this node serves a quorum "
                "of one. With the software that wrote it, remove the other voters (kafka-metadata-quorum remove-controller)"
            )

    def start(self) -> RaftOutcome:
        """Elects itself in a new epoch: the vote, then the epoch's first batch."""
        self._move(Role.LEADER)
        self.epoch += 1
        static = self.kraft_version == 0
        persist = QuorumState(
            leader_id=self.key.id,
            leader_epoch=self.epoch,
            voters=self.voters.ids if static else (),
            version=0 if static else 1,
        )
        members = tuple(ChangeVoter(voter.voter_id, voter.directory_id) for voter in self.voters.voters)
        append = [(ControlType.LEADER_CHANGE, leader_change_value(LeaderChange(self.key.id, members, members)))]
        if not static:
            append += self._voter_records()
        return RaftOutcome(self.epoch, persist, tuple(append))

    def _voter_records(self) -> list[tuple[ControlType, bytes]]:
        """What the log has still to say about the voters: all of it, or that this one listens elsewhere now."""
        mine = self.voters.find(self.key)
        assert mine is not None
        moved = bool(self._endpoints) and mine.endpoints != self._endpoints
        if moved:
            self.voters = self.voters.with_endpoints(self.key, self._endpoints)
        records = []
        if not self._voters_in_log:
            records.append((ControlType.KRAFT_VERSION, kraft_version_value(self.kraft_version)))
        if moved or not self._voters_in_log:
            records.append((ControlType.KRAFT_VOTERS, voters_value(self.voters.voters)))
        self._voters_in_log = True
        return records

    def synced(self, end_offset: int) -> int:
        """Everything below ``end_offset`` is on this voter's disk; the high watermark. For a sole voter they are the same."""
        assert self.role is Role.LEADER, self.role
        assert end_offset >= self.high_watermark, (end_offset, self.high_watermark)
        if end_offset > self._epoch_start:
            self.high_watermark = end_offset
        return self.high_watermark

    def _move(self, role: Role) -> None:
        assert role in LEGAL_MOVES[self.role], (self.role, role)
        self.role = role

    def check(self) -> None:
        """The invariants."""
        assert self.voters.find(self.key) is not None
        assert self.role is not Role.LEADER or self.epoch > 0
