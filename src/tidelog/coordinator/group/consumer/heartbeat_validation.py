"""Validates a ConsumerGroupHeartbeat: its form, and whether the member is current. Errors and texts are Kafka's."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.coordinator.group.consumer.consumer_group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroup,
    ConsumerMember,
)
from tidelog.coordinator.group.consumer.reconciliation import Reported
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

CLIENT_MAKES_MEMBER_ID_FROM = 1


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """KafkaError INVALID_REQUEST or UNSUPPORTED_ASSIGNOR when the request is inconsistent in itself."""
    if version >= CLIENT_MAKES_MEMBER_ID_FROM or request.member_epoch > JOIN_EPOCH or request.member_epoch == LEAVE_EPOCH:
        _not_blank(request.member_id, "MemberId can't be empty.")
    _not_blank(request.group_id, "GroupId can't be empty.")
    _not_blank(request.instance_id, "InstanceId can't be empty.")
    _not_blank(request.rack_id, "RackId can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        _check_join(request)
    elif request.member_epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif request.member_epoch < STATIC_LEAVE_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"The coordinator has no assignor {request.server_assignor}; it has {', '.join(assignors)}.",
        )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("A joining member states its RebalanceTimeoutMs.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("A joining member owns nothing yet: send an empty TopicPartitions.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("A joining member sends SubscribedTopicNames or SubscribedTopicRegex.")


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)


def _not_blank(value: str | None, text: str) -> None:
    """Java's trim(): all characters up to the space are blank."""
    if value is not None and all(char <= " " for char in value):
        raise _invalid(text)


def check_room(group: ConsumerGroup, member_id: str, max_size: int) -> None:
    """KafkaError GROUP_MAX_SIZE_REACHED when the group has no room for one more member."""
    if len(group.members) >= max_size and member_id not in group.members:
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, f"The group is full: group.consumer.max.size is {max_size}.")


def check_epoch(member: ConsumerMember, epoch: int, reported: Reported | None) -> None:
    """KafkaError FENCED_MEMBER_EPOCH unless the epoch is the member's, or 0 to rejoin, or the previous one from a member that
    missed a response and reads only partitions that it owns."""
    if epoch in {JOIN_EPOCH, member.epoch}:
        return
    if epoch > member.epoch:
        how = "greater"
    elif epoch == member.previous_epoch and reported is not None and _is_subset(reported, member):
        return
    else:
        how = "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The member sent epoch {epoch}, which is {how} than its epoch at the coordinator, {member.epoch}: "
        "it gives up its partitions and joins again.",
    )


def _is_subset(reported: Reported, member: ConsumerMember) -> bool:
    return all(
        topic_id in member.assigned and partitions <= member.assigned[topic_id].keys()
        for topic_id, partitions in reported.items()
    )


def check_released(member: ConsumerMember, member_id: str, instance_id: str) -> None:
    """KafkaError UNRELEASED_INSTANCE_ID while the member that uses the instance id has not left."""
    if member.epoch != STATIC_LEAVE_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Instance id {instance_id} is in use by member {member.member_id}, so {member_id} cannot join with it. Stop that "
            "member, or use another group.instance.id.",
        )


def known_static(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
    """The member with this instance id. KafkaError UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID when its member id is another."""
    member = group.static_member(instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Instance id {instance_id} now belongs to member {member.member_id}: {member_id} is fenced.",
        )
    return member
