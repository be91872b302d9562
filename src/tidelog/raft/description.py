"""The metadata quorum as an operator sees it: who leads, who votes, and how far everybody is (KIP-595, DescribeQuorum)."""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.model.ids import Uuid
from tidelog.raft.node import RaftNode
from tidelog.records.control import Endpoint


@dataclass(frozen=True, slots=True)
class ReplicaDescription:
    """One voter. ``directory_id`` is zero where voters are known by their id alone (kraft.version 0)."""

    id: int
    directory_id: Uuid
    log_end_offset: int
    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    """``high_watermark`` is the end of what is committed."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaDescription, ...]


def describe_sole_voter(raft: RaftNode, log_end_offset: int) -> QuorumDescription:
    """A quorum of one: its leader is ``raft``, whose log ends at ``log_end_offset``."""
    voters = tuple(
        ReplicaDescription(each.voter_id, Uuid(each.directory_id), log_end_offset, each.endpoints) for each in raft.voters.voters
    )
    return QuorumDescription(raft.key.id, raft.epoch, raft.high_watermark, voters)
