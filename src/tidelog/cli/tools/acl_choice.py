"""What the flags of ``acls`` mean: resources, principals, operations, and the ACLs or filters made of them; and ACLs as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import NamedTuple

from tidelog.cli import refusal
from tidelog.cli.refusal import CommandFailed
from tidelog.model.acl import (
    CLUSTER_NAME,
    OPERATIONS,
    WILDCARD,
    AccessControlEntry,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from tidelog.model.acl_filter import AclFilter

PRODUCER = {
    ResourceType.TOPIC: (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE),
}
"""What ``--producer`` stands for."""
CONSUMER = {
    ResourceType.TOPIC: (AclOperation.READ, AclOperation.DESCRIBE),
    ResourceType.GROUP: (AclOperation.READ,),
}
"""What ``--consumer`` stands for."""
FLAGS = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.CLUSTER: "cluster",
    ResourceType.TRANSACTIONAL_ID: "transactional-id",
    ResourceType.DELEGATION_TOKEN: "delegation-token",
    ResourceType.USER: "user-principal",
}
"""The flag of each type of resource."""
_BY_WORD = {each.name.replace("_", "").lower(): each for each in AclOperation if each > AclOperation.ANY}


class Pattern(NamedTuple):
    """A resource pattern, or a filter for some."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType

    def __str__(self) -> str:
        return f"ResourcePattern(resourceType={self.resource_type.name}, name={self.name}, patternType={self.pattern_type.name})"


class Rule(NamedTuple):
    """An ACL without its resource pattern."""

    principal: str
    host: str
    operation: AclOperation
    permission: PermissionType

    def __str__(self) -> str:
        rule = f"principal={self.principal}, host={self.host}, operation={self.operation.name}"
        return f"({rule}, permissionType={self.permission.name})"


Wanted = dict[Pattern, list[Rule]]
"""The rules of each resource pattern that the flags name."""


def pattern_of(entry: AccessControlEntry) -> Pattern:
    """The resource pattern of an ACL."""
    return Pattern(ResourceType(entry.resource_type), entry.resource_name, PatternType(entry.pattern_type))


def rule_of(entry: AccessControlEntry) -> Rule:
    """An ACL without its resource pattern."""
    return Rule(entry.principal, entry.host, AclOperation(entry.operation), PermissionType(entry.permission_type))


def entries(wanted: Wanted) -> Iterator[AccessControlEntry]:
    """The ACLs to create."""
    for pattern, rules in wanted.items():
        for rule in rules:
            yield AccessControlEntry(pattern.resource_type, pattern.name, pattern.pattern_type, *rule)


def filters(pattern: Pattern, rules: Iterable[Rule]) -> list[AclFilter]:
    """The filters that find these rules of a pattern; without rules, all of the pattern."""
    found = [AclFilter(pattern.resource_type, pattern.name, pattern.pattern_type, *rule) for rule in rules]
    return found or [AclFilter(pattern.resource_type, pattern.name, pattern.pattern_type)]


def operation_of(word: str) -> AclOperation:
    """``Read``, ``READ``, ``DescribeConfigs`` or ``DESCRIBE_CONFIGS``. CommandFailed for another word."""
    found = _BY_WORD.get(word.replace("_", "").replace("-", "").lower())
    if found is None:
        raise CommandFailed(f"{word} is not an operation; these are: {', '.join(title(each) for each in _BY_WORD.values())}.")
    return found


def title(operation: AclOperation) -> str:
    """As Kafka's tool writes it, such as ``DescribeConfigs``."""
    return operation.name.replace("_", " ").title().replace(" ", "")


def principal_of(text: str) -> str:
    """``Type:name``. CommandFailed for a text without a type."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise CommandFailed(f"A principal is Type:name, such as User:{name or kind}; {text} has no type.")
    return text


def patterns(names: Mapping[ResourceType, Iterable[str]], cluster: bool, pattern_type: PatternType) -> list[Pattern]:
    """The patterns that the flags of resources name."""
    found = [Pattern(kind, name.strip(), pattern_type) for kind, each in names.items() for name in each]
    if cluster and pattern_type is PatternType.LITERAL:
        found.append(Pattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL))
    return found


def rules(
    operations: Iterable[AclOperation],
    allowed: tuple[tuple[str, ...], tuple[str, ...]],
    denied: tuple[tuple[str, ...], tuple[str, ...]],
) -> list[Rule]:
    """Every combination; ``allowed`` and ``denied``: principals and hosts, no host standing for every host."""
    found = []
    for permission, (principals, hosts) in ((PermissionType.ALLOW, allowed), (PermissionType.DENY, denied)):
        for principal, host, operation in product(principals, hosts or (WILDCARD,), operations):
            found.append(Rule(principal_of(principal), host, operation, permission))
    return found


def wanted(
    chosen: Iterable[Pattern],
    operations: Iterable[AclOperation],
    allowed: tuple[tuple[str, ...], tuple[str, ...]],
    denied: tuple[tuple[str, ...], tuple[str, ...]],
    *,
    producer: bool,
    idempotent: bool,
    consumer: bool,
) -> Wanted:
    """The rules of each pattern. CommandFailed for an operation that its resource does not have."""
    found: Wanted = {}
    for pattern in chosen:
        if not (producer or consumer):
            _check_operations(pattern, operations)
            found[pattern] = rules(operations, allowed, denied)
            continue
        meant = dict.fromkeys(PRODUCER.get(pattern.resource_type, ()) if producer else ())
        meant |= dict.fromkeys(CONSUMER.get(pattern.resource_type, ()) if consumer else ())
        if idempotent and pattern.resource_type is ResourceType.CLUSTER:
            meant[AclOperation.IDEMPOTENT_WRITE] = None
        if meant:
            found[pattern] = rules(meant, allowed, denied)
    return found


def _check_operations(pattern: Pattern, operations: Iterable[AclOperation]) -> None:
    fitting = (AclOperation.ALL, *OPERATIONS[pattern.resource_type])
    if any(each not in fitting for each in operations):
        raise CommandFailed(f"{FLAGS[pattern.resource_type]} has these operations: {', '.join(title(each) for each in fitting)}.")


def check_flags(
    *,
    listing: bool,
    producer: bool,
    consumer: bool,
    idempotent: bool,
    given: Mapping[str, bool],
) -> None:
    """A usage error for flags that do not go together; ``given`` says which of the others are there."""
    if listing:
        _alone(
            "--list", given, ("--producer", "--consumer", "--allow-principal", "--allow-host", "--deny-principal", "--deny-host")
        )
    elif given["--principal"]:
        refusal.usage("--principal belongs to --list")
    for flag, there in (("--producer", producer), ("--consumer", consumer)):
        if there:
            _alone(flag, given, ("--operation", "--deny-principal", "--deny-host"))
    if idempotent and not producer:
        refusal.usage("--idempotent belongs to --producer")
    if producer and not given["--topic"]:
        refusal.usage("--producer needs a --topic")
    if consumer and not (given["--topic"] and given["--group"]):
        refusal.usage("--consumer needs a --topic and a --group")
    if consumer and not producer and (given["--cluster"] or given["--transactional-id"]):
        refusal.usage("--consumer takes neither --cluster nor --transactional-id")


def _alone(flag: str, given: Mapping[str, bool], others: Iterable[str]) -> None:
    for other in others:
        if given[other]:
            refusal.usage(f"{flag} and {other} do not go together")
