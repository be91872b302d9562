"""ConsumerGroupHeartbeat: joins a member, extends its session, takes its report and returns its assignment.

Three steps, each with its records, in Kafka's order: the member and its subscription, and the group's epoch if that changed; the
target assignment, if it is behind the group's epoch; the member's reconciliation. All decisions use the state before the request;
the state changes when the records are replayed. Source: KIP-848.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from tidelog.coordinator.group.consumer.consumer_group import JOIN_EPOCH, ConsumerGroup, ConsumerMember, MemberState, Owned
from tidelog.coordinator.group.consumer.consumer_records import (
    current_record,
    epoch_record,
    member_record,
    partition_metadata_tombstone,
    removal_records,
    target_record,
)
from tidelog.coordinator.group.consumer.heartbeat_validation import check_epoch, check_released, check_room, known_static
from tidelog.coordinator.group.consumer.reconciliation import Reported, Target, reconcile
from tidelog.coordinator.group.consumer.regex_refresh import RegexChange, change_regex
from tidelog.coordinator.group.consumer.target_assignment import NewTarget, compute_target, last_target, may_compute
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.migration.migration import Opening, open_group
from tidelog.coordinator.group.records import GroupRecord
from tidelog.coordinator.group.topic_metadata import Describable
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.machine import Token
from tidelog.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    RequestTopicPartitions,
    ResponseTopicPartitions,
)


class Beat(NamedTuple):
    """A heartbeat with what its connection knows about the client."""

    token: Token
    client_id: str
    client_host: str
    request: ConsumerGroupHeartbeatRequest
    describable: Describable | None = None
    """The topics that a pattern of this client may match; None: any."""


class Change(NamedTuple):
    """A member before and after a request, and the partitions that it reports to read."""

    member: ConsumerMember
    updated: ConsumerMember
    reported: Reported | None
    describable: Describable | None = None


def heartbeat(c: Coordination, beat: Beat, effects: Effects, now_ms: int) -> None:
    """Answers a heartbeat that is not a leave. A KafkaError refuses it; then nothing has changed."""
    request = beat.request
    joins = request.member_epoch == JOIN_EPOCH
    opening = open_group(c, request.group_id, create=joins, now_ms=now_ms)
    group = opening.group
    records = list(opening.records)
    check_room(group, request.member_id, c.settings.consumer_max_size)
    member_id = request.member_id or c.new_member_id()
    reported = read_reported(request.topic_partitions)
    if request.instance_id is None:
        member = ConsumerMember(member_id) if joins and member_id not in group.members else group.member(member_id)
        check_epoch(member, request.member_epoch, reported)
    elif joins:
        member = join_static(group, member_id, request.instance_id, classic=False, records=records)
    else:
        member = known_static(group, member_id, request.instance_id)
        check_epoch(member, request.member_epoch, reported)
    change = Change(member, _updated(member, beat), reported, beat.describable)
    updated = advance(c, group, change, records, now_ms)
    check_sizes(c, records)
    take_over(c, opening, effects, now_ms)
    group.timers.arm(group.timers.sessions, member_id, now_ms + c.session_timeout_ms(group.group_id))
    effects.records += records
    effects.reply(beat.token, _answer(c, request, member, updated))


def _updated(member: ConsumerMember, beat: Beat) -> ConsumerMember:
    request = beat.request
    names = request.subscribed_topic_names
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        topics=member.topics if names is None else tuple(sorted(set(names))),
        regex=member.regex if request.subscribed_topic_regex is None else request.subscribed_topic_regex,
        client_id=beat.client_id,
        client_host=beat.client_host,
        classic=None,
    )


def read_reported(topics: list[RequestTopicPartitions] | None) -> Reported | None:
    """The partitions that a member reports to read; entries of one topic are merged."""
    if topics is None:
        return None
    reported: dict[bytes, set[int]] = {}
    for topic in topics:
        reported.setdefault(topic.topic_id, set()).update(topic.partitions)
    return {topic_id: frozenset(partitions) for topic_id, partitions in reported.items()}


def join_static(
    group: ConsumerGroup, member_id: str, instance_id: str, *, classic: bool, records: list[GroupRecord]
) -> ConsumerMember:
    """A static member, new or back under another id. KafkaError UNRELEASED_INSTANCE_ID while the previous one has not left. A
    member of the classic protocol cannot announce a temporary leave, so it is replaced without one."""
    former = group.static_member(instance_id)
    if former is None:
        return group.members.get(member_id) or ConsumerMember(member_id)
    if not classic and former.classic is None:
        check_released(former, member_id, instance_id)
    member = replace(former, member_id=member_id, epoch=0, previous_epoch=0)
    records += removal_records(group.group_id, former.member_id)
    records += [
        member_record(group.group_id, member),
        target_record(group.group_id, member_id, group.target_of(former.member_id)),
        current_record(group.group_id, member),
    ]
    return member


def advance(c: Coordination, group: ConsumerGroup, change: Change, records: list[GroupRecord], now_ms: int) -> ConsumerMember:
    """Takes the three steps for one member and returns the changed member. KafkaError when a step is refused."""
    member, updated = change.member, change.updated
    names_changed, regex_changed = change_member(c, group, change, records, now_ms)
    bump = names_changed or regex_changed is RegexChange.UPDATED_AND_RESOLVED
    epoch = bump_epoch(c, group, updated, bump, records)
    target = next_target(c, group, epoch, updated, now_ms)
    records += target.records
    changed = names_changed or regex_changed is not RegexChange.NONE
    return step(c, group, change._replace(member=member, updated=updated), target, changed, records, now_ms)


def change_member(
    c: Coordination, group: ConsumerGroup, change: Change, records: list[GroupRecord], now_ms: int
) -> tuple[bool, RegexChange]:
    """Returns whether the topic names of the subscription changed, and what happened to the pattern."""
    member, updated = change.member, change.updated
    if updated != member:
        records.append(member_record(group.group_id, updated))
    regex_changed, refresh = change_regex(c, group, member, updated, records, now_ms)
    if refresh:
        c.resolve_soon(group.group_id, change.describable)
    return updated.topics != member.topics, regex_changed


def bump_epoch(c: Coordination, group: ConsumerGroup, updated: ConsumerMember, bump: bool, records: list[GroupRecord]) -> int:
    """The group's epoch after the request: one higher if subscriptions changed, or topics did since the last check."""
    if not bump and group.metadata_checked:
        return group.epoch
    subscribed = group.subscribed_topics(group.members_with(updated).values())
    metadata_hash = c.topics.hash_of(subscribed)
    epoch = group.epoch
    if bump or metadata_hash != group.metadata_hash:
        epoch += 1
        records.append(epoch_record(group.group_id, epoch, metadata_hash))
    group.metadata_checked = True
    if group.has_partition_metadata:
        records.append(partition_metadata_tombstone(group.group_id))
    return epoch


def next_target(c: Coordination, group: ConsumerGroup, epoch: int, updated: ConsumerMember, now_ms: int) -> NewTarget:
    """The target that the member reconciles with: a new one if the epoch has risen and the assignment interval has passed."""
    if group.assignment_epoch >= epoch or not may_compute(group, c.assignment_interval_ms(group.group_id), now_ms):
        return last_target(group, updated)
    return compute_target(group, epoch, updated, c.topics, c.settings.consumer_assignors[0], now_ms)


def step(
    c: Coordination,
    group: ConsumerGroup,
    change: Change,
    target: NewTarget,
    subscription_changed: bool,
    records: list[GroupRecord],
    now_ms: int,
) -> ConsumerMember:
    """Reconciles the member by one step and sets or clears its rebalance timeout."""
    updated = change.updated
    if not subscription_changed and updated.is_reconciled_to(target.epoch):
        return updated
    # A member that replaces a static one owns the partitions of the former id.
    former = None if updated.instance_id is None else group.static.get(updated.instance_id)

    def owner(topic_id: bytes, partition: int) -> str | None:
        found = group.owner(topic_id, partition)
        return updated.member_id if found is not None and found == former else found

    stepped = reconcile(
        updated,
        Target(
            target.epoch,
            target.partitions,
            c.topics.ids_of(group.topics_of(updated)),
            subscription_changed,
            owner,
        ),
        change.reported,
    )
    if stepped == updated:
        return updated
    records.append(current_record(group.group_id, stepped))
    if stepped.classic is None:
        if stepped.state is MemberState.UNREVOKED_PARTITIONS:
            group.timers.arm_rebalance(stepped.member_id, now_ms + stepped.rebalance_timeout_ms, stepped.epoch)
        else:
            group.timers.rebalances.pop(stepped.member_id, None)
    return stepped


def check_sizes(c: Coordination, records: Iterable[GroupRecord]) -> None:
    """KafkaError UNKNOWN_SERVER_ERROR if a record is too large for the log. Only the requesting client gets the error; the
    coordinator keeps running."""
    largest = max((record.size for record in records), default=0)
    if largest > c.settings.max_record_bytes:
        text = f"The subscription or assignment takes {largest} bytes; {c.settings.max_record_bytes} fit into a record."
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text)


def take_over(c: Coordination, opening: Opening, effects: Effects, now_ms: int) -> None:
    """Makes the group one of the consumer protocol; requests parked in the classic group are answered with
    REBALANCE_IN_PROGRESS."""
    c.put(opening.group)
    opening.release(effects, now_ms)


def _answer(
    c: Coordination, request: ConsumerGroupHeartbeatRequest, member: ConsumerMember, updated: ConsumerMember
) -> ConsumerGroupHeartbeatResponse:
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    full = request.rebalance_timeout_ms != -1 and subscribes and request.topic_partitions is not None
    tells = request.member_epoch == JOIN_EPOCH or full or member.assigned != updated.assigned
    return ConsumerGroupHeartbeatResponse(
        member_id=updated.member_id,
        member_epoch=updated.epoch,
        heartbeat_interval_ms=c.heartbeat_interval_ms(request.group_id),
        assignment=Assignment(topic_partitions=list(_told(updated.assigned))) if tells else None,
    )


def _told(assigned: Owned) -> Iterable[ResponseTopicPartitions]:
    for topic_id, partitions in assigned.items():
        yield ResponseTopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
