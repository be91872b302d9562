"""Leaving a consumer group: on request, or temporarily (static members). Timeouts are in ``session_expiry``.

The member's tombstones and the new group epoch are recorded immediately; the other members get its partitions with their next
heartbeats. When the last member of the consumer protocol leaves, the group may turn back into a classic one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidelog.coordinator.group.consumer.consumer_group import STATIC_LEAVE_EPOCH, ConsumerGroup
from tidelog.coordinator.group.consumer.consumer_heartbeat import Beat
from tidelog.coordinator.group.consumer.consumer_records import current_record, epoch_record, regex_tombstone, removal_records
from tidelog.coordinator.group.consumer.heartbeat_validation import known_static
from tidelog.coordinator.group.consumer.regex_refresh import dropped_regexes
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.migration.migration import downgrade, may_downgrade
from tidelog.coordinator.group.records import GroupRecord
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse


def leave(c: Coordination, beat: Beat, effects: Effects, now_ms: int) -> None:
    """Answers a heartbeat with epoch -1 or -2. KafkaError when there is no such group or member."""
    request = beat.request
    if request.group_id not in c.groups:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
    group = c.consumer(request.group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} is not a consumer group.")
    if request.instance_id is None:
        member = group.member(request.member_id)
    else:
        member = known_static(group, request.member_id, request.instance_id)
    if request.instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH:
        # It comes back with epoch 0, so the partitions that it keeps count as assigned at the start.
        kept = {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.assigned.items()}
        away = replace(member, epoch=STATIC_LEAVE_EPOCH, assigned=kept, revoking={})
        effects.records.append(current_record(group.group_id, away))
    else:
        remove(c, group, [member.member_id], effects, now_ms)
    effects.reply(beat.token, ConsumerGroupHeartbeatResponse(member_id=member.member_id, member_epoch=request.member_epoch))


def remove(c: Coordination, group: ConsumerGroup, member_ids: Sequence[str], effects: Effects, now_ms: int) -> None:
    """Removes members."""
    if not member_ids:
        return
    records: list[GroupRecord] = []
    if may_downgrade(c, group, member_ids):
        why = f"Group {group.group_id} becomes classic: its last member of the consumer protocol left."
        if downgrade(c, group, member_ids, None, why, records, effects, now_ms):
            effects.records += records
            return
    leaving = [group.members[member_id] for member_id in member_ids]
    for member_id in member_ids:
        records += removal_records(group.group_id, member_id)
    stay = group.members_with(None, member_ids).values()
    records += [regex_tombstone(group.group_id, pattern) for pattern in dropped_regexes(group, leaving)]
    metadata_hash = c.topics.hash_of(group.subscribed_topics(stay))
    records.append(epoch_record(group.group_id, group.epoch + 1, metadata_hash))
    for member_id in member_ids:
        group.timers.forget(member_id)
    effects.records += records
