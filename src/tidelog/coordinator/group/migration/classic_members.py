"""Members of a consumer group that still speak the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Their generation is their member epoch. A join takes the three steps of a heartbeat and is answered immediately, without a leader:
the coordinator computes the assignment, and SyncGroup only returns it. While a member has not reached its target, its heartbeat
returns REBALANCE_IN_PROGRESS, and the member has its rebalance timeout to rejoin. Source: KIP-848, online migration.
"""

from __future__ import annotations

from dataclasses import replace

from tidelog.coordinator.group.classic.joining import KNOWN_MEMBER_ID_FROM, Join
from tidelog.coordinator.group.classic.rebalance import join_error
from tidelog.coordinator.group.consumer.consumer_group import ClassicMetadata, ConsumerGroup, ConsumerMember, MemberState
from tidelog.coordinator.group.consumer.consumer_heartbeat import (
    Change,
    bump_epoch,
    change_member,
    check_sizes,
    join_static,
    next_target,
    step,
)
from tidelog.coordinator.group.consumer.consumer_leaving import remove
from tidelog.coordinator.group.consumer.heartbeat_validation import check_room, known_static
from tidelog.coordinator.group.consumer.regex_refresh import RegexChange
from tidelog.coordinator.group.consumer.target_assignment import last_target
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.migration.embedded_protocol import (
    CONSUMER,
    by_topic_id,
    read_subscription_message,
    version_of,
    write_assignment,
)
from tidelog.coordinator.group.migration.migration import downgrade, may_downgrade
from tidelog.coordinator.group.records import GroupRecord
from tidelog.coordinator.group.settings import MigrationPolicy
from tidelog.model.errors import ErrorCode, KafkaError, ProtocolViolation
from tidelog.model.machine import Token
from tidelog.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tidelog.protocol.messages.heartbeat import HeartbeatRequest
from tidelog.protocol.messages.join_group import JoinGroupResponse
from tidelog.protocol.messages.leave_group import LeaveGroupRequest, MemberResponse
from tidelog.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def join(c: Coordination, group: ConsumerGroup, join: Join, effects: Effects, now_ms: int) -> None:
    """JoinGroup to a consumer group with members. KafkaError when it is refused."""
    request = join.request
    if c.settings.migration_policy is MigrationPolicy.DISABLED:
        text = (
            f"Group {group.group_id} uses the consumer protocol, and group.consumer.migration.policy does not let members of "
            "the classic protocol join it."
        )
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, text)
    member_id = request.member_id or c.new_member_id()
    check_room(group, member_id, c.settings.consumer_max_size)
    if not group.supports_classic(request.protocol_type, (protocol.name for protocol in request.protocols)):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id} offers no assignor that the other classic members have."
        )
    if request.group_instance_id is None and request.member_id == "" and join.version >= KNOWN_MEMBER_ID_FROM:
        effects.reply(join.token, join_error(join.version, member_id, ErrorCode.MEMBER_ID_REQUIRED))
        return
    records: list[GroupRecord] = []
    member = _joining(group, join, member_id, records)
    subscription = _subscription(join)
    former = group.static_member(request.group_instance_id)
    turns_back = former is not None and may_downgrade(c, group, [former.member_id], replaced=True)
    reported = by_topic_id(subscription.owned_partitions, c.topics)
    change = Change(member, _updated(member, join, subscription), reported, join.describable)
    names_changed, regex_changed = change_member(c, group, change, records, now_ms)
    changed = names_changed or regex_changed is not RegexChange.NONE
    epoch = bump_epoch(c, group, change.updated, changed, records)
    check_sizes(c, records)
    if turns_back:
        updated = _turn_back(c, group, change, epoch, changed, records, effects, now_ms)
    else:
        target = next_target(c, group, epoch, change.updated, now_ms)
        records += target.records
        updated = step(c, group, change, target, changed, records, now_ms)
        check_sizes(c, records)
        timers = group.timers
        timers.joins.pop(member_id, None)
        timers.arm(timers.sessions, member_id, now_ms + request.session_timeout_ms)
        timers.arm(timers.syncs, member_id, now_ms + join.rebalance_timeout_ms)
    effects.records += records
    effects.reply(
        join.token,
        JoinGroupResponse(
            generation_id=updated.epoch,
            protocol_type=CONSUMER,
            protocol_name=join.protocols[0][0],
            leader="",
            member_id=member_id,
        ),
    )


def _joining(group: ConsumerGroup, join: Join, member_id: str, records: list[GroupRecord]) -> ConsumerMember:
    instance_id = join.request.group_instance_id
    if instance_id is None:
        known = group.members.get(member_id)
        if known is None and _subscription(join).owned_partitions:
            # The member was removed and does not know. Kafka 4.3 admits it immediately; with its new epoch it could then commit
            # for partitions that others own by now. As a classic group would, we make it drop everything first.
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group.group_id} has no member {member_id}: join again.")
        return known or ConsumerMember(member_id)
    if join.request.member_id == "":
        return join_static(group, member_id, instance_id, classic=True, records=records)
    return known_static(group, member_id, instance_id)


def _subscription(join: Join) -> ConsumerProtocolSubscription:
    try:
        return read_subscription_message(join.protocols[0][1])
    except ProtocolViolation as error:
        text = "The member's subscription is not in the format of Kafka's consumers."
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from error


def _updated(member: ConsumerMember, join: Join, subscription: ConsumerProtocolSubscription) -> ConsumerMember:
    request = join.request
    return replace(
        member,
        instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=join.rebalance_timeout_ms,
        topics=tuple(sorted(set(subscription.topics))),
        regex="",
        client_id=join.client_id,
        client_host=join.client_host,
        classic=ClassicMetadata(request.session_timeout_ms, join.protocols),
    )


def _turn_back(
    c: Coordination,
    group: ConsumerGroup,
    change: Change,
    epoch: int,
    changed: bool,
    records: list[GroupRecord],
    effects: Effects,
    now_ms: int,
) -> ConsumerMember:
    """Downgrades the group: the last static member of the consumer protocol came back with the classic one."""
    updated = change.updated
    why = None
    if group.assignment_epoch < epoch:
        why = f"Group {group.group_id} becomes classic before its newest assignment was computed."
    else:
        updated = step(c, group, change, last_target(group, updated), changed, records, now_ms)
    if not downgrade(c, group, (), updated, why, records, effects, now_ms):
        text = f"Cannot downgrade group {group.group_id}: as a classic group it would not fit into one record."
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
    return updated


# -- with a generation ---------------------------------------------------------------------------------------------------


def _member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerMember, ClassicMetadata]:
    """A member that speaks the classic protocol, in its generation. KafkaError 22, 25 or 82."""
    member = group.member(member_id) if instance_id is None else known_static(group, member_id, instance_id)
    if member.classic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} uses the consumer protocol and sent a request of the classic one."
        )
    if member.epoch != generation:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"Member {member_id} sent generation {generation}; its member epoch is {member.epoch}.",
        )
    return member, member.classic


def _should_join(group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> None:
    timers = group.timers
    if member.member_id not in timers.joins:
        timers.arm(timers.joins, member.member_id, now_ms + member.rebalance_timeout_ms)


def sync(c: Coordination, group: ConsumerGroup, token: Token, request: SyncGroupRequest, effects: Effects, now_ms: int) -> None:
    """SyncGroup: the member's assignment in its epoch. KafkaError when it is refused."""
    member, classic = _member(group, request.member_id, request.group_instance_id, request.generation_id)
    name, metadata = classic.protocols[0]
    if request.protocol_type not in {None, CONSUMER} or request.protocol_name not in {None, name}:
        asked = f"{request.protocol_type} {request.protocol_name}"
        text = f"The protocol of member {member.member_id} is {CONSUMER} {name}, not {asked}."
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, text)
    if group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        _should_join(group, member, now_ms)
        text = f"Group {group.group_id} rebalances: member {member.member_id} joins again to get its new assignment."
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, text)
    try:
        assignment = write_assignment(member.assigned, c.topics, version_of(metadata))
    except ProtocolViolation as error:
        text = "The member's subscription has no readable version."
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from error
    timers = group.timers
    timers.syncs.pop(member.member_id, None)
    timers.arm(timers.sessions, member.member_id, now_ms + classic.session_timeout_ms)
    effects.reply(
        token,
        SyncGroupResponse(protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=assignment),
    )


def heartbeat(group: ConsumerGroup, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
    """Heartbeat: NONE, or REBALANCE_IN_PROGRESS when the member must rejoin. KafkaError when it is refused."""
    member, classic = _member(group, request.member_id, request.group_instance_id, request.generation_id)
    timers = group.timers
    timers.arm(timers.sessions, member.member_id, now_ms + classic.session_timeout_ms)
    behind = member.epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS
    may_go_on = member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_others(member)
    if not behind and not may_go_on:
        return ErrorCode.NONE
    _should_join(group, member, now_ms)
    return ErrorCode.REBALANCE_IN_PROGRESS


def leave(
    c: Coordination, group: ConsumerGroup, request: LeaveGroupRequest, effects: Effects, now_ms: int
) -> list[MemberResponse]:
    """LeaveGroup: several members at once, by id or (administrators) by instance id, of either protocol."""
    answers = []
    leaving: dict[str, None] = {}
    for identity in request.members:
        error = ErrorCode.NONE
        try:
            if identity.group_instance_id is None:
                member = group.member(identity.member_id)
            elif identity.member_id == "":
                known = group.static_member(identity.group_instance_id)
                member = known_static(group, "" if known is None else known.member_id, identity.group_instance_id)
            else:
                member = known_static(group, identity.member_id, identity.group_instance_id)
            leaving[member.member_id] = None
        except KafkaError as refused:
            error = refused.code
        answers.append(
            MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error)
        )
    remove(c, group, list(leaving), effects, now_ms)
    return answers
