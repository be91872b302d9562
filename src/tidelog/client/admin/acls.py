"""ACLs: described, created and deleted (KIP-140, KIP-290)."""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.client.admin.topics import check
from tidelog.client.calls import Ask, Call
from tidelog.model.acl import AccessControlEntry, AclOperation, PatternType, PermissionType, acl_of
from tidelog.model.acl import ResourceType as AclResourceType
from tidelog.model.acl_filter import AclFilter
from tidelog.model.errors import ErrorCode, KafkaError

__all__ = [
    "AccessControlEntry",
    "AclFilter",
    "AclOperation",
    "AclResourceType",
    "PatternType",
    "PermissionType",
    "create",
    "delete",
    "describe",
]


def describe(wanted: AclFilter | None = None) -> Call[list[AccessControlEntry]]:
    """The ACLs that a filter finds, or all of them. KafkaError, such as SECURITY_DISABLED where there is no authorizer."""
    from tidelog.protocol.messages.describe_acls import DescribeAclsRequest

    asked = wanted or AclFilter()
    response = yield Ask(
        DescribeAclsRequest(
            resource_type_filter=asked.resource_type,
            resource_name_filter=asked.resource_name,
            pattern_type_filter=asked.pattern_type,
            principal_filter=asked.principal,
            host_filter=asked.host,
            operation=asked.operation,
            permission_type=asked.permission_type,
        )
    )
    check(response.error_code, response.error_message)
    return [
        AccessControlEntry(
            resource.resource_type,
            resource.resource_name,
            resource.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for resource in response.resources
        for acl in resource.acls
    ]


def create(entries: Iterable[AccessControlEntry]) -> Call[dict[AccessControlEntry, KafkaError]]:
    """Create ACLs; one that exists is left as it is. Returns those that were refused, with their errors (INVALID_REQUEST)."""
    from tidelog.protocol.messages.create_acls import AclCreation, CreateAclsRequest

    wanted = list(entries)
    creations = [
        AclCreation(
            each.resource_type,
            each.resource_name,
            each.pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        )
        for each in wanted
    ]
    response = yield Ask(CreateAclsRequest(creations=creations))
    refused = {}
    for entry, result in zip(wanted, response.results, strict=True):
        if result.error_code != ErrorCode.NONE:
            code = ErrorCode(result.error_code)
            refused[entry] = KafkaError(code, result.error_message or code.text)
    return refused


def delete(filters: Iterable[AclFilter]) -> Call[list[list[AccessControlEntry]]]:
    """Delete what the filters find, in one step. Returns, for each filter, what it found.

    KafkaError for the first filter that is refused (INVALID_REQUEST); what the others found is deleted all the same.
    """
    from tidelog.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest

    asked = [
        DeleteAclsFilter(
            each.resource_type,
            each.resource_name,
            each.pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        )
        for each in filters
    ]
    response = yield Ask(DeleteAclsRequest(filters=asked))
    for result in response.filter_results:
        check(result.error_code, result.error_message)
    return [[acl_of(acl, acl.pattern_type) for acl in result.matching_acls] for result in response.filter_results]
