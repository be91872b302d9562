"""Members of a consumer group that are removed by timeout: of their session, of a rebalance, of a classic join or sync (KIP-848).

A session lasts ``group.consumer.session.timeout.ms``, or the group's own ``consumer.session.timeout.ms``, from the last
heartbeat.
"""

from __future__ import annotations

from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup, MemberState
from tidelog.coordinator.group.consumer.consumer_leaving import remove
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.group_registry import Coordination


def expire(c: Coordination, group: ConsumerGroup, effects: Effects, now_ms: int) -> None:
    """Removes one member whose session, rebalance, join or sync timeout has passed. Only one: the next removal depends on the
    records of this one, and is due immediately."""
    member_id = _next_expired(group, now_ms)
    if member_id is not None:
        remove(c, group, [member_id], effects, now_ms)
    group.timers.look_again()


def _next_expired(group: ConsumerGroup, now_ms: int) -> str | None:
    timers = group.timers
    for timer in (timers.sessions, timers.joins, timers.syncs):
        for member_id in [key for key, deadline_ms in timer.items() if deadline_ms <= now_ms]:
            del timer[member_id]
            if member_id in group.members:
                return member_id
    for member_id, (deadline_ms, epoch) in list(timers.rebalances.items()):
        if deadline_ms <= now_ms:
            del timers.rebalances[member_id]
            member = group.members.get(member_id)
            if member is not None and member.epoch == epoch:
                return member_id
    return None


def begin_timers(c: Coordination, group: ConsumerGroup, now_ms: int) -> None:
    """After a load, every member gets a full session and a full rebalance timeout."""
    timeout_ms = c.session_timeout_ms(group.group_id)
    for member in group.members.values():
        group.timers.arm(group.timers.sessions, member.member_id, now_ms + timeout_ms)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            group.timers.arm_rebalance(member.member_id, now_ms + member.rebalance_timeout_ms, member.epoch)
