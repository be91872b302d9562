"""Groups of the consumer protocol (KIP-848): membership and description.

Served if ``group.coordinator.rebalance.protocols`` has ``consumer`` and the cluster's group.version is 1. Otherwise the answer is
UNSUPPORTED_VERSION, as in Kafka, and existing groups are left unchanged.

A member needs READ on the group and DESCRIBE on each topic that it names; a pattern matches only topics that the member may
describe.
"""

from __future__ import annotations

from collections.abc import Collection, Coroutine
from typing import Any

from tidelog.broker.answer_types import Answer
from tidelog.broker.apis.groups.groups import ask, describable, may
from tidelog.broker.authorization import allowed, authorized_operations
from tidelog.broker.node import BrokerContext
from tidelog.broker.operations import NOT_ASKED
from tidelog.coordinator.group.consumer.consumer_heartbeat import Beat
from tidelog.coordinator.group.consumer.heartbeat_validation import check_request
from tidelog.coordinator.group.coordinator import GroupCoordinator
from tidelog.coordinator.group.settings import served_assignors
from tidelog.metadata.supported_features import GROUP_VERSION
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.machine import Outcome, Reply, Token
from tidelog.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from tidelog.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

_HIDDEN = "A member of the group has a topic that this client may not describe."


def _is_served(ctx: BrokerContext) -> bool:
    protocols = ctx.config.group_coordinator_rebalance_protocols
    return "consumer" in protocols and ctx.image.features.get(GROUP_VERSION, 0) >= 1


def consumer_group_heartbeat(ctx: BrokerContext, request: ConsumerGroupHeartbeatRequest) -> Answer | Coroutine[Any, Any, Answer]:
    """ConsumerGroupHeartbeat: consumers. Epoch 0 joins, -1 leaves, -2 leaves for a while (static members); v1: the client
    chooses the member id, and patterns are RE2's. Errors: 14, 16, 25, 29, 30, 35, 42, 69, 81, 82, 110, 111, 112, 128."""
    if not _is_served(ctx):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not may(ctx, AclOperation.READ, request.group_id):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not _sees_all(ctx, request.subscribed_topic_names or ()):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    try:
        check_request(request, ctx.api_version, served_assignors(ctx.config.group_consumer_assignors))
    except KafkaError as refused:
        return ConsumerGroupHeartbeatResponse(error_code=refused.code, error_message=refused.detail)
    client_id, client_host = ctx.client_id or "", f"/{ctx.peer_host}"

    def call(machine: GroupCoordinator, token: Token, now_ms: int) -> Outcome:
        return machine.consumer_heartbeat(Beat(token, client_id, client_host, request, describable(ctx)), now_ms)

    return ask(ctx, request.group_id, call, lambda error: ConsumerGroupHeartbeatResponse(error_code=error))


def _sees_all(ctx: BrokerContext, topics: Collection[str]) -> bool:
    """Whether the client may describe all of ``topics``."""
    return len(allowed(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, topics)) == len(set(topics))


async def consumer_group_describe(ctx: BrokerContext, request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    """ConsumerGroupDescribe: administrators. v1 adds the protocol of each member. Errors by group: 14, 16, 24, 30, 35,
    69, and 29 for a group with an assigned topic that the client may not describe. Groups refused with 30 come first."""
    if not _is_served(ctx):
        return ConsumerGroupDescribeResponse(groups=[_without(each, ErrorCode.UNSUPPORTED_VERSION) for each in request.group_ids])
    may_describe = allowed(ctx, AclOperation.DESCRIBE, ResourceType.GROUP, request.group_ids)
    groups = [
        DescribedGroup(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=each)
        for each in request.group_ids
        if each not in may_describe
    ]
    for group_id in request.group_ids:
        if group_id in may_describe:
            group = await _describe(ctx, group_id)
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = authorized_operations(ctx, ResourceType.GROUP, group_id)
            groups.append(group)
    return ConsumerGroupDescribeResponse(groups=_without_hidden_topics(ctx, groups))


def _without_hidden_topics(ctx: BrokerContext, groups: list[DescribedGroup]) -> list[DescribedGroup]:
    """The groups; one with a topic that the client may not describe is refused whole."""
    if ctx.node.access is None:
        return groups
    topics = [_topics_of(group) for group in groups]
    visible = allowed(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, frozenset().union(*topics))
    return [
        group if of_group <= visible else _without(group.group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, _HIDDEN)
        for group, of_group in zip(groups, topics, strict=True)
    ]


def _topics_of(group: DescribedGroup) -> frozenset[str]:
    """The topics of the members' assignments, current and target."""
    return frozenset(
        partitions.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for partitions in assignment.topic_partitions
    )


def _without(group_id: str, error: ErrorCode, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(error_code=error, error_message=message, group_id=group_id, authorized_operations=NOT_ASKED)


async def _describe(ctx: BrokerContext, group_id: str) -> DescribedGroup:
    def call(machine: GroupCoordinator, token: Token, now_ms: int) -> Outcome:
        return Outcome(replies=(Reply(token, machine.describe_consumer_group(group_id)),))

    if not group_id:
        return _without(group_id, ErrorCode.INVALID_GROUP_ID)
    answer = ask(ctx, group_id, call, lambda error: _without(group_id, error), writes=False)
    described = await answer if isinstance(answer, Coroutine) else answer
    assert isinstance(described, DescribedGroup)
    return described
