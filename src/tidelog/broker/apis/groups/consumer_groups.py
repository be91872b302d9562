"""Groups of the consumer protocol (KIP-848): membership and description.

Served if ``group.coordinator.rebalance.protocols`` has ``consumer`` and the cluster's group.version is 1. Otherwise the answer is
UNSUPPORTED_VERSION, as in Kafka, and existing groups are left unchanged.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from tidelog.broker.answers import Answer
from tidelog.broker.apis.groups.groups import ask
from tidelog.broker.node import BrokerContext
from tidelog.broker.operations import GROUP_OPERATIONS, NOT_ASKED
from tidelog.coordinator.group.consumer.consumer_heartbeat import Beat
from tidelog.coordinator.group.consumer.heartbeat_validation import check_request
from tidelog.coordinator.group.coordinator import GroupCoordinator
from tidelog.coordinator.group.settings import served_assignors
from tidelog.metadata.features import GROUP_VERSION
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.machine import Outcome, Reply, Token
from tidelog.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from tidelog.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse


def _is_served(ctx: BrokerContext) -> bool:
    protocols = ctx.config.group_coordinator_rebalance_protocols
    return "consumer" in protocols and ctx.image.features.get(GROUP_VERSION, 0) >= 1


def consumer_group_heartbeat(ctx: BrokerContext, request: ConsumerGroupHeartbeatRequest) -> Answer | Coroutine[Any, Any, Answer]:
    """ConsumerGroupHeartbeat: consumers. Epoch 0 joins, -1 leaves, -2 leaves for a while (static members); v1: the client
    chooses the member id, and patterns are RE2's. Errors: 14, 16, 25, 35, 42, 69, 81, 82, 110, 111, 112, 128."""
    if not _is_served(ctx):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    try:
        check_request(request, ctx.api_version, served_assignors(ctx.config.group_consumer_assignors))
    except KafkaError as refused:
        return ConsumerGroupHeartbeatResponse(error_code=refused.code, error_message=refused.detail)
    client_id, client_host = ctx.client_id or "", f"/{ctx.peer_host}"

    def call(machine: GroupCoordinator, token: Token, now_ms: int) -> Outcome:
        return machine.consumer_heartbeat(Beat(token, client_id, client_host, request), now_ms)

    return ask(ctx, request.group_id, call, _refused)


def _refused(error: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error, error_message=error.text)


async def consumer_group_describe(ctx: BrokerContext, request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    """ConsumerGroupDescribe: administrators. v1 adds the protocol of each member. Errors by group: 14, 16, 24, 35, 69."""
    groups = []
    for group_id in request.group_ids:
        group = await _describe(ctx, group_id)
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = GROUP_OPERATIONS
        groups.append(group)
    return ConsumerGroupDescribeResponse(groups=groups)


async def _describe(ctx: BrokerContext, group_id: str) -> DescribedGroup:
    def refuse(error: ErrorCode) -> DescribedGroup:
        return DescribedGroup(error_code=error, group_id=group_id, authorized_operations=NOT_ASKED)

    def call(machine: GroupCoordinator, token: Token, now_ms: int) -> Outcome:
        return Outcome(replies=(Reply(token, machine.describe_consumer_group(group_id)),))

    if not _is_served(ctx):
        return refuse(ErrorCode.UNSUPPORTED_VERSION)
    if not group_id:
        return refuse(ErrorCode.INVALID_GROUP_ID)
    answer = ask(ctx, group_id, call, refuse, writes=False)
    described = await answer if isinstance(answer, Coroutine) else answer
    assert isinstance(described, DescribedGroup)
    return described
