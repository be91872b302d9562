"""ACLs for groups and roles, which Apache Kafka stores and lists like any other, and whose principals its authorizer never meets.

A principal ``Group:name`` is given to a client by its token or its certificate. A principal ``Role:name`` is given by an ACL, the
*membership*: ALLOW of ALL on the resource USER with the literal name ``Role:name``. Its principal, a user or a group, is a member
of the role, from the addresses that the membership names; a DENY takes the members out. Nothing else asks for that resource,
because only users own delegation tokens.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tidelog.model.acl import AccessControlEntry, AclOperation, PatternType, PermissionType, ResourceType

GROUP: Final = "Group"
ROLE: Final = "Role"
_OURS: Final = (f"{GROUP}:", f"{ROLE}:")


def is_group_or_role(principal_type: str) -> bool:
    """Whether principals of this type stand for several clients."""
    return principal_type in (GROUP, ROLE)


def is_membership(entry: AccessControlEntry) -> bool:
    """Whether the ACL says who is a member of a role; its resource name is then the role's principal."""
    return (
        entry.resource_type == ResourceType.USER
        and entry.pattern_type == PatternType.LITERAL
        and entry.operation == AclOperation.ALL
        and entry.resource_name.startswith(_OURS[1])
    )


def groups_take_rights(acls: Iterable[AccessControlEntry]) -> bool:
    """Whether a client can lose a right by being in a group: a DENY names a group, or a group has a role, which a DENY may
    name."""
    denial = PermissionType.DENY
    return any(each.principal.startswith(_OURS[0]) and (each.permission_type == denial or is_membership(each)) for each in acls)


def is_beyond_kafka(entry: AccessControlEntry) -> bool:
    """Whether Apache Kafka's authorizer decides otherwise where this ACL exists."""
    return entry.principal.startswith(_OURS) or is_membership(entry)
