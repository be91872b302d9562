from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.broker.allowing import Allowing
from tests.unit.broker.node_world import NodeWorld
from tidelog.broker.apis.cluster.acls import create_acls, delete_acls, describe_acls
from tidelog.broker.node import BrokerContext
from tidelog.broker.refusals import REGULAR
from tidelog.model.acl import AccessControlEntry, PatternType, PermissionType, ResourceType
from tidelog.model.acl import AclOperation as Op
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import Uuid
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from tidelog.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tidelog.protocol.messages.describe_acls import DescribeAclsRequest

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ACLS = (
    AccessControlEntry(TOPIC, "orders", LITERAL, "User:alice", "*", Op.READ, PermissionType.ALLOW),
    AccessControlEntry(TOPIC, "orders", LITERAL, "User:bob", "::1", Op.WRITE, PermissionType.DENY),
    AccessControlEntry(TOPIC, "or", PREFIXED, "User:*", "*", Op.DESCRIBE, PermissionType.ALLOW),
    AccessControlEntry(GROUP, "*", LITERAL, "User:alice", "*", Op.READ, PermissionType.ALLOW),
)


def context(version: int = 3, access: Allowing | None = None) -> BrokerContext:
    world = NodeWorld()
    world.broker.access = access
    acls = {Uuid(number.to_bytes(16)): entry for number, entry in enumerate(ACLS)}
    world.broker.image = replace(world.broker.image, acls=acls)
    return world.context(version)


def described(version: int = 3, **wanted: Any) -> dict[tuple[int, str, int], list[tuple[str, str, int, int]]]:
    fields: dict[str, Any] = {
        "resource_type_filter": ResourceType.ANY,
        "resource_name_filter": None,
        "pattern_type_filter": PatternType.ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": Op.ANY,
        "permission_type": PermissionType.ANY,
    }
    response = describe_acls(context(version, Allowing()), DescribeAclsRequest(**(fields | wanted)))
    assert response.error_code == 0
    response.encode(version)
    return {
        (each.resource_type, each.resource_name, each.pattern_type): [
            (acl.principal, acl.host, acl.operation, acl.permission_type) for acl in each.acls
        ]
        for each in response.resources
    }


@pytest.mark.parametrize("version", range(1, 4))
def test_acls_are_listed_by_resource_as_they_are_stored(version: int) -> None:
    assert described(version) == {
        (TOPIC, "orders", LITERAL): [
            ("User:alice", "*", Op.READ, PermissionType.ALLOW),
            ("User:bob", "::1", Op.WRITE, PermissionType.DENY),
        ],
        (TOPIC, "or", PREFIXED): [("User:*", "*", Op.DESCRIBE, PermissionType.ALLOW)],
        (GROUP, "*", LITERAL): [("User:alice", "*", Op.READ, PermissionType.ALLOW)],
    }


def test_a_filter_narrows_by_each_field() -> None:
    assert list(described(resource_type_filter=GROUP)) == [(GROUP, "*", LITERAL)]
    assert list(described(resource_name_filter="orders")) == [(TOPIC, "orders", LITERAL)]
    match = described(resource_name_filter="orders", pattern_type_filter=PatternType.MATCH)
    assert list(match) == [(TOPIC, "orders", LITERAL), (TOPIC, "or", PREFIXED), (GROUP, "*", LITERAL)]
    assert list(described(principal_filter="User:*")) == [(TOPIC, "or", PREFIXED)]
    assert described(host_filter="::1", operation=Op.WRITE) == {
        (TOPIC, "orders", LITERAL): [("User:bob", "::1", Op.WRITE, PermissionType.DENY)]
    }
    assert described(host_filter="0:0:0:0:0:0:0:1") == {}


def test_a_filter_with_an_unknown_number_is_refused() -> None:
    with pytest.raises(KafkaError) as refused:
        described(operation=99)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", range(1, 4))
@pytest.mark.parametrize(
    ("handler", "key", "request_"),
    [
        (describe_acls, ApiKey.DESCRIBE_ACLS, DescribeAclsRequest()),
        (create_acls, ApiKey.CREATE_ACLS, CreateAclsRequest(creations=[AclCreation(), AclCreation()])),
        (delete_acls, ApiKey.DELETE_ACLS, DeleteAclsRequest(filters=[DeleteAclsFilter(), DeleteAclsFilter()])),
    ],
)
def test_without_an_authorizer_all_that_concerns_acls_is_answered_security_disabled(
    handler: Any, key: ApiKey, request_: Any, version: int
) -> None:
    ctx = context(version)
    ctx.api_key = key
    with pytest.raises(KafkaError) as refused:
        handler(ctx, request_)
    response: Any = REGULAR(ctx, request_, refused.value)
    type(response).decode(response.encode(version), version)
    if key is ApiKey.DESCRIBE_ACLS:
        assert (response.error_code, response.resources) == (ErrorCode.SECURITY_DISABLED, [])
    else:
        entries = response.results if key is ApiKey.CREATE_ACLS else response.filter_results
        assert [each.error_code for each in entries] == [ErrorCode.SECURITY_DISABLED] * 2
