"""ACLs as values: who may do what to which resources. The numbers are Kafka's, on the wire and in the metadata log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol


class AclOperation(IntEnum):
    """Kafka's ``AclOperation``."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    """Kafka's ``ResourceType``."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """Kafka's ``PatternType`` (KIP-290). An ACL is LITERAL or PREFIXED; ANY and MATCH occur in filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class PermissionType(IntEnum):
    """Kafka's ``AclPermissionType``."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


WILDCARD = "*"
"""As a LITERAL resource name: every resource of the type. As a host: every host."""
CLUSTER_NAME = "kafka-cluster"
"""The name of the only CLUSTER resource."""


@dataclass(frozen=True, slots=True)
class AccessControlEntry:
    """One ACL: a permission for a principal, from a host, on the resources that a pattern matches."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    """``Type:name``; ``User:*`` is every user."""
    host: str
    """An IP address as text, or ``*``."""
    operation: int
    permission_type: int

    def covers(self, resource_name: str) -> bool:
        """Whether the pattern matches the name of a resource of its type."""
        if self.pattern_type == PatternType.PREFIXED:
            return resource_name.startswith(self.resource_name)
        return self.resource_name in (resource_name, WILDCARD)


class AclFields(Protocol):
    """What requests, responses and records name alike of an ACL; the pattern's type has several names."""

    resource_type: int
    resource_name: str
    principal: str
    host: str
    operation: int
    permission_type: int


def acl_of(fields: AclFields, pattern_type: int) -> AccessControlEntry:
    """The ACL that a message has."""
    return AccessControlEntry(
        resource_type=fields.resource_type,
        resource_name=fields.resource_name,
        pattern_type=pattern_type,
        principal=fields.principal,
        host=fields.host,
        operation=fields.operation,
        permission_type=fields.permission_type,
    )


OPERATIONS: Mapping[int, tuple[AclOperation, ...]] = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    ResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}
"""The operations that mean something for each type of resource."""
