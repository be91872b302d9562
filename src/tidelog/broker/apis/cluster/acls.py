"""ACLs: changed by the active controller, listed by any node. A node without an authorizer has none (SECURITY_DISABLED)."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from tidelog.broker.request import Context
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from tidelog.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from tidelog.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


def describe_acls(ctx: Context, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Sent by admin clients, consoles and kafka-acls: the ACLs that a filter finds, by resource pattern.

    Errors: SECURITY_DISABLED, INVALID_REQUEST for a filter with an unknown number.
    """
    _with_authorizer(ctx)
    from tidelog.model.acl_filter import AclFilter  # Only for a node with an authorizer.

    wanted = AclFilter(
        resource_type=request.resource_type_filter,
        resource_name=request.resource_name_filter,
        pattern_type=request.pattern_type_filter,
        principal=request.principal_filter,
        host=request.host_filter,
        operation=request.operation,
        permission_type=request.permission_type,
    )
    wanted.check()
    found: dict[tuple[int, str, int], list[AclDescription]] = {}
    for entry in ctx.image.acls.values():
        if wanted.matches(entry):
            described = AclDescription(entry.principal, entry.host, entry.operation, entry.permission_type)
            found.setdefault((entry.resource_type, entry.resource_name, entry.pattern_type), []).append(described)
    return DescribeAclsResponse(resources=[DescribeAclsResource(*pattern, acls) for pattern, acls in found.items()])


def create_acls(ctx: Context, request: CreateAclsRequest) -> Coroutine[Any, Any, CreateAclsResponse]:
    """Sent by admin clients and kafka-acls. Errors per ACL: SECURITY_DISABLED, and those of ``controller.acls``."""
    _with_authorizer(ctx)
    return _created(ctx, request)


def delete_acls(ctx: Context, request: DeleteAclsRequest) -> Coroutine[Any, Any, DeleteAclsResponse]:
    """Sent by admin clients and kafka-acls. Errors per filter: SECURITY_DISABLED, and those of ``controller.acls``."""
    _with_authorizer(ctx)
    return _deleted(ctx, request)


async def _created(ctx: Context, request: CreateAclsRequest) -> CreateAclsResponse:
    response: CreateAclsResponse = await ctx.submit(QuorumController.create_acls, request)
    return response


async def _deleted(ctx: Context, request: DeleteAclsRequest) -> DeleteAclsResponse:
    response: DeleteAclsResponse = await ctx.submit(QuorumController.delete_acls, request)
    return response


def _with_authorizer(ctx: Context) -> None:
    """KafkaError SECURITY_DISABLED on a node where every client may do everything; clients take it for "no ACLs here"."""
    if ctx.node.access is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
