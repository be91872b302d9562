from __future__ import annotations

import pytest

from tests.unit.client.scripted import Table, answered
from tidelog.client.admin.acls import create, delete, describe
from tidelog.model.acl import AccessControlEntry, AclOperation, PatternType, PermissionType, ResourceType
from tidelog.model.acl_filter import AclFilter
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.create_acls import AclCreationResult, CreateAclsResponse
from tidelog.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsMatchingAcl, DeleteAclsResponse
from tidelog.protocol.messages.describe_acls import AclDescription, DescribeAclsResource, DescribeAclsResponse

ENTRY = AccessControlEntry(ResourceType.TOPIC, "t", PatternType.LITERAL, "User:a", "*", AclOperation.READ, PermissionType.ALLOW)
OTHER = AccessControlEntry(ResourceType.GROUP, "g", PatternType.PREFIXED, "User:b", "::1", AclOperation.ALL, PermissionType.DENY)


def test_acls_are_described_by_a_filter_or_all_of_them() -> None:
    resources = [
        DescribeAclsResource(
            each.resource_type,
            each.resource_name,
            each.pattern_type,
            [AclDescription(each.principal, each.host, each.operation, each.permission_type)],
        )
        for each in (ENTRY, OTHER)
    ]
    table = Table(DescribeAclsResponse(resources=resources))
    assert answered(describe(), table) == [ENTRY, OTHER]
    request = table.asked[0].request
    assert (request.resource_type_filter, request.resource_name_filter, request.pattern_type_filter) == (1, None, 1)
    answered(describe(AclFilter(ResourceType.TOPIC, "t", PatternType.MATCH, "User:a", "*", 3, 2)), table)
    request = table.asked[1].request
    assert (request.resource_type_filter, request.resource_name_filter, request.pattern_type_filter) == (2, "t", 2)
    assert (request.principal_filter, request.host_filter, request.operation, request.permission_type) == ("User:a", "*", 3, 2)
    with pytest.raises(KafkaError) as none:
        answered(describe(), Table(DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED)))
    assert none.value.code is ErrorCode.SECURITY_DISABLED


def test_creations_that_are_refused_come_back_with_their_errors() -> None:
    bad = AclCreationResult(error_code=ErrorCode.INVALID_REQUEST, error_message="no")
    table = Table(CreateAclsResponse(results=[AclCreationResult(), bad]))
    refused = answered(create([ENTRY, OTHER]), table)
    assert list(refused) == [OTHER]
    assert (refused[OTHER].code, refused[OTHER].detail) == (ErrorCode.INVALID_REQUEST, "no")
    (first, second) = table.asked[0].request.creations
    assert (first.resource_name, first.resource_pattern_type, first.permission_type) == ("t", 3, 3)
    assert (second.principal, second.host, second.operation) == ("User:b", "::1", 2)


def test_each_filter_has_what_it_deleted() -> None:
    matching = DeleteAclsMatchingAcl(0, None, 3, "g", 4, "User:b", "::1", 2, 2)
    table = Table(DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(matching_acls=[matching]), DeleteAclsFilterResult()]))
    assert answered(delete([AclFilter(), AclFilter(ResourceType.TOPIC, "t")]), table) == [[OTHER], []]
    bad = DeleteAclsFilterResult(error_code=ErrorCode.INVALID_REQUEST)
    with pytest.raises(KafkaError):
        answered(delete([AclFilter()]), Table(DeleteAclsResponse(filter_results=[bad])))
