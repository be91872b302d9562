"""ACLs as a test writes them: ``acls=[allow("alice", "read", topic="orders"), deny("bob", "write", topic="*")]``."""

from __future__ import annotations

from dataclasses import replace

from tidelog.model.acl import CLUSTER_NAME, WILDCARD, AccessControlEntry, AclOperation, PatternType, PermissionType, ResourceType

Rule = tuple[AccessControlEntry, ...]
"""What ``allow`` and ``deny`` give: one ACL for each operation."""
OPERATIONS = {each.name: each for each in AclOperation if each > AclOperation.ANY}


def allow(
    user: str,
    *operations: str,
    topic: str | None = None,
    group: str | None = None,
    transactional_id: str | None = None,
    cluster: bool = False,
    prefixed: bool = False,
    host: str = WILDCARD,
) -> Rule:
    """The user may do these operations on one resource, from one host or from everywhere. Since 0.2.

    ``user``: a name, or ``*`` for everyone. ``operations``: Kafka's names, such as ``"read"``. One of ``topic``, ``group`` and
    ``transactional_id`` is the resource, ``*`` for all of its type, or ``cluster=True``; with ``prefixed`` it is all resources
    whose names begin so. ValueError for an operation that does not exist, or without exactly one resource.
    """
    names = {ResourceType.TOPIC: topic, ResourceType.GROUP: group, ResourceType.TRANSACTIONAL_ID: transactional_id}
    names[ResourceType.CLUSTER] = CLUSTER_NAME if cluster else None
    found = [(kind, name) for kind, name in names.items() if name is not None]
    if len(found) != 1:
        raise ValueError("an ACL is for one resource: topic=, group=, transactional_id= or cluster=True")
    unknown = [each for each in operations if each.upper() not in OPERATIONS]
    if unknown or not operations:
        raise ValueError(f"{unknown[0] if unknown else 'nothing'} is no operation; there are {', '.join(OPERATIONS).lower()}")
    ((kind, name),) = found
    return tuple(
        AccessControlEntry(
            resource_type=kind,
            resource_name=name,
            pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
            principal=f"User:{user}",
            host=host,
            operation=OPERATIONS[each.upper()],
            permission_type=PermissionType.ALLOW,
        )
        for each in operations
    )


def deny(
    user: str,
    *operations: str,
    topic: str | None = None,
    group: str | None = None,
    transactional_id: str | None = None,
    cluster: bool = False,
    prefixed: bool = False,
    host: str = WILDCARD,
) -> Rule:
    """The user may not do these operations, whatever else allows them; otherwise as ``allow``. Since 0.2."""
    allowed = allow(
        user,
        *operations,
        topic=topic,
        group=group,
        transactional_id=transactional_id,
        cluster=cluster,
        prefixed=prefixed,
        host=host,
    )
    return tuple(replace(each, permission_type=PermissionType.DENY) for each in allowed)
