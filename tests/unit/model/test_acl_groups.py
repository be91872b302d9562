from __future__ import annotations

import pytest

from tidelog.model.acl import AccessControlEntry, AclOperation, PatternType, PermissionType, ResourceType
from tidelog.model.acl_groups import groups_take_rights, is_beyond_kafka, is_group_or_role, is_membership


def acl(
    principal: str = "User:alice",
    kind: int = ResourceType.USER,
    name: str = "Role:readers",
    pattern: int = PatternType.LITERAL,
    operation: int = AclOperation.ALL,
    permission: int = PermissionType.ALLOW,
) -> AccessControlEntry:
    return AccessControlEntry(kind, name, pattern, principal, "*", operation, permission)


@pytest.mark.parametrize("permission", [PermissionType.ALLOW, PermissionType.DENY])
def test_all_on_the_literal_name_of_a_role_is_a_membership(permission: int) -> None:
    assert is_membership(acl(permission=permission))
    assert is_beyond_kafka(acl(permission=permission))


@pytest.mark.parametrize(
    "other",
    [
        acl(name="User:alice"),
        acl(name="*"),
        acl(name="Role"),
        acl(name="Role:", pattern=PatternType.PREFIXED),
        acl(kind=ResourceType.TOPIC),
        acl(operation=AclOperation.DESCRIBE_TOKENS),
    ],
)
def test_what_gives_rights_on_tokens_or_topics_is_no_membership(other: AccessControlEntry) -> None:
    assert not is_membership(other)
    assert not is_beyond_kafka(other)


@pytest.mark.parametrize(
    ("principal", "beyond"), [("Group:staff", True), ("Role:x", True), ("Groups:x", False), ("User:Role:x", False)]
)
def test_a_principal_that_kafkas_clients_never_have(principal: str, beyond: bool) -> None:
    assert is_beyond_kafka(acl(principal, ResourceType.TOPIC, "t", operation=AclOperation.READ)) is beyond


def test_types_of_principals_that_stand_for_several_clients() -> None:
    assert [each for each in ("User", "Group", "Role", "group", "") if is_group_or_role(each)] == ["Group", "Role"]


@pytest.mark.parametrize(
    ("entry", "takes"),
    [
        (acl("Group:staff", ResourceType.TOPIC, "t", permission=PermissionType.DENY), True),
        (acl("Group:staff"), True),
        (acl("Group:staff", permission=PermissionType.DENY), True),
        (acl("Group:staff", ResourceType.TOPIC, "t"), False),
        (acl("User:alice"), False),
        (acl("User:alice", ResourceType.TOPIC, "t", permission=PermissionType.DENY), False),
        (acl("Role:readers", ResourceType.TOPIC, "t", permission=PermissionType.DENY), False),
    ],
)
def test_a_group_takes_rights_by_a_deny_or_by_a_role(entry: AccessControlEntry, takes: bool) -> None:
    assert groups_take_rights([acl("User:bob"), entry]) is takes
