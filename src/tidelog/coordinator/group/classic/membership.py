"""SyncGroup, Heartbeat, LeaveGroup and session expiry of classic groups.

Every request names its generation, and a static member its instance; a request with an old one gets an error and changes nothing.
"""

from __future__ import annotations

from tidelog.coordinator.group.classic import rebalance
from tidelog.coordinator.group.classic.classic_group import ClassicGroup, GroupState, Member
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.model.errors import ErrorCode
from tidelog.model.machine import Token
from tidelog.protocol.messages.sync_group import SyncGroupRequest


def member_error(group: ClassicGroup, member_id: str, instance_id: str | None) -> ErrorCode | None:
    """The error for a request that does not come from a current member; None otherwise."""
    if instance_id is not None:
        current = group.static.get(instance_id)
        if current is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if current != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return None if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


def generation_error(group: ClassicGroup, member_id: str, instance_id: str | None, generation: int) -> ErrorCode | None:
    """Like ``member_error``, and checks the generation as well."""
    error = member_error(group, member_id, instance_id)
    if error is None and generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def touch(member: Member, now_ms: int) -> None:
    """Extends the member's session."""
    member.deadline_ms = now_ms + member.session_timeout_ms


def sync(
    group: ClassicGroup, token: Token, request: SyncGroupRequest, effects: Effects, settings: GroupSettings, now_ms: int
) -> None:
    """A member asks for its assignment; the leader's request carries the assignments of all members."""
    error = _sync_error(group, request)
    if error is not None:
        effects.reply(token, rebalance.sync_error(error))
        return
    member = group.members[request.member_id]
    group.pending_sync.pop(member.member_id, None)
    touch(member, now_ms)
    if group.state is GroupState.STABLE:
        effects.reply(token, rebalance.sync_response(group, member))
        return
    if member.sync_token is not None:
        effects.reply(member.sync_token, rebalance.sync_error(ErrorCode.REBALANCE_IN_PROGRESS))
    member.sync_token = token
    if group.leader == member.member_id:
        assignments = {entry.member_id: bytes(entry.assignment) for entry in request.assignments}
        rebalance.assign(group, assignments, effects, settings, now_ms)


def _sync_error(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode | None:
    error = generation_error(group, request.member_id, request.group_instance_id, request.generation_id)
    if error is not None:
        return error
    if request.protocol_type is not None and request.protocol_type != group.protocol_type:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if request.protocol_name is not None and request.protocol_name != group.protocol:
        # There is no assignment between generations; the state decides what to do then.
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return None


def heartbeat(group: ClassicGroup, member_id: str, instance_id: str | None, generation: int, now_ms: int) -> ErrorCode:
    """Extends the session; the response says whether to rejoin."""
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = generation_error(group, member_id, instance_id, generation)
    if error is not None:
        return error
    touch(group.members[member_id], now_ms)
    return ErrorCode.REBALANCE_IN_PROGRESS if group.state is GroupState.PREPARING_REBALANCE else ErrorCode.NONE


def leave(
    group: ClassicGroup, member_id: str, instance_id: str | None, effects: Effects, settings: GroupSettings, now_ms: int
) -> ErrorCode:
    """Removes one member, by its id or (an administrator) by its instance id alone."""
    if member_id == "" and instance_id is not None:
        known = group.static.get(instance_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = known
    if member_id in group.pending and instance_id is None:
        del group.pending[member_id]
        rebalance.maybe_end(group, effects, now_ms)
        return ErrorCode.NONE
    error = member_error(group, member_id, instance_id)
    if error is not None:
        return error
    remove(group, member_id, effects, settings, now_ms, "left")
    return ErrorCode.NONE


def remove(group: ClassicGroup, member_id: str, effects: Effects, settings: GroupSettings, now_ms: int, why: str) -> None:
    """Removes a member and starts a rebalance of the others."""
    member = group.remove(member_id)
    if member.join_token is not None:
        effects.reply(member.join_token, rebalance.join_error(member.join_version, "", ErrorCode.UNKNOWN_MEMBER_ID))
    if member.sync_token is not None:
        effects.reply(member.sync_token, rebalance.sync_error(ErrorCode.UNKNOWN_MEMBER_ID))
    if group.state in {GroupState.STABLE, GroupState.COMPLETING_REBALANCE}:
        rebalance.begin(group, effects, settings, now_ms, f"{member_id} {why}")
    rebalance.maybe_end(group, effects, now_ms)


def next_deadline(group: ClassicGroup) -> int | None:
    """The group's next deadline."""
    times = [member.deadline_ms for member in group.members.values() if _session_runs(member)]
    times += group.pending.values()
    times += [time for time in (group.join_deadline_ms, group.sync_deadline_ms) if time is not None]
    return min(times, default=None)


def _session_runs(member: Member) -> bool:
    """Whether the session can expire. A member with a parked request is alive, except a new one: it may have given up before
    it learned its id."""
    return member.is_new or (member.join_token is None and member.sync_token is None)


def expire(group: ClassicGroup, effects: Effects, settings: GroupSettings, now_ms: int) -> None:
    """Expires what is due: unused ids, sessions, the join and the sync phase."""
    for member_id in [key for key, lapses in group.pending.items() if lapses <= now_ms]:
        del group.pending[member_id]
        rebalance.maybe_end(group, effects, now_ms)
    for member in [member for member in group.members.values() if member.deadline_ms <= now_ms and _session_runs(member)]:
        if member.member_id in group.members:
            remove(group, member.member_id, effects, settings, now_ms, "sent no heartbeat in time")
    if group.join_deadline_ms is not None and group.join_deadline_ms <= now_ms:
        rebalance.join_deadline_passed(group, effects, settings, now_ms)
    if group.sync_deadline_ms is not None and group.sync_deadline_ms <= now_ms:
        rebalance.sync_deadline_passed(group, effects, settings, now_ms)
