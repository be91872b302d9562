from __future__ import annotations

import pytest

from tests.unit.broker.node_world import NodeWorld
from tidelog.broker.apis.cluster.acls import create_acls, delete_acls, describe_acls
from tidelog.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from tidelog.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tidelog.protocol.messages.describe_acls import DescribeAclsRequest


@pytest.mark.parametrize("version", range(1, 4))
def test_without_an_authorizer_all_that_concerns_acls_is_answered_security_disabled(version: int) -> None:
    ctx = NodeWorld().context(version)
    described = describe_acls(ctx, DescribeAclsRequest())
    created = create_acls(ctx, CreateAclsRequest(creations=[AclCreation(), AclCreation()]))
    deleted = delete_acls(ctx, DeleteAclsRequest(filters=[DeleteAclsFilter()]))
    assert (described.error_code, described.resources) == (54, [])
    assert [each.error_code for each in created.results] == [54, 54]
    assert [(each.error_code, each.matching_acls) for each in deleted.filter_results] == [(54, [])]
    for response in (described, created, deleted):
        type(response).decode(response.encode(version), version)
