"""Least privilege: from what a principal did, by the lines of the audit, to the ACLs that allow that and no more.

The lines hold every kind of operation at least once an interval (``broker.audit``), so each operation that was done is there
however many were left out. What went through in a dry run was done; what was denied was not, unless it is asked for.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tidelog.broker.audit.events import ANY, AUTHORIZATION
from tidelog.cli.tools.acl_choice import FLAGS, title
from tidelog.cli.tools.acl_explanation import command_of
from tidelog.model.acl import WILDCARD, AccessControlEntry, AclOperation, PermissionType, ResourceType
from tidelog.security.authorizer import IMPLIED, address_text


class Use(NamedTuple):
    """An operation on a resource, from an address. The name ANY: on some resource of the type."""

    resource_type: ResourceType
    name: str
    operation: AclOperation
    host: str


@dataclass
class Done:
    """What one principal did, as far as the lines say."""

    uses: set[Use] = field(default_factory=set)
    denied: set[Use] = field(default_factory=set)
    unreadable: int = 0
    """Lines that are no events, or whose names are cut."""
    first: str = ""
    """The time of the first event of the principal; empty without any."""
    last: str = ""


def read(lines: Iterable[str], principal: str) -> Done:
    """What the principal did and was denied."""
    done = Done()
    for line in lines:
        try:
            event = json.loads(line)
            if event["type"] != AUTHORIZATION or event["principal"] != principal:
                continue
            use = _use(event)
            if event.get("cut"):
                raise ValueError("a name is cut")
            went_through = event["allowed"] or event.get("dryRun", False)
            time = event["time"]
        except (ValueError, KeyError, TypeError):
            done.unreadable += bool(line.strip())
            continue
        (done.uses if went_through else done.denied).add(use)
        done.first = min(done.first or time, time)
        done.last = max(done.last, time)
    return done


def _use(event: Mapping[str, Any]) -> Use:
    kind, operation = ResourceType[event["resourceType"]], AclOperation[event["operation"]]
    return Use(kind, str(event["resourceName"]), operation, address_text(str(event["host"])))


class Needed(NamedTuple):
    """One command's worth of ACLs: these operations, from these addresses, on each of these resources."""

    resource_type: ResourceType
    operations: tuple[AclOperation, ...]
    hosts: tuple[str, ...]
    """Empty for every address."""
    names: tuple[str, ...]


def needed(uses: Iterable[Use], *, with_hosts: bool) -> list[Needed]:
    """What allows these uses and no more, but for what an operation includes by itself. A question about some resource of a type
    is left to the resources that were used after it."""
    by_resource: dict[tuple[ResourceType, str], dict[str, set[AclOperation]]] = {}
    for use in uses:
        if use.name != ANY:
            hosts = by_resource.setdefault((use.resource_type, use.name), {})
            hosts.setdefault(use.host if with_hosts else WILDCARD, set()).add(use.operation)
    names: dict[tuple[ResourceType, tuple[AclOperation, ...], tuple[str, ...]], list[str]] = {}
    for (kind, name), hosts in sorted(by_resource.items()):
        by_operations: dict[tuple[AclOperation, ...], list[str]] = {}
        for host, operations in sorted(hosts.items()):
            by_operations.setdefault(_without_implied(operations), []).append(host)
        for wanted, from_hosts in by_operations.items():
            key = kind, wanted, () if from_hosts == [WILDCARD] else tuple(from_hosts)
            names.setdefault(key, []).append(name)
    return [Needed(*key, tuple(of_key)) for key, of_key in names.items()]


def _without_implied(operations: set[AclOperation]) -> tuple[AclOperation, ...]:
    return tuple(sorted(each for each in operations if not IMPLIED.get(each, frozenset()) & operations))


def unused(entries: Iterable[AccessControlEntry], principal: str, uses: Iterable[Use]) -> list[AccessControlEntry]:
    """The ALLOW entries of this very principal that allowed none of these uses."""
    found = _telling(uses)
    return [
        entry
        for entry in entries
        if entry.principal == principal
        and entry.permission_type == PermissionType.ALLOW
        and not any(_allows(entry, use) for use in found)
    ]


def _telling(uses: Iterable[Use]) -> list[Use]:
    """The uses without questions about some resource that a use of such a resource followed."""
    found = list(uses)
    known = {(use.resource_type, use.operation) for use in found if use.name != ANY}
    return [use for use in found if use.name != ANY or (use.resource_type, use.operation) not in known]


def _allows(entry: AccessControlEntry, use: Use) -> bool:
    operations = {use.operation, AclOperation.ALL, *IMPLIED.get(use.operation, ())}
    return (
        entry.resource_type == use.resource_type
        and (use.name == ANY or entry.covers(use.name))
        and entry.operation in operations
        and address_text(entry.host) in (WILDCARD, use.host)
    )


def suggestion(
    done: Done,
    principal: str,
    existing: Sequence[AccessControlEntry] | None,
    connection: Sequence[str],
    *,
    with_hosts: bool,
    with_denied: bool,
) -> Iterator[str]:
    """The lines to print: commands, and comments for a shell. ``existing``: the ACLs of the cluster, None when it was not asked;
    ``connection``: the flags of the connection, for the commands."""
    if done.unreadable:
        yield f"# {done.unreadable} lines could not be read."
    uses = done.uses | done.denied if with_denied else done.uses
    if not uses:
        yield f"# The audit has nothing that {principal} did."
    else:
        yield f"# What {principal} did from {done.first} to {done.last}:"
        for each in needed(uses, with_hosts=with_hosts):
            yield _add(connection, principal, each)
    for use in sorted(each for each in _telling(uses) if each.name == ANY):
        yield f"# It also asked whether it may {title(use.operation)} some {FLAGS[use.resource_type]}, and did with none."
    if done.denied and not with_denied:
        yield f"# {len(done.denied)} kinds of operations were denied and are not in it; --denied adds them."
    if existing is None:
        yield "# Give --bootstrap-server to compare this with the ACLs that there are."
        return
    left = unused(existing, principal, uses)
    if left:
        yield "# These ACLs allowed nothing of it. To remove them:"
        for entry in left:
            yield f"# {command_of(connection, 'remove', entry)}"


def _add(connection: Sequence[str], principal: str, each: Needed) -> str:
    words = ["tidelog", "acls", *connection, "--add", "--allow-principal", principal]
    for host in each.hosts:
        words += ["--allow-host", host]
    for operation in each.operations:
        words += ["--operation", title(operation)]
    flag = f"--{FLAGS[each.resource_type]}"
    for name in each.names:
        words += [flag] if each.resource_type is ResourceType.CLUSTER else [flag, name]
    return shlex.join(words)
