"""ShareGroupHeartbeat: joins a member, extends its session, removes it, and returns its assignment (KIP-932).

A heartbeat may do three things, each with its records: change the member and so the group's epoch; compute a target for that
epoch; move the member to the target. All decisions use the state before the request. Partitions of subscribed topics that have no
state at the share coordinator yet are ordered to be initialized (``Initialize``); they can be assigned when that is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from tidelog.coordinator.group.consumer.consumer_heartbeat import check_sizes
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.records import GroupRecord
from tidelog.coordinator.group.share import simple_assignor
from tidelog.coordinator.group.share.share_group import JOIN_EPOCH, LEAVE_EPOCH, Partitions, ShareGroup, ShareMember
from tidelog.coordinator.group.share.share_records import (
    current_record,
    epoch_record,
    member_record,
    removal_records,
    state_partitions_record,
    target_epoch_record,
    target_record,
)
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.machine import Token
from tidelog.protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)


class ShareBeat(NamedTuple):
    """A heartbeat with what its connection knows about the client."""

    token: Token
    client_id: str
    client_host: str
    request: ShareGroupHeartbeatRequest


class Initialize(NamedTuple):
    """An order for the share coordinator: create the state of these partitions, then report it (``settle``)."""

    group_id: str
    state_epoch: int
    topics: Mapping[bytes, tuple[str, frozenset[int]]]


def check_request(request: ShareGroupHeartbeatRequest) -> None:
    """KafkaError INVALID_REQUEST when the request is inconsistent in itself."""
    for value, name in ((request.member_id, "MemberId"), (request.group_id, "GroupId"), (request.rack_id, "RackId")):
        if value is not None and all(char <= " " for char in value):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")
    if request.member_epoch == JOIN_EPOCH and not request.subscribed_topic_names:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A joining member sends SubscribedTopicNames.")
    if request.member_epoch < LEAVE_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"MemberEpoch is invalid: {request.member_epoch}.")


def heartbeat(c: Coordination, beat: ShareBeat, effects: Effects, now_ms: int) -> None:
    """Answers a heartbeat that is not a leave. A KafkaError refuses it; then nothing has changed."""
    request = beat.request
    joins = request.member_epoch == JOIN_EPOCH
    group = _group(c, request.group_id, create=joins)
    if len(group.members) >= c.settings.share_max_size and request.member_id not in group.members:
        text = f"The share group is full: group.share.max.size is {c.settings.share_max_size}."
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, text)
    is_new = request.member_id not in group.members
    member = ShareMember(request.member_id) if joins and is_new else group.member(request.member_id)
    _check_epoch(member, request.member_epoch)
    updated = replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        topics=member.topics if request.subscribed_topic_names is None else tuple(sorted(set(request.subscribed_topic_names))),
        client_id=beat.client_id,
        client_host=beat.client_host,
    )
    records: list[GroupRecord] = []
    if is_new or updated != member:
        records.append(member_record(group.group_id, updated))
    members = {**group.members, updated.member_id: updated}
    epoch = _bump(c, group, members, records, changed=is_new or updated.topics != member.topics)
    stepped = _step(updated, *_target(c, group, epoch, members, records, now_ms), c)
    if is_new or (stepped.epoch, stepped.assigned) != (member.epoch, member.assigned):
        records.append(current_record(group.group_id, stepped))
    order = _to_initialize(c, group, members, epoch, now_ms)
    if order is not None:
        records.append(state_partitions_record(group.group_id, group.state_partitions.begin(order.topics)))
    try:
        check_sizes(c, records)
    except KafkaError:
        group.metadata_checked = False
        raise
    # Nothing can be refused any more.
    c.put(group)
    group.sessions[updated.member_id] = now_ms + c.share_setting(group.group_id, c.settings.share_session_timeout)
    if order is not None:
        group.initializing_since.update(dict.fromkeys(order.topics, now_ms))
        effects.sends.append(order)
    effects.records += records
    effects.reply(beat.token, _answer(c, request, member, stepped))


def _group(c: Coordination, group_id: str, *, create: bool) -> ShareGroup:
    group = c.of_class(group_id, ShareGroup)
    if group is not None:
        return group
    if group_id in c.groups:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is of another protocol.")
    if not create:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
    return ShareGroup(group_id)


def _check_epoch(member: ShareMember, epoch: int) -> None:
    if epoch not in {JOIN_EPOCH, member.epoch} and not (epoch < member.epoch and epoch == member.previous_epoch):
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The member sent epoch {epoch}, and its epoch at the coordinator is {member.epoch}: it joins again.",
        )


def _bump(
    c: Coordination, group: ShareGroup, members: Mapping[str, ShareMember], records: list[GroupRecord], *, changed: bool
) -> int:
    """The group's epoch after the request: one higher if subscriptions or topics changed, or more partitions can be assigned."""
    topics = group.topics(members.values())
    metadata_hash = group.metadata_hash if group.metadata_checked and not changed else c.topics.hash_of(topics)
    bump = changed or metadata_hash != group.metadata_hash
    if not bump and group.assignment_epoch >= group.epoch:
        subscribed = c.topics.ids_of(topics)
        assignable = {(each, one) for each, found in _assignable(group).items() if each in subscribed for one in found}
        targeted = {(each, one) for target in group.target.values() for each, found in target.items() for one in found}
        bump = assignable != targeted
    group.metadata_checked = True
    if bump:
        records.append(epoch_record(group.group_id, group.epoch + 1, metadata_hash))
    return group.epoch + bump


def _assignable(group: ShareGroup) -> Partitions:
    return {topic_id: partitions for topic_id, (_, partitions) in group.state_partitions.initialized.items()}


def _target(
    c: Coordination, group: ShareGroup, epoch: int, members: Mapping[str, ShareMember], records: list[GroupRecord], now_ms: int
) -> tuple[int, Mapping[str, Partitions]]:
    """The target that the member moves to: a new one if the epoch has risen and the assignment interval has passed."""
    interval_ms = c.share_assignment_interval_ms(group.group_id)
    # Another coordinator, whose clock was ahead, may have computed the last one.
    waits = group.assignment_ms and 0 <= now_ms - group.assignment_ms < interval_ms
    if group.assignment_epoch >= epoch or waits:
        return group.assignment_epoch, group.target
    subscriptions = {member_id: c.topics.ids_of(member.topics) for member_id, member in members.items()}
    target = simple_assignor.assign(subscriptions, group.target, _assignable(group))
    records += [
        target_record(group.group_id, member_id, partitions)
        for member_id, partitions in target.items()
        if group.target.get(member_id) != partitions
    ]
    records.append(target_epoch_record(group.group_id, epoch, now_ms))
    return epoch, target


def _step(member: ShareMember, epoch: int, target: Mapping[str, Partitions], c: Coordination) -> ShareMember:
    """The member at the target; it gets only partitions of its own topics."""
    topics = c.topics.ids_of(member.topics)
    assigned = {each: partitions for each, partitions in target.get(member.member_id, {}).items() if each in topics}
    if (member.epoch, member.assigned) == (epoch, assigned):
        return member
    previous = member.epoch if member.epoch != epoch else member.previous_epoch
    return replace(member, epoch=epoch, previous_epoch=max(previous, 0), assigned=assigned)


def _to_initialize(
    c: Coordination, group: ShareGroup, members: Mapping[str, ShareMember], epoch: int, now_ms: int
) -> Initialize | None:
    """The partitions of subscribed topics without a state, but for those that were ordered lately."""
    known = group.state_partitions
    wanted: dict[bytes, tuple[str, frozenset[int]]] = {}
    for name in sorted(group.topics(members.values())):
        topic_id = c.topics.id_of(name)
        if topic_id is None:
            continue
        missing = (
            frozenset(range(c.topics.spec_of(topic_id).partitions)) - known.initialized.get(topic_id, (name, frozenset()))[1]
        )
        since_ms = group.initializing_since.get(topic_id)
        if since_ms is not None and now_ms < since_ms + c.settings.share_initialize_retry_interval_ms:
            missing -= known.initializing.get(topic_id, (name, frozenset()))[1]
        if missing:
            wanted[topic_id] = name, missing
    return Initialize(group.group_id, epoch, wanted) if wanted else None


def settle(group: ShareGroup, done: Partitions, failed: Partitions) -> list[GroupRecord]:
    """The share coordinator has answered an ``Initialize``."""
    initializing = group.state_partitions.initializing
    named = {
        topic_id: (initializing[topic_id][0], partitions & initializing[topic_id][1])
        for topic_id, partitions in done.items()
        if topic_id in initializing and partitions & initializing[topic_id][1]
    }
    settled = group.state_partitions.settle(named, failed)
    return [state_partitions_record(group.group_id, settled)] if settled != group.state_partitions else []


def leave(c: Coordination, beat: ShareBeat, effects: Effects) -> None:
    """Answers a heartbeat with epoch -1. KafkaError when there is no such group or member."""
    group = _group(c, beat.request.group_id, create=False)
    member = group.member(beat.request.member_id)
    remove(c, group, [member.member_id], effects)
    effects.reply(beat.token, ShareGroupHeartbeatResponse(member_id=member.member_id, member_epoch=LEAVE_EPOCH))


def remove(c: Coordination, group: ShareGroup, member_ids: Sequence[str], effects: Effects) -> None:
    """Removes members: they left, or their sessions ended."""
    for member_id in member_ids:
        effects.records += removal_records(group.group_id, member_id)
        group.sessions.pop(member_id, None)
    left = [member for member_id, member in group.members.items() if member_id not in member_ids]
    effects.records.append(epoch_record(group.group_id, group.epoch + 1, c.topics.hash_of(group.topics(left))))


def _answer(
    c: Coordination, request: ShareGroupHeartbeatRequest, member: ShareMember, updated: ShareMember
) -> ShareGroupHeartbeatResponse:
    tells = (
        request.member_epoch == JOIN_EPOCH or request.subscribed_topic_names is not None or member.assigned != updated.assigned
    )
    partitions = [TopicPartitions(topic_id, sorted(updated.assigned[topic_id])) for topic_id in updated.assigned]
    return ShareGroupHeartbeatResponse(
        member_id=updated.member_id,
        member_epoch=updated.epoch,
        heartbeat_interval_ms=c.share_setting(request.group_id, c.settings.share_heartbeat_interval),
        assignment=Assignment(topic_partitions=partitions) if tells else None,
    )
