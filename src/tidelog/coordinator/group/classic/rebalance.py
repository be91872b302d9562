"""Start and end of a join phase, and the responses to the members.

A rebalance waits until all known members have sent JoinGroup again or the longest rebalance timeout has passed. A group's first
rebalance waits ``group.initial.rebalance.delay.ms`` for more members, and longer while they keep coming. Static members that do
not rejoin in time stay (KIP-345); others are removed. Then the leader gets the metadata of all members and has one more rebalance
timeout to send the assignment. Source: KIP-134, KIP-345, KIP-394; Kafka's consumer rebalance protocol.
"""

from __future__ import annotations

from tidelog.coordinator.group.classic.classic_group import ClassicGroup, GroupState, Member
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.records import group_record
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.model.errors import ErrorCode
from tidelog.model.machine import Token
from tidelog.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from tidelog.protocol.messages.sync_group import SyncGroupResponse

LEAST_EXTENSION_MS = 1_000
"""The shortest extension of a join phase. A member may ask for a rebalance timeout of 0; without a minimum the timer would
spin."""


def join_error(version: int, member_id: str, error: ErrorCode) -> JoinGroupResponse:
    """A refused join. Before v7 the protocol name cannot be null."""
    return JoinGroupResponse(
        error_code=error,
        generation_id=-1,
        protocol_name=None if version >= 7 else "",
        leader="",
        member_id=member_id,
    )


def join_response(
    group: ClassicGroup, member: Member, *, skip_assignment: bool = False, leader: str | None = None
) -> JoinGroupResponse:
    """The current generation as ``member`` sees it: only the leader gets the list of members."""
    assert group.protocol is not None and group.leader is not None
    told_leader = group.leader if leader is None else leader
    members = []
    if member.member_id == told_leader:
        members = [
            JoinGroupResponseMember(member_id=key, group_instance_id=other.instance_id, metadata=other.metadata(group.protocol))
            for key, other in group.members.items()
        ]
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=told_leader,
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=members,
    )


def sync_error(error: ErrorCode) -> SyncGroupResponse:
    """A refused sync."""
    return SyncGroupResponse(error_code=error)


def sync_response(group: ClassicGroup, member: Member) -> SyncGroupResponse:
    """The member's assignment in this generation."""
    return SyncGroupResponse(protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment)


def answer_join(group: ClassicGroup, member: Member, effects: Effects, response: JoinGroupResponse, now_ms: int) -> None:
    """Answers a parked join; the member's session starts now."""
    token = member.join_token
    assert token is not None
    member.join_token = None
    member.is_new = False
    member.deadline_ms = now_ms + member.session_timeout_ms
    effects.reply(token, response)


def begin(group: ClassicGroup, effects: Effects, settings: GroupSettings, now_ms: int, why: str) -> None:
    """Starts a join phase. Members that wait for an assignment must rejoin."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        for member in group.members.values():
            member.assignment = b""
            _release_sync(member, effects, sync_error(ErrorCode.REBALANCE_IN_PROGRESS), now_ms)
    first = group.state is GroupState.EMPTY
    group.move(GroupState.PREPARING_REBALANCE, now_ms, why)
    group.pending_sync = {}
    group.sync_deadline_ms = None
    if first:
        delay = settings.initial_rebalance_delay_ms
        group.initial_delay_left_ms = max(group.rebalance_timeout_ms - delay, 0)
        group.new_member_joined = False
        group.join_deadline_ms = now_ms + delay
    else:
        group.initial_delay_left_ms = None
        group.join_deadline_ms = now_ms + group.rebalance_timeout_ms


def maybe_begin(group: ClassicGroup, effects: Effects, settings: GroupSettings, now_ms: int, why: str) -> None:
    """Starts a join phase unless one is running."""
    if group.state in {GroupState.EMPTY, GroupState.STABLE, GroupState.COMPLETING_REBALANCE}:
        begin(group, effects, settings, now_ms, why)


def maybe_end(group: ClassicGroup, effects: Effects, now_ms: int) -> None:
    """Ends the join phase when all members have joined. The delay before a first rebalance always runs in full."""
    if group.state is GroupState.PREPARING_REBALANCE and group.initial_delay_left_ms is None and group.everybody_joined():
        end(group, effects, now_ms)


def join_deadline_passed(group: ClassicGroup, effects: Effects, settings: GroupSettings, now_ms: int) -> None:
    """The join phase timed out: extend a first rebalance while members still join, otherwise end it with the members present."""
    left = group.initial_delay_left_ms
    if left is None:
        end(group, effects, now_ms)
        return
    if group.new_member_joined and left > 0:
        delay = min(settings.initial_rebalance_delay_ms, left)
        group.new_member_joined = False
        group.initial_delay_left_ms = max(left - delay, 0)
        group.join_deadline_ms = now_ms + delay
        return
    group.initial_delay_left_ms = None
    end(group, effects, now_ms)


def end(group: ClassicGroup, effects: Effects, now_ms: int) -> None:
    """Removes members that did not rejoin, except static ones; the others start a generation."""
    for member in group.not_rejoined():
        if member.instance_id is None:
            group.remove(member.member_id)
    if group.members and not group.elect_joined_leader():
        # Only static members, and none has rejoined: there is no possible leader, so the phase is extended.
        group.join_deadline_ms = now_ms + max(group.rebalance_timeout_ms, LEAST_EXTENSION_MS)
        return
    group.next_generation(now_ms)
    if not group.members:
        effects.records.append(group_record(group))
        return
    for member in group.members.values():
        group.pending_sync[member.member_id] = None
        if member.join_token is None:
            member.deadline_ms = now_ms + member.session_timeout_ms
        else:
            answer_join(group, member, effects, join_response(group, member), now_ms)
    group.sync_deadline_ms = now_ms + group.rebalance_timeout_ms


def sync_deadline_passed(group: ClassicGroup, effects: Effects, settings: GroupSettings, now_ms: int) -> None:
    """Removes members that never sent SyncGroup; the others rejoin."""
    group.sync_deadline_ms = None
    late = list(group.pending_sync)
    if not late or group.state not in {GroupState.COMPLETING_REBALANCE, GroupState.STABLE}:
        return
    for member_id in late:
        _release_sync(group.members[member_id], effects, sync_error(ErrorCode.UNKNOWN_MEMBER_ID), now_ms)
        group.remove(member_id)
    begin(group, effects, settings, now_ms, f"{len(late)} members sent no SyncGroup in time")
    maybe_end(group, effects, now_ms)


def assign(group: ClassicGroup, assignments: dict[str, bytes], effects: Effects, settings: GroupSettings, now_ms: int) -> None:
    """Stores the leader's assignment as a record and sends each waiting member its part. If the record is too large for the
    log, all members get UNKNOWN_SERVER_ERROR and rejoin; other groups are not affected."""
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
    record = group_record(group)
    if record.size > settings.max_record_bytes:
        for member in group.members.values():
            _release_sync(member, effects, sync_error(ErrorCode.UNKNOWN_SERVER_ERROR), now_ms)
        why = f"the assignment takes {record.size} bytes, and {settings.max_record_bytes} fit into a record"
        begin(group, effects, settings, now_ms, why)
        return
    group.move(GroupState.STABLE, now_ms, f"assignment for {len(assignments)} members")
    effects.records.append(record)
    for member in group.members.values():
        _release_sync(member, effects, sync_response(group, member), now_ms)


def _release_sync(member: Member, effects: Effects, response: SyncGroupResponse, now_ms: int) -> None:
    token: Token | None = member.sync_token
    if token is not None:
        member.sync_token = None
        member.deadline_ms = now_ms + member.session_timeout_ms
        effects.reply(token, response)


def release_all(group: ClassicGroup, effects: Effects, error: ErrorCode, now_ms: int) -> None:
    """Answers all parked requests with one error: the coordinator moves, or the group is deleted."""
    for member in group.members.values():
        if member.join_token is not None:
            token, member.join_token = member.join_token, None
            effects.reply(token, join_error(member.join_version, member.member_id, error))
        _release_sync(member, effects, sync_error(error), now_ms)
