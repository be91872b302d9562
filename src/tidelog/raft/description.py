"""The metadata quorum as an operator sees it: leader, voters, observers and their offsets (KIP-595, DescribeQuorum)."""

from __future__ import annotations

from typing import NamedTuple

from tidelog.model.ids import Uuid
from tidelog.raft.leader_state import LeaderState, Progress
from tidelog.raft.quorum import Quorum
from tidelog.records.control import Endpoint


class ReplicaDescription(NamedTuple):
    """A voter or an observer. ``directory_id`` is zero where voters are known only by id (kraft.version 0); times in ms since
    the epoch, -1 while unknown."""

    id: int
    directory_id: Uuid
    log_end_offset: int
    endpoints: tuple[Endpoint, ...]
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1


class QuorumDescription(NamedTuple):
    """``high_watermark`` is the end of what is committed."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaDescription, ...]
    observers: tuple[ReplicaDescription, ...] = ()


def describe_quorum(quorum: Quorum, clock_ms: int) -> QuorumDescription | None:
    """The leader's view; None unless this replica leads. ``clock_ms`` is the wall clock minus its own clock."""
    state = quorum.state
    if not isinstance(state, LeaderState):
        return None

    def described(each: Progress) -> ReplicaDescription:
        if each.key.id == quorum.me.id:
            end, fetched, caught_up = quorum.log.shape.end_offset, -1, -1
        else:
            end = each.end_offset
            fetched, caught_up = (clock_ms + at if at >= 0 else -1 for at in (each.last_fetch_ms, each.last_caught_up_ms))
        endpoints = quorum.log.voters.endpoints_of(each.key.id)
        return ReplicaDescription(each.key.id, each.key.directory_id, end, endpoints, fetched, caught_up)

    return QuorumDescription(
        quorum.me.id,
        quorum.epoch,
        -1 if state.high_watermark is None else state.high_watermark,
        tuple(described(each) for each in state.voters.values()),
        tuple(described(each) for each in state.observers.values()),
    )
