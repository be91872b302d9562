"""ACLs on a node without an authorizer: every client may do everything, and there are no ACLs."""

from __future__ import annotations

from tidelog.broker.request import Context
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from tidelog.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from tidelog.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

_NO_AUTHORIZER = "No Authorizer is configured."


def describe_acls(ctx: Context, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Sent by admin clients and consoles, which take SECURITY_DISABLED for "no access control here"."""
    message = "This node has no ACLs: tidelog does not serve an authorizer yet"
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=message)


def create_acls(ctx: Context, request: CreateAclsRequest) -> CreateAclsResponse:
    """Sent by admin clients. SECURITY_DISABLED for each."""
    refused = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=_NO_AUTHORIZER)
    return CreateAclsResponse(results=[refused] * len(request.creations))


def delete_acls(ctx: Context, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Sent by admin clients. SECURITY_DISABLED for each filter."""
    refused = DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=_NO_AUTHORIZER)
    return DeleteAclsResponse(filter_results=[refused] * len(request.filters))
