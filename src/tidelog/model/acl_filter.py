"""Which ACLs a filter of DescribeAcls or DeleteAcls matches, and which ACLs CreateAcls accepts (KIP-140, KIP-290)."""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.model.acl import (
    CLUSTER_NAME,
    WILDCARD,
    AccessControlEntry,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from tidelog.model.errors import ErrorCode, KafkaError

MAX_CHANGES = 10_000
"""ACLs that one request may create or delete."""


@dataclass(frozen=True, slots=True)
class AclFilter:
    """A filter; None and ANY match everything. Principal and host match as exact text: ``User:*`` finds only that entry."""

    resource_type: int = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = AclOperation.ANY
    permission_type: int = PermissionType.ANY

    def matches(self, entry: AccessControlEntry) -> bool:
        """Whether the filter finds this ACL."""
        return (
            self.resource_type in (ResourceType.ANY, entry.resource_type)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission_type in (PermissionType.ANY, entry.permission_type)
            and self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self._matches_pattern(entry)
        )

    def _matches_pattern(self, entry: AccessControlEntry) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, entry.pattern_type):
            return False
        if self.resource_name is None or self.resource_name == entry.resource_name:
            return True
        return self.pattern_type == PatternType.MATCH and entry.covers(self.resource_name)

    def check(self) -> None:
        """KafkaError INVALID_REQUEST for a filter with a number that Kafka does not know."""
        _known("resource type", self.resource_type, ResourceType)
        _known("pattern type", self.pattern_type, PatternType)
        _known("operation", self.operation, AclOperation)
        _known("permission type", self.permission_type, PermissionType)


def check_creation(entry: AccessControlEntry) -> None:
    """KafkaError INVALID_REQUEST for an ACL that must not be stored. Any operation may stand beside any resource type."""
    for what, number, numbers in (
        ("resource type", entry.resource_type, ResourceType),
        ("pattern type", entry.pattern_type, PatternType),
        ("operation", entry.operation, AclOperation),
        ("permission type", entry.permission_type, PermissionType),
    ):
        _known(what, number, numbers)
        if number == numbers["ANY"]:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"an ACL has one {what}: ANY is for filters")
    if entry.pattern_type == PatternType.MATCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "an ACL has the pattern type LITERAL or PREFIXED: MATCH is for filters")
    if not entry.resource_name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"an ACL names a resource; {WILDCARD!r} is all of a type")
    if entry.resource_type == ResourceType.CLUSTER and entry.resource_name != CLUSTER_NAME:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"the cluster is named {CLUSTER_NAME!r} in ACLs, not {entry.resource_name[:50]!r}"
        )
    if ":" not in entry.principal:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"the principal {entry.principal[:50]!r} has no type: write User:{entry.principal[:50]}"
        )


def _known(what: str, number: int, numbers: type[ResourceType | PatternType | AclOperation | PermissionType]) -> None:
    if number == 0 or number not in numbers._value2member_map_:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{number} is not the number of a {what}")
