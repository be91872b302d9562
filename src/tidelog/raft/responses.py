"""Answers to this replica's own requests: votes are counted, epochs followed, records passed to ``follower_fetch``.

Common to all: an answer of a lower epoch is ignored; a higher epoch is adopted; an answer of the current epoch may name an
unknown leader. After a failed or useless answer, the node is asked again only after a back-off.
"""

from __future__ import annotations

from typing import Any

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_BROKER
from tidelog.protocol.messages.add_raft_voter import AddRaftVoterResponse
from tidelog.protocol.messages.api_versions import ApiVersionsResponse
from tidelog.protocol.messages.begin_quorum_epoch import BeginQuorumEpochResponse
from tidelog.protocol.messages.end_quorum_epoch import EndQuorumEpochResponse
from tidelog.protocol.messages.fetch import FetchResponse
from tidelog.protocol.messages.fetch_snapshot import FetchSnapshotResponse
from tidelog.protocol.messages.remove_raft_voter import RemoveRaftVoterResponse
from tidelog.protocol.messages.update_raft_voter import UpdateRaftVoterResponse
from tidelog.protocol.messages.vote import VoteResponse
from tidelog.raft import follower_fetch, messages, voter_changes
from tidelog.raft.election import Candidate, Prospective, Resigned, Role, believable
from tidelog.raft.follower_state import FollowerState
from tidelog.raft.leader_state import LeaderState
from tidelog.raft.quorum import Quorum
from tidelog.raft.voter_requests import follow
from tidelog.records.control import Endpoint


def error_of(code: int) -> ErrorCode:
    """An unknown error number counts as an error like any other."""
    return ErrorCode(code)


def answered(quorum: Quorum, request_id: int, node_id: int, answer: Any, now_ms: int) -> bool:
    """Handles an answer; False when it was useless."""
    if isinstance(answer, ApiVersionsResponse):
        if quorum.role is Role.LEADER:
            voter_changes.api_versions_answered(quorum, request_id, answer, now_ms)
        return True
    if isinstance(answer, (AddRaftVoterResponse, RemoveRaftVoterResponse)):
        return error_of(answer.error_code) is ErrorCode.NONE
    if error_of(answer.error_code) is not ErrorCode.NONE and not isinstance(answer, UpdateRaftVoterResponse):
        return False
    if isinstance(answer, FetchResponse):
        return _fetch(quorum, answer, now_ms)
    if isinstance(answer, FetchSnapshotResponse):
        return _fetch_snapshot(quorum, answer, now_ms)
    if isinstance(answer, UpdateRaftVoterResponse):
        return _update_voter(quorum, answer, now_ms)
    partition = messages.only_partition(answer)
    if partition is None:
        return False
    error = error_of(partition.error_code)
    handled = _common(quorum, error, partition.leader_id, partition.leader_epoch, answer.node_endpoints, now_ms)
    if handled is not None:
        return handled
    if error is not ErrorCode.NONE:
        return False
    if isinstance(answer, VoteResponse):
        count_vote(quorum, node_id, partition.vote_granted, now_ms)
    elif isinstance(answer, BeginQuorumEpochResponse) and isinstance(quorum.state, LeaderState):
        quorum.state.acknowledged_by(node_id)
    elif isinstance(answer, EndQuorumEpochResponse) and isinstance(quorum.state, Resigned):
        quorum.amend(quorum.state.acknowledged_by(node_id))
    return True


def _common(quorum: Quorum, error: ErrorCode, leader_id: int, epoch: int, nodes: list[Any], now_ms: int) -> bool | None:
    """The part that all answers share. None: continue with the specific part."""
    if epoch < quorum.epoch or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
        return True
    if not believable(epoch, quorum.epoch):
        return False
    name = quorum.config.listener
    endpoints = tuple(Endpoint(name, each.host, each.port) for each in nodes if each.node_id == leader_id)
    before = quorum.epoch, quorum.leader_id
    follow(quorum, leader_id, epoch, endpoints, now_ms, "an answer says so")
    if error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        return True
    if error is ErrorCode.INVALID_VOTER_KEY:
        return True
    if before != (quorum.epoch, quorum.leader_id) and error is not ErrorCode.NONE:
        return True
    return None


def count_vote(quorum: Quorum, node_id: int, granted: bool, now_ms: int) -> None:
    """Counts a voter's answer in a pre-vote or an election."""
    state = quorum.state
    if isinstance(state, Prospective):
        ballot = state.ballot.record(node_id, granted)
        quorum.amend(state._replace(ballot=ballot))
        if ballot.granted:
            quorum.become_candidate(now_ms, "the pre-vote is won")
        elif ballot.rejected:
            lose_prospective(quorum, now_ms, "the pre-vote is lost")
    elif isinstance(state, Candidate):
        candidate = state._replace(ballot=state.ballot.record(node_id, granted))
        if candidate.ballot.rejected and candidate.backoff_ms is None:
            candidate = candidate._replace(backoff_ms=now_ms + quorum.timer.backoff_ms())
            quorum.note("the election is lost")
        quorum.amend(candidate)
        if candidate.ballot.granted:
            quorum.become_leader(now_ms)


def lose_prospective(quorum: Quorum, now_ms: int, why: str) -> None:
    """Returns to the previous state: following the known leader, or looking for one."""
    state = quorum.state
    assert isinstance(state, Prospective), quorum.role
    if state.leader_id != NO_BROKER and state.leader_endpoints:
        quorum.become_follower(quorum.epoch, state.leader_id, state.leader_endpoints, now_ms, why)
    else:
        quorum.become_unattached(quorum.epoch, now_ms, why, leader_id=state.leader_id)


def _fetch(quorum: Quorum, answer: FetchResponse, now_ms: int) -> bool:
    partition = messages.fetched_partition(answer.responses, "partition_index")
    if partition is None:
        return False
    error, leader = error_of(partition.error_code), partition.current_leader
    handled = _common(quorum, error, leader.leader_id, leader.leader_epoch, answer.node_endpoints, now_ms)
    if handled is not None:
        return handled
    if error is not ErrorCode.NONE or leader.leader_id != quorum.leader_id:
        return False
    return follower_fetch.fetched(quorum, answer, now_ms)


def _fetch_snapshot(quorum: Quorum, answer: FetchSnapshotResponse, now_ms: int) -> bool:
    partition = messages.only_partition(answer, "name")
    if partition is None:
        return False
    error, leader = error_of(partition.error_code), partition.current_leader
    handled = _common(quorum, error, leader.leader_id, leader.leader_epoch, answer.node_endpoints, now_ms)
    if handled is not None:
        return handled
    if leader.leader_id != quorum.leader_id:
        return False
    return follower_fetch.fetched_snapshot(quorum, answer, error, now_ms)


def _update_voter(quorum: Quorum, answer: UpdateRaftVoterResponse, now_ms: int) -> bool:
    error, leader = error_of(answer.error_code), answer.current_leader
    handled = _common(quorum, error, leader.leader_id, leader.leader_epoch, [], now_ms)
    if handled is None and error is ErrorCode.NONE and isinstance(quorum.state, FollowerState):
        quorum.amend(quorum.state._replace(told_leader=True))
    return True if handled is None else handled
