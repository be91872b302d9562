from __future__ import annotations

from typing import Any

import pytest

from tidelog.model.acl import AccessControlEntry, AclOperation, PatternType, PermissionType, ResourceType
from tidelog.testing import allow, deny


def test_a_rule_is_one_acl_for_each_operation() -> None:
    assert allow("alice", "read", "Describe", topic="orders") == tuple(
        AccessControlEntry(ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:alice", "*", each, PermissionType.ALLOW)
        for each in (AclOperation.READ, AclOperation.DESCRIBE)
    )
    assert deny("*", "all", group="team-", prefixed=True, host="10.0.0.1") == (
        AccessControlEntry(
            ResourceType.GROUP, "team-", PatternType.PREFIXED, "User:*", "10.0.0.1", AclOperation.ALL, PermissionType.DENY
        ),
    )
    assert [each.resource_name for each in allow("a", "alter", cluster=True)] == ["kafka-cluster"]
    assert [each.resource_type for each in allow("a", "write", transactional_id="x")] == [ResourceType.TRANSACTIONAL_ID]


@pytest.mark.parametrize(
    ("operations", "resource", "message"),
    [
        (["read"], {}, "for one resource"),
        (["read"], {"topic": "a", "group": "b"}, "for one resource"),
        ([], {"topic": "a"}, "nothing is no operation"),
        (["reed"], {"topic": "a"}, "reed is no operation; there are all, read, write"),
        (["any"], {"topic": "a"}, "any is no operation"),
    ],
)
def test_a_mistake_is_said(operations: list[str], resource: dict[str, Any], message: str) -> None:
    for make in (allow, deny):
        with pytest.raises(ValueError, match=message):
            make("alice", *operations, **resource)
