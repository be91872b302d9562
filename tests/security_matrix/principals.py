"""The users of the matrix: none, each single and all rights, some that are needed together, and all rights but one.

A right is an operation on a resource type. It is given on names that begin with ``open-``, on the internal topics, on all tokens
and on the cluster; resources whose names begin with ``hidden-`` exist, and no ACL names them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidelog.model.acl import CLUSTER_NAME, WILDCARD, AccessControlEntry, PatternType, PermissionType
from tidelog.model.acl import AclOperation as Op
from tidelog.model.acl import ResourceType as Type

OPEN = "open-"
HIDDEN = "hidden-"
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__cluster_metadata")
PASSWORD = "secret"
SUPER_USERS = ("root", "node")
OPERATIONS: dict[Type, tuple[Op, ...]] = {
    Type.TOPIC: (
        Op.READ,
        Op.WRITE,
        Op.CREATE,
        Op.DELETE,
        Op.ALTER,
        Op.DESCRIBE,
        Op.DESCRIBE_CONFIGS,
        Op.ALTER_CONFIGS,
    ),
    Type.GROUP: (Op.READ, Op.DELETE, Op.DESCRIBE, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS),
    # DELETE is not an operation of the cluster, but DeleteTopics asks for it.
    Type.CLUSTER: (
        Op.CREATE,
        Op.DELETE,
        Op.ALTER,
        Op.DESCRIBE,
        Op.CLUSTER_ACTION,
        Op.DESCRIBE_CONFIGS,
        Op.ALTER_CONFIGS,
        Op.IDEMPOTENT_WRITE,
    ),
    Type.TRANSACTIONAL_ID: (Op.DESCRIBE, Op.WRITE, Op.TWO_PHASE_COMMIT),
    Type.DELEGATION_TOKEN: (Op.DESCRIBE,),
    Type.USER: (Op.CREATE_TOKENS, Op.DESCRIBE_TOKENS),
}

TOGETHER: tuple[tuple[tuple[Type, Op], ...], ...] = (
    ((Type.TOPIC, Op.DESCRIBE), (Type.TOPIC, Op.CREATE)),
    ((Type.TOPIC, Op.DESCRIBE), (Type.CLUSTER, Op.CREATE)),
    ((Type.TOPIC, Op.DESCRIBE), (Type.CLUSTER, Op.DELETE)),
    ((Type.GROUP, Op.READ), (Type.TOPIC, Op.READ)),
    ((Type.GROUP, Op.READ), (Type.TOPIC, Op.DESCRIBE)),
    ((Type.GROUP, Op.DESCRIBE), (Type.TOPIC, Op.DESCRIBE)),
    ((Type.GROUP, Op.DELETE), (Type.TOPIC, Op.READ)),
    ((Type.TRANSACTIONAL_ID, Op.WRITE), (Type.TOPIC, Op.WRITE)),
    ((Type.TRANSACTIONAL_ID, Op.WRITE), (Type.GROUP, Op.READ)),
    ((Type.TRANSACTIONAL_ID, Op.WRITE), (Type.GROUP, Op.READ), (Type.TOPIC, Op.READ)),
    ((Type.TRANSACTIONAL_ID, Op.DESCRIBE), (Type.TOPIC, Op.DESCRIBE)),
)
"""The smallest sets of rights that let a request with several checks through."""
AND = "_and_"


@dataclass(frozen=True)
class Principal:
    """A user and the rights that its ACLs give."""

    user: str
    acls: tuple[AccessControlEntry, ...] = ()


def _patterns(kind: Type) -> tuple[tuple[str, PatternType], ...]:
    if kind is Type.CLUSTER:
        return ((CLUSTER_NAME, PatternType.LITERAL),)
    if kind is Type.DELEGATION_TOKEN:
        # Their ids are random.
        return ((WILDCARD, PatternType.LITERAL),)
    if kind is Type.USER:
        return ((f"User:{OPEN}", PatternType.PREFIXED),)
    internal = INTERNAL_TOPICS if kind is Type.TOPIC else ()
    return ((OPEN, PatternType.PREFIXED), *((name, PatternType.LITERAL) for name in internal))


def _acls(user: str, kind: Type, operation: Op, permission: PermissionType, host: str = "*") -> Iterator[AccessControlEntry]:
    for name, pattern in _patterns(kind):
        yield AccessControlEntry(kind, name, pattern, f"User:{user}", host, operation, permission)


def _all(user: str, host: str = "*") -> tuple[AccessControlEntry, ...]:
    return tuple(acl for kind in OPERATIONS for acl in _acls(user, kind, Op.ALL, PermissionType.ALLOW, host))


def name_of(kind: Type, operation: Op) -> str:
    """``topic-read``."""
    return f"{kind.name}-{operation.name}".lower().replace("_", "-")


def _principals() -> Iterator[Principal]:
    yield Principal("none")
    yield Principal("root")
    yield Principal("all", _all("all"))
    yield Principal("elsewhere", _all("elsewhere", "192.0.2.1"))
    for kind, operations in OPERATIONS.items():
        for operation in operations:
            right = name_of(kind, operation)
            yield Principal(right, tuple(_acls(right, kind, operation, PermissionType.ALLOW)))
            but = f"but-{right}"
            yield Principal(but, (*_all(but), *_acls(but, kind, operation, PermissionType.DENY)))
    for rights in TOGETHER:
        user = AND.join(name_of(*right) for right in rights)
        yield Principal(user, tuple(acl for right in rights for acl in _acls(user, *right, PermissionType.ALLOW)))


PRINCIPALS: dict[str, Principal] = {each.user: each for each in _principals()}
"""By name. ``root`` is a super user; ``but-...`` has ALL on everything and one operation denied; ``elsewhere`` may do all from
another host."""


def jaas(*, node: bool) -> str:
    """The server's JAAS entry with all users; ``node``: with the login of the node itself."""
    own = f' username="node" password="{PASSWORD}"' if node else ""
    users = "".join(f' user_{name}="{PASSWORD}"' for name in dict.fromkeys((*PRINCIPALS, *SUPER_USERS)))
    return f"org.apache.kafka.common.security.plain.PlainLoginModule required{own}{users};"
