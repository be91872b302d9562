"""Members of a streams group that leave or are removed: of their own will, by the end of their session, or because they did not
give up tasks within their rebalance timeout."""

from __future__ import annotations

from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.streams.streams_answer import Answered
from tidelog.coordinator.group.streams.streams_group import LEAVE_EPOCH, MemberState, StreamsGroup
from tidelog.coordinator.group.streams.streams_heartbeat import StreamsBeat, open_group
from tidelog.coordinator.group.streams.streams_records import epoch_record, removal_records
from tidelog.coordinator.group.streams.streams_settings import setting
from tidelog.coordinator.group.streams.streams_target import delayed_target
from tidelog.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse


def leave(c: Coordination, beat: StreamsBeat, effects: Effects) -> None:
    """Answers a heartbeat with epoch -1. KafkaError when there is no such group or member."""
    request = beat.request
    group = open_group(c, request.group_id, create=False).group
    member = group.member(request.member_id)
    if request.shutdown_application and group.shutdown_member is None:
        group.shutdown_member = member.member_id
    remove(group, member.member_id, effects)
    response = StreamsGroupHeartbeatResponse(member_id=member.member_id, member_epoch=LEAVE_EPOCH)
    effects.reply(beat.token, Answered(response, {}))


def remove(group: StreamsGroup, member_id: str, effects: Effects) -> None:
    """Removes a member. The others get its tasks with the next target."""
    effects.records += removal_records(group.group_id, member_id)
    effects.records.append(
        epoch_record(
            group.group_id, group.epoch + 1, group.metadata_hash, group.validated_topology_epoch, group.assignment_configs
        )
    )
    group.deadlines.forget(member_id)


def expire(c: Coordination, group: StreamsGroup, effects: Effects, now_ms: int) -> None:
    """Computes the first target when its delay is over, or removes one member whose session or rebalance timeout has passed. Only
    one step: the next one depends on the records of this one, and is due immediately."""
    deadlines = group.deadlines
    if deadlines.first_assignment_ms is not None and deadlines.first_assignment_ms <= now_ms:
        deadlines.first_assignment_ms = None
        effects.records += delayed_target(c, group, now_ms)
        return
    member_id = _next_expired(group, now_ms)
    if member_id is not None:
        remove(group, member_id, effects)


def _next_expired(group: StreamsGroup, now_ms: int) -> str | None:
    deadlines = group.deadlines
    for member_id in [key for key, deadline_ms in deadlines.sessions.items() if deadline_ms <= now_ms]:
        del deadlines.sessions[member_id]
        if member_id in group.members:
            return member_id
    for member_id, (deadline_ms, epoch) in list(deadlines.rebalances.items()):
        if deadline_ms <= now_ms:
            del deadlines.rebalances[member_id]
            member = group.members.get(member_id)
            if member is not None and member.epoch == epoch:
                return member_id
    return None


def begin_deadlines(c: Coordination, group: StreamsGroup, now_ms: int) -> None:
    """After a load, every member gets a full session and a full rebalance timeout."""
    timeout_ms = setting(c, group.group_id, c.settings.streams_session_timeout)
    for member in group.members.values():
        group.deadlines.sessions[member.member_id] = now_ms + timeout_ms
        if member.state is MemberState.UNREVOKED_TASKS:
            group.deadlines.rebalances[member.member_id] = (now_ms + member.rebalance_timeout_ms, member.epoch)
