"""ACLs of tests: what is not said is the usual."""

from __future__ import annotations

from tidelog.model.acl import AccessControlEntry, AclOperation, PatternType, PermissionType, ResourceType


def acl(
    name: str = "orders",
    operation: int = AclOperation.READ,
    principal: str = "User:alice",
    permission: int = PermissionType.ALLOW,
    pattern: int = PatternType.LITERAL,
    host: str = "*",
    resource: int = ResourceType.TOPIC,
) -> AccessControlEntry:
    return AccessControlEntry(resource, name, pattern, principal, host, operation, permission)


def member(who: str, role: str = "Role:readers", permission: int = PermissionType.ALLOW, host: str = "*") -> AccessControlEntry:
    """The ACL that gives a role to a user or a group."""
    return acl(role, AclOperation.ALL, who, permission, host=host, resource=ResourceType.USER)
