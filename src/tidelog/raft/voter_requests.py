"""Requests from other voters: Vote, BeginQuorumEpoch, EndQuorumEpoch. Each is answered once the change it caused is on disk.

Errors, in the order of the checks: INCONSISTENT_CLUSTER_ID and INVALID_REQUEST (another topic) for the whole request; then per
partition INVALID_REQUEST (impossible numbers), FENCED_LEADER_EPOCH (an old epoch), INVALID_VOTER_KEY (meant for another disk). A
higher epoch is adopted whatever the answer is.
"""

from __future__ import annotations

from typing import Any

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_BROKER, ZERO_UUID, Uuid
from tidelog.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from tidelog.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from tidelog.protocol.messages.vote import VoteRequest, VoteResponse
from tidelog.raft import messages
from tidelog.raft.effects import Inbound
from tidelog.raft.election import LAST_EPOCH, Prospective, Role, believable
from tidelog.raft.follower_state import FollowerState
from tidelog.raft.leader_state import LeaderState
from tidelog.raft.log_shape import LogEnd
from tidelog.raft.quorum import Quorum, RoleState
from tidelog.raft.voters import ReplicaKey
from tidelog.records.control import Endpoint


def wrong_cluster(quorum: Quorum, cluster_id: str | None) -> bool:
    """A request may omit the cluster id, but not name another one."""
    return cluster_id is not None and cluster_id != quorum.config.cluster_id


def _not_for_us(quorum: Quorum, inbound: Inbound, request: Any, response: type) -> Any | None:
    """The request's partition; None when it was refused."""
    partition = messages.only_partition(request)
    if wrong_cluster(quorum, request.cluster_id):
        quorum.out.reply(inbound, response(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
    elif partition is None:
        quorum.out.reply(inbound, response(error_code=ErrorCode.INVALID_REQUEST))
    else:
        return partition
    return None


def _meant_for(quorum: Quorum, voter_id: int, directory_id: bytes) -> bool:
    """Old versions name no receiver; an id without a directory matches our id."""
    return voter_id == NO_BROKER or (voter_id == quorum.me.id and directory_id in (ZERO_UUID, quorum.me.directory_id))


def vote(quorum: Quorum, inbound: Inbound, request: VoteRequest, now_ms: int) -> None:
    """Sent by prospective replicas (pre-vote) and candidates."""
    asked = _not_for_us(quorum, inbound, request, VoteResponse)
    if asked is None:
        return
    error, granted = ErrorCode.NONE, False
    too_new = asked.last_offset_epoch > asked.replica_epoch or (
        not asked.pre_vote and asked.last_offset_epoch == asked.replica_epoch
    )
    impossible = asked.last_offset < 0 or asked.last_offset_epoch < 0 or asked.replica_id < 0 or too_new
    possible = not impossible and believable(asked.replica_epoch, quorum.epoch)
    candidate = ReplicaKey(asked.replica_id, Uuid(asked.replica_directory_id))
    end = LogEnd(asked.last_offset_epoch, asked.last_offset)
    if possible:
        _learn_from(quorum, candidate, asked.replica_epoch, end, now_ms)
    if not possible:
        error = ErrorCode.INVALID_REQUEST
    elif asked.replica_epoch < quorum.epoch:
        error = ErrorCode.FENCED_LEADER_EPOCH
    else:
        if asked.replica_epoch > quorum.epoch:
            quorum.become_unattached(asked.replica_epoch, now_ms, f"{asked.replica_id} asks for votes")
        if not _meant_for(quorum, request.voter_id, asked.voter_directory_id):
            error = ErrorCode.INVALID_VOTER_KEY
        else:
            up_to_date = end >= max(quorum.log.shape.end, quorum.lost.demand)
            granted = grants(quorum.state, candidate, up_to_date, asked.pre_vote)
            if granted and not asked.pre_vote:
                quorum.vote_for(candidate)
    quorum.out.reply(inbound, messages.vote_answer(quorum, inbound, error, granted))


def _learn_from(quorum: Quorum, candidate: ReplicaKey, epoch: int, end: LogEnd, now_ms: int) -> None:
    """A replica asks for votes in ``epoch``, with that log. It may show what was never committed of what damage took here; for
    that, the voters have to be in an epoch in which none of it can be confirmed any more."""
    quorum.lost = lost = quorum.lost.asked_by(candidate, epoch, end)
    mends = quorum.log.shape.end < lost.end and quorum.epoch == lost.damaged_in < LAST_EPOCH
    hears_a_leader = isinstance(quorum.state, FollowerState) and quorum.state.has_fetched
    if mends and lost.needs_an_epoch and not hears_a_leader:
        quorum.become_unattached(quorum.epoch + 1, now_ms, "all others look for a leader, and this log has lost records")


def grants(state: RoleState, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
    """A leader grants only a pre-vote, and only while nothing of its epoch is committed."""
    if isinstance(state, LeaderState):
        return pre_vote and up_to_date and state.high_watermark is None
    return state.grants(candidate, up_to_date, pre_vote)


def _refused(quorum: Quorum, leader_id: int, epoch: int) -> ErrorCode:
    if epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.INVALID_REQUEST if leader_id < 0 or not believable(epoch, quorum.epoch) else ErrorCode.NONE


def follow(quorum: Quorum, leader_id: int, epoch: int, endpoints: tuple[Endpoint, ...], now_ms: int, why: str) -> None:
    """Follows the leader of ``epoch``, which is ours or later; missing endpoints are looked up.

    An epoch has one leader: a conflicting claim is ignored.
    """
    endpoints = endpoints or quorum.log.voters.endpoints_of(leader_id)
    if epoch > quorum.epoch:
        if leader_id == quorum.me.id:
            return
        if leader_id >= 0 and endpoints:
            quorum.become_follower(epoch, leader_id, endpoints, now_ms, why)
        else:
            quorum.become_unattached(epoch, now_ms, why, leader_id=max(leader_id, NO_BROKER))
    elif _is_news(quorum, leader_id, endpoints):
        quorum.become_follower(epoch, leader_id, endpoints, now_ms, why)


def _is_news(quorum: Quorum, leader_id: int, endpoints: tuple[Endpoint, ...]) -> bool:
    """Whether it is new that ``leader_id`` leads our own epoch."""
    if leader_id < 0 or leader_id == quorum.me.id or not endpoints or quorum.role in (Role.LEADER, Role.RESIGNED):
        return False
    if quorum.leader_id == NO_BROKER:
        return True
    # A prospective replica that knows the leader has lost contact; an unattached one did not know its address.
    known_better = quorum.role is Role.UNATTACHED or len(endpoints) > len(quorum.leader_endpoints)
    return quorum.leader_id == leader_id and quorum.role is not Role.PROSPECTIVE and known_better


def begin_quorum_epoch(quorum: Quorum, inbound: Inbound, request: BeginQuorumEpochRequest, now_ms: int) -> None:
    """Sent by a new leader to all voters, repeatedly to those that do not fetch."""
    asked = _not_for_us(quorum, inbound, request, BeginQuorumEpochResponse)
    if asked is None:
        return
    error = _refused(quorum, asked.leader_id, asked.leader_epoch)
    if error is ErrorCode.NONE:
        endpoints = tuple(Endpoint(each.name, each.host, each.port) for each in request.leader_endpoints)
        if isinstance(quorum.state, Prospective):
            # It had lost contact with this leader, which is alive.
            quorum.amend(quorum.state._replace(leader_id=NO_BROKER))
        follow(quorum, asked.leader_id, asked.leader_epoch, endpoints, now_ms, f"{asked.leader_id} begins the epoch")
        if not _meant_for(quorum, request.voter_id, asked.voter_directory_id):
            error = ErrorCode.INVALID_VOTER_KEY
    quorum.out.reply(inbound, messages.begin_answer(quorum, inbound, error))


def end_quorum_epoch(quorum: Quorum, inbound: Inbound, request: EndQuorumEpochRequest, now_ms: int) -> None:
    """Sent by a leader that resigns: the first of the preferred successors starts an election now, the others later."""
    asked = _not_for_us(quorum, inbound, request, EndQuorumEpochResponse)
    if asked is None:
        return
    error = _refused(quorum, asked.leader_id, asked.leader_epoch)
    if error is ErrorCode.NONE:
        endpoints = tuple(Endpoint(each.name, each.host, each.port) for each in request.leader_endpoints)
        follow(quorum, asked.leader_id, asked.leader_epoch, endpoints, now_ms, f"{asked.leader_id} ends the epoch")
        state = quorum.state
        if isinstance(state, FollowerState) and state.leader_id == asked.leader_id:
            preferred = [ReplicaKey(each.candidate_id, Uuid(each.candidate_directory_id)) for each in asked.preferred_candidates]
            if not preferred:
                preferred = [ReplicaKey(node_id) for node_id in asked.preferred_successors]
            quorum.amend(state.leader_gone(now_ms + turn_ms(quorum, preferred)))
            quorum.note(f"{asked.leader_id} has resigned")
    quorum.out.reply(inbound, messages.end_answer(quorum, inbound, error))


def turn_ms(quorum: Quorum, preferred: list[ReplicaKey]) -> int:
    """The delay of this replica's election: none for the first successor, then doubled for each later one."""
    longest = quorum.config.election_backoff_max_ms
    position = next((index for index, key in enumerate(preferred) if key.is_same(quorum.me)), len(preferred))
    if position == 0 and preferred:
        return 0
    if position >= len(preferred):
        return longest
    return min(longest, (longest >> (len(preferred) - 1)) << (position - 1))
