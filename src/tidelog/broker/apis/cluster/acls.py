"""ACLs: changed by the active controller, listed by any node. A node without an authorizer has none (SECURITY_DISABLED)."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import Any

from tidelog.broker.request import Context
from tidelog.controller.quorum_controller import QuorumController
from tidelog.metadata.image import ClusterImage
from tidelog.model.acl import AccessControlEntry, acl_of
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


def creations_applied(image: ClusterImage, request: CreateAclsRequest, response: CreateAclsResponse) -> bool:
    """Whether the image has all ACLs whose creation succeeded."""
    created = {
        acl_of(each, each.resource_pattern_type)
        for each, result in zip(request.creations, response.results, strict=False)
        if not result.error_code
    }
    return created == _present(image, created)


def deletions_applied(image: ClusterImage, request: DeleteAclsRequest, response: DeleteAclsResponse) -> bool:
    """Whether the image has none of the deleted ACLs."""
    deleted = {
        acl_of(each, each.pattern_type)
        for result in response.filter_results
        if not result.error_code
        for each in result.matching_acls
        if not each.error_code
    }
    return not _present(image, deleted)


def _present(image: ClusterImage, entries: Iterable[AccessControlEntry]) -> set[AccessControlEntry]:
    """Those that the image has."""
    names = {each.resource_name for each in entries}
    return {each for each in image.acls.values() if each.resource_name in names}.intersection(entries)


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
