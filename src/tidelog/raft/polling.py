"""What a replica does by itself: called after each event and at each deadline, it sends what is due in its role."""

from __future__ import annotations

from tidelog.model.ids import NO_BROKER
from tidelog.raft import leader_fetch, messages, voter_changes
from tidelog.raft.effects import Node
from tidelog.raft.election import LAST_EPOCH, Candidate, Prospective, Resigned, Unattached
from tidelog.raft.follower_state import FollowerState
from tidelog.raft.leader_state import LeaderState, unheard
from tidelog.raft.outgoing import voter_node
from tidelog.raft.quorum import Quorum, deadline_of
from tidelog.raft.raft_config import NEVER
from tidelog.raft.responses import lose_prospective
from tidelog.raft.voters import endpoint_on


def poll(quorum: Quorum, now_ms: int) -> int:
    """Does what is due; returns when to call it again at the latest, in ms. One call may pass through several roles."""
    while True:
        role, epoch = quorum.role, quorum.epoch
        deadline_ms = _poll_role(quorum, now_ms)
        if (quorum.role, quorum.epoch) == (role, epoch):
            return deadline_ms


def _poll_role(quorum: Quorum, now_ms: int) -> int:
    state = quorum.state
    if isinstance(state, LeaderState):
        return _leader(quorum, state, now_ms)
    if isinstance(state, FollowerState):
        return _follower(quorum, state, now_ms)
    if isinstance(state, Prospective):
        return _prospective(quorum, state, now_ms)
    if isinstance(state, Candidate):
        return _candidate(quorum, state, now_ms)
    if isinstance(state, Resigned):
        return _resigned(quorum, state, now_ms)
    return _unattached(quorum, state, now_ms)


def _may_campaign(quorum: Quorum) -> bool:
    return quorum.may_campaign and not quorum.log.installing and quorum.shut_down_ms is None


# Looking for a leader


def _unattached(quorum: Quorum, state: Unattached, now_ms: int) -> int:
    if _may_campaign(quorum):
        if quorum.is_only_voter:
            quorum.become_candidate(now_ms, "no other voter")
            return now_ms
        if now_ms >= state.deadline_ms:
            quorum.become_prospective(now_ms, "there is no leader")
            return now_ms
        return min(state.deadline_ms, _ask_around(quorum, now_ms))
    return _ask_around(quorum, now_ms)


def _ask_around(quorum: Quorum, now_ms: int) -> int:
    """Any replica answers a Fetch with the leader."""
    if quorum.log.installing or not quorum.log.is_synced:
        return NEVER
    if quorum.out.any_waiting(now_ms):
        return now_ms + quorum.config.answer_timeout_ms
    place = quorum.out.next_place_to_ask(quorum.log.voters, now_ms)
    if place is not None:
        quorum.out.send(place, messages.fetch_request(quorum), now_ms)
        return now_ms + quorum.config.answer_timeout_ms
    return now_ms + max(1, quorum.config.retry_backoff_ms)


# Elections


def _prospective(quorum: Quorum, state: Prospective, now_ms: int) -> int:
    if now_ms >= state.deadline_ms:
        lose_prospective(quorum, now_ms, "the pre-vote took too long")
        return now_ms
    return min(state.deadline_ms, _ask_for_votes(quorum, state.ballot.missing, now_ms, pre_vote=True))


def _candidate(quorum: Quorum, state: Candidate, now_ms: int) -> int:
    if state.ballot.granted:
        quorum.become_leader(now_ms)
        return now_ms
    if state.backoff_ms is None and now_ms >= state.deadline_ms:
        state = state._replace(backoff_ms=now_ms + quorum.timer.backoff_ms())
        quorum.amend(state)
    if state.backoff_ms is not None:
        if now_ms < state.backoff_ms:
            return state.backoff_ms
        if not _may_campaign(quorum):
            return NEVER
        quorum.become_prospective(now_ms, "the election was lost")
        return now_ms
    return min(state.deadline_ms, _ask_for_votes(quorum, state.ballot.missing, now_ms, pre_vote=False))


def _ask_for_votes(quorum: Quorum, voter_ids: tuple[int, ...], now_ms: int, *, pre_vote: bool) -> int:
    deadline_ms = NEVER
    for voter_id in voter_ids:
        node, voter = voter_node(quorum.log.voters, voter_id, quorum.config.listener), quorum.log.voters.by_id(voter_id)
        if node is None or voter is None:
            continue
        key = next(each for each in quorum.log.voters.keys if each.id == voter_id)
        quorum.out.send(node, messages.vote_request(quorum, key, pre_vote), now_ms)
        deadline_ms = min(deadline_ms, quorum.out.ready_at(voter_id))
    return deadline_ms


# Leading


def _leader(quorum: Quorum, state: LeaderState, now_ms: int) -> int:
    if quorum.shut_down_ms is not None or state.resign_requested or state.quorum_lost(now_ms):
        why = "it stops" if quorum.shut_down_ms is not None else "removed" if state.resign_requested else "no quorum"
        quorum.become_resigned(now_ms, why)
        return now_ms
    state.lead_alone(now_ms)
    voter_changes.expire_change(quorum, now_ms)
    leader_fetch.expire_fetches(quorum, now_ms)
    period_ms = quorum.config.fetch_timeout_ms // 2
    if now_ms >= state.begin_ms:
        for key in unheard(state, quorum.me, now_ms, period_ms):
            node = voter_node(quorum.log.voters, key.id, quorum.config.listener)
            if node is not None:
                quorum.out.send(node, messages.begin_request(quorum, key), now_ms)
        state.begun(now_ms + period_ms)
        state.forget_silent_observers(now_ms)
    waiting = quorum.parked.next_deadline_ms()
    change_ms = NEVER if state.change is None else state.change.deadline_ms
    return min(deadline_of(state), state.begin_ms, NEVER if waiting is None else waiting, change_ms)


def _resigned(quorum: Quorum, state: Resigned, now_ms: int) -> int:
    if quorum.is_only_voter and quorum.shut_down_ms is None:
        quorum.become_candidate(now_ms, "no other voter")
        return now_ms
    deadline_ms = NEVER
    for voter_id in state.unacknowledged:
        node = voter_node(quorum.log.voters, voter_id, quorum.config.listener)
        if node is not None:
            quorum.out.send(node, messages.end_request(quorum, state), now_ms)
            deadline_ms = min(deadline_ms, quorum.out.ready_at(voter_id))
    if quorum.shut_down_ms is None:
        if now_ms >= state.deadline_ms:
            # It voted for itself in this epoch, so whatever follows happens in another one.
            quorum.become_unattached(min(quorum.epoch + 1, LAST_EPOCH), now_ms, "it had resigned")
            if _may_campaign(quorum):
                quorum.become_prospective(now_ms, "there is no leader")
            return now_ms
        return min(deadline_ms, state.deadline_ms)
    return deadline_ms


# Following


def _follower(quorum: Quorum, state: FollowerState, now_ms: int) -> int:
    if quorum.log.installing:
        quorum.amend(state._replace(deadline_ms=max(state.deadline_ms, now_ms + quorum.config.fetch_timeout_ms)))
        return NEVER
    leader = _leader_node(quorum, state)
    if now_ms >= state.deadline_ms:
        if _may_campaign(quorum):
            quorum.become_prospective(now_ms, "nothing is heard of the leader")
            return now_ms
        return _ask_around(quorum, now_ms)
    if not quorum.log.is_synced:
        return state.deadline_ms
    if now_ms >= state.update_voter_ms and quorum.out.ready(leader.id, now_ms):
        # Between two fetches, because a parked one would delay it every time.
        state = state._replace(update_voter_ms=now_ms + quorum.config.fetch_timeout_ms)
        quorum.amend(state)
        _tell_of_ourselves(quorum, state, leader, now_ms)
    if not quorum.is_voter and not quorum.out.ready(leader.id, now_ms):
        if not quorum.out.any_waiting(now_ms):
            return min(state.deadline_ms, _ask_around(quorum, now_ms), quorum.out.ready_at(leader.id))
    elif state.snapshot is not None:
        quorum.out.send(leader, messages.fetch_snapshot_request(quorum, state.snapshot), now_ms)
    else:
        quorum.out.send(leader, messages.fetch_request(quorum), now_ms)
    return min(state.deadline_ms, max(now_ms + 1, quorum.out.ready_at(leader.id)))


def _leader_node(quorum: Quorum, state: FollowerState) -> Node:
    at = endpoint_on(state.leader_endpoints, quorum.config.listener)
    assert at is not None, state
    return Node(state.leader_id, at.host, at.port)


def _tell_of_ourselves(quorum: Quorum, state: FollowerState, leader: Node, now_ms: int) -> None:
    """Checks from time to time that the voter set has this replica's endpoints; or has this replica, if it joins by itself."""
    if not quorum.config.can_vote or not quorum.config.endpoints or quorum.shut_down_ms is not None:
        return
    voters = quorum.log.voters
    if quorum.is_voter:
        stale = not state.told_leader if quorum.log.sets.kraft_version == 0 else voters.find(quorum.me) != quorum.config.voter
        if stale:
            quorum.out.send(leader, messages.update_voter_request(quorum), now_ms)
    elif quorum.config.auto_join and quorum.log.sets.kraft_version >= 1:
        mine = voters.by_id(quorum.me.id)
        if mine is None:
            quorum.out.send(leader, messages.join_request(quorum), now_ms)
        else:
            earlier = next(key for key in voters.keys if key.id == quorum.me.id)
            quorum.out.send(leader, messages.leave_request(quorum, earlier), now_ms)


def leader_unreachable(quorum: Quorum, now_ms: int) -> None:
    """The leader's address refuses connections: it is dead, and there is no need to wait for the fetch timeout. The pre-vote
    keeps this from disturbing a leader that the others still hear."""
    state = quorum.state
    if isinstance(state, FollowerState) and quorum.leader_id != NO_BROKER:
        soon = now_ms + quorum.timer.spread_ms(quorum.config.retry_backoff_ms)
        quorum.amend(state.leader_gone(min(state.deadline_ms, soon)))
