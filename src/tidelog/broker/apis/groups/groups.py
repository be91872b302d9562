"""Classic groups: membership, listing, description and deletion.

Each handler passes the request to the shard of ``__consumer_offsets`` that owns the group and returns the coordinator's answer.
Without a shard the answer is COORDINATOR_LOAD_IN_PROGRESS (14) or NOT_COORDINATOR (16), and COORDINATOR_NOT_AVAILABLE (15) when
too few replicas are in sync: clients retry. A client without the permission for a group gets GROUP_AUTHORIZATION_FAILED (30), and
no coordinator is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tidelog.broker import coordinator_calls
from tidelog.broker.answer_types import Answer
from tidelog.broker.apis.groups.share_deletion import delete_states
from tidelog.broker.authorization import allowed, allows, allows_on_cluster, authorized_operations
from tidelog.broker.node import BrokerContext
from tidelog.broker.operations import NOT_ASKED
from tidelog.coordinator.group import describing
from tidelog.coordinator.group.classic import rebalance
from tidelog.coordinator.group.classic.joining import Join
from tidelog.coordinator.group.coordinator import GroupCoordinator
from tidelog.coordinator.group.topic_metadata import Describable
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.model.machine import Outcome, Token
from tidelog.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from tidelog.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from tidelog.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tidelog.protocol.messages.join_group import JoinGroupRequest
from tidelog.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from tidelog.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from tidelog.protocol.messages.sync_group import SyncGroupRequest

NAMED_PROTOCOL_FROM = 5
"""From this version on SyncGroup has to name the protocol."""
REPORTS_OPERATIONS_FROM = 3
_DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED

Call = Callable[[GroupCoordinator, Token, int], Outcome]
R = TypeVar("R")


def ask(
    ctx: BrokerContext, group_id: str, call: Call, refuse: Callable[[ErrorCode], R], *, writes: bool = True
) -> R | Coroutine[Any, Any, R]:
    """The coordinator's answer to ``call``, directly if it is ready; ``refuse(error)`` when no shard can answer."""
    return coordinator_calls.ask(ctx, ctx.node.groups, group_id, call, lambda answer: answer, refuse, writes=writes)


def may(ctx: BrokerContext, operation: AclOperation, group_id: str) -> bool:
    """Whether the client may do the operation on the group."""
    return allows(ctx, operation, ResourceType.GROUP, group_id)


def describable(ctx: BrokerContext) -> Describable | None:
    """The topics that the client may describe, for patterns that its group resolves; None when there is no authorizer."""
    if ctx.node.access is None:
        return None
    return lambda names: allowed(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, names, quiet=True)


def join_group(ctx: BrokerContext, request: JoinGroupRequest) -> Answer | Coroutine[Any, Any, Answer]:
    """JoinGroup: classic consumers, Connect. v4 assigns the member id first, v5 static members, v7 the protocol type, v8 a
    reason, v9 lets a static leader skip the assignment. Errors: 14, 16, 23, 24, 25, 26, 30, 79, 81, 82."""
    version = ctx.api_version
    if not may(ctx, AclOperation.READ, request.group_id):
        return rebalance.join_error(version, "", _DENIED)

    def call(machine: GroupCoordinator, token: Token, now_ms: int) -> Outcome:
        join = Join(token, version, ctx.client_id or "", f"/{ctx.peer_host}", request, describable(ctx))
        return machine.join(join, now_ms)

    return ask(ctx, request.group_id, call, lambda error: rebalance.join_error(version, request.member_id, error))


def sync_group(ctx: BrokerContext, request: SyncGroupRequest) -> Answer | Coroutine[Any, Any, Answer]:
    """SyncGroup: the leader sends the assignments, each member receives its own. v5 names the protocol. Errors: 14, 16, 22,
    23, 25, 27, 30, 82."""
    if ctx.api_version >= NAMED_PROTOCOL_FROM and (request.protocol_type is None or request.protocol_name is None):
        return rebalance.sync_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not may(ctx, AclOperation.READ, request.group_id):
        return rebalance.sync_error(_DENIED)
    return ask(ctx, request.group_id, lambda machine, token, now: machine.sync(token, request, now), rebalance.sync_error)


def heartbeat(ctx: BrokerContext, request: HeartbeatRequest) -> Answer | Coroutine[Any, Any, Answer]:
    """Heartbeat. v3 added static members. Errors: 16, 22, 25, 27 (join again), 30, 82. While the group is loading its members are
    unknown, so the answer is no error, as in Kafka: aiokafka stops its heartbeats after a 14."""
    if not may(ctx, AclOperation.READ, request.group_id):
        return HeartbeatResponse(error_code=_DENIED)

    def refuse(error: ErrorCode) -> HeartbeatResponse:
        return HeartbeatResponse(error_code=ErrorCode.NONE if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else error)

    return ask(ctx, request.group_id, lambda machine, token, now: machine.heartbeat(token, request, now), refuse, writes=False)


def leave_group(ctx: BrokerContext, request: LeaveGroupRequest) -> Answer | Coroutine[Any, Any, Answer]:
    """LeaveGroup: one member up to v2, several since v3, by id or by instance (administrators). Errors: 14, 16, 25, 30, 82."""
    version = ctx.api_version
    if not may(ctx, AclOperation.READ, request.group_id):
        return LeaveGroupResponse(error_code=_DENIED)
    return ask(
        ctx,
        request.group_id,
        lambda machine, token, now: machine.leave(token, request, version, now),
        lambda error: LeaveGroupResponse(error_code=error),
    )


async def describe_groups(ctx: BrokerContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """DescribeGroups: administrators. v3 authorized operations, v4 static members, v6 an error for an unknown group. Errors by
    group: 14, 15, 16, 30, 69. Groups that are refused come first."""
    named = list(request.groups)
    described = allowed(ctx, AclOperation.DESCRIBE, ResourceType.GROUP, named)
    groups = [DescribedGroup(group_id=each, error_code=_DENIED) for each in named if each not in described]
    groups += [await _describe(ctx, request, each) for each in named if each in described]
    return DescribeGroupsResponse(groups=groups)


async def _describe(ctx: BrokerContext, request: DescribeGroupsRequest, group_id: str) -> DescribedGroup:
    version = ctx.api_version
    answer = ask(
        ctx,
        group_id,
        coordinator_calls.looked_up(lambda machine: describing.describe(machine, group_id, version)),
        lambda error: DescribedGroup(group_id=group_id, error_code=error),
        writes=False,
    )
    group = await answer if isinstance(answer, Coroutine) else answer
    assert isinstance(group, DescribedGroup)
    if version >= REPORTS_OPERATIONS_FROM:
        wanted = request.include_authorized_operations and not group.error_code
        group.authorized_operations = authorized_operations(ctx, ResourceType.GROUP, group_id) if wanted else NOT_ASKED
    return group


async def list_groups(ctx: BrokerContext, request: ListGroupsRequest) -> ListGroupsResponse:
    """ListGroups: the groups that this broker coordinates. v4 filters by state, v5 by type. A client without DESCRIBE on the
    cluster sees the groups that it may describe. Errors: 14, 15, 16."""
    sees_all = allows_on_cluster(ctx, AclOperation.DESCRIBE, quiet=True)

    def listed(machine: GroupCoordinator) -> list[ListedGroup]:
        return describing.list_groups(machine, request.states_filter, request.types_filter)

    groups = await coordinator_calls.ask_every(ctx, ctx.node.groups, listed)
    if isinstance(groups, ErrorCode):
        return ListGroupsResponse(error_code=groups)
    if not sees_all:
        visible = allowed(ctx, AclOperation.DESCRIBE, ResourceType.GROUP, [each.group_id for each in groups], quiet=True)
        groups = [each for each in groups if each.group_id in visible]
    return ListGroupsResponse(groups=groups)


async def delete_groups(ctx: BrokerContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """DeleteGroups: groups without members, with their offsets. v3 has room for a reason beside GROUP_DELETION_FAILED, which
    groups here do not answer; other errors say all in their code, as in Kafka. Errors by group: 14, 16, 30, 68, 69."""
    named = list(dict.fromkeys(request.groups_names))
    deletable = allowed(ctx, AclOperation.DELETE, ResourceType.GROUP, named)
    results = [await _delete_group(ctx, each) for each in named if each in deletable]
    results += [DeletableGroupResult(group_id=each, error_code=_DENIED) for each in named if each not in deletable]
    return DeleteGroupsResponse(results=results)


async def _delete_group(ctx: BrokerContext, group_id: str) -> DeletableGroupResult:
    def respond(error: ErrorCode) -> DeletableGroupResult:
        return DeletableGroupResult(group_id=group_id, error_code=error)

    errors = await delete_states(ctx, group_id, None)
    if isinstance(errors, dict) and (failed := [error for error in errors.values() if error]):
        return respond(failed[0])
    answer = ask(ctx, group_id, lambda machine, token, _: machine.offsets.delete_group(token, group_id, respond), respond)
    result = await answer if isinstance(answer, Coroutine) else answer
    assert isinstance(result, DeletableGroupResult)
    return result
