"""Why a client may or may not: the rule that decides, by the ACLs that a cluster shows, or the missing one as a command.

A cluster does not show ``super.users`` and ``allow.everyone.if.no.acl.found``: DescribeConfigs hides their values. Where they
would change the answer, the explanation says so.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.acl_choice import FLAGS, operation_of, pattern_of, principal_of, rule_of, title
from tidelog.client.admin import acls, configs, topics
from tidelog.client.admin.results import ResourceType as ConfigResource
from tidelog.client.calls import Call
from tidelog.client.connection import UnsupportedByBroker
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
from tidelog.model.acl_groups import GROUP, is_membership
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import Uuid
from tidelog.security.authorizer import EVERY_USER, Authorizer, Rule, address_text
from tidelog.security.principal import KafkaPrincipal, group_principals, with_groups

SUPER_USERS, ALLOW_WITHOUT_ACL = "super.users", "allow.everyone.if.no.acl.found"


class Question(NamedTuple):
    """May this principal do this on that resource? ``host`` None: from an address that no ACL names."""

    principal: str
    operation: AclOperation
    resource_type: ResourceType
    name: str
    host: str | None
    groups: frozenset[str] = frozenset()
    """Principals of the groups that the client's token or certificate names."""


class Knowledge(NamedTuple):
    """What a cluster shows. ``entries`` None: it has no authorizer."""

    entries: Sequence[AccessControlEntry] | None
    hidden: frozenset[str]
    """The names of settings that are set on some broker and whose values are not shown."""


def question_of(principal: str, operation: str, resource: str, host: str | None, groups: Sequence[str] = ()) -> Question:
    """The question in words of the command line. CommandFailed says what cannot be read."""
    kind, _, name = resource.partition(":")
    found = next((each for each, flag in FLAGS.items() if flag == kind.lower().replace("_", "-")), None)
    if found is None or (not name and found is not ResourceType.CLUSTER):
        raise CommandFailed(
            f"{resource} is not a resource: write topic:NAME, group:NAME, cluster, transactional-id:NAME or the like."
        )
    done = operation_of(operation)
    if done is not AclOperation.ALL and done not in OPERATIONS[found]:
        fitting = ", ".join(title(each) for each in OPERATIONS[found])
        raise CommandFailed(f"{kind} has these operations: {fitting}.")
    try:
        among = group_principals(each.removeprefix(f"{GROUP}:") for each in groups)
    except ValueError as problem:
        raise CommandFailed(f"{problem}.") from None
    return Question(principal_of(principal), done, found, CLUSTER_NAME if found is ResourceType.CLUSTER else name, host, among)


def knowledge() -> Call[Knowledge]:
    """Asks the cluster. KafkaError, such as CLUSTER_AUTHORIZATION_FAILED without DESCRIBE on the cluster."""
    try:
        entries = yield from acls.describe()
    except KafkaError as error:
        if error.code is ErrorCode.SECURITY_DISABLED:
            return Knowledge(None, frozenset())
        raise
    hidden: set[str] = set()
    try:
        for broker in (yield from topics.brokers()):
            shown = yield from configs.describe(ConfigResource.BROKER, str(broker), (SUPER_USERS, ALLOW_WITHOUT_ACL))
            hidden.update(shown)
    except (KafkaError, UnsupportedByBroker):  # Not allowed, or asked of controllers, which describe no brokers.
        hidden.update((SUPER_USERS, ALLOW_WITHOUT_ACL))
    return Knowledge(entries, frozenset(hidden))


def explained(known: Knowledge, question: Question, connection: Sequence[str]) -> Iterator[str]:
    """The answer, line by line; ``connection``: the flags of the connection, for the commands in it."""
    asked = f"{question.principal} {{}} {title(question.operation)} {FLAGS[question.resource_type]} {question.name}" + (
        f" from {question.host}" if question.host else ""
    )
    if known.entries is None:
        yield f"{asked.format('may')}: the cluster has no authorizer, so every client may do everything."
        return
    authorizer, principal, host = _authorizer(known.entries), _principal(question), _host(question)
    decision = authorizer.decide(principal, host, question.operation, question.resource_type, question.name)
    roles = authorizer.roles(principal, host)
    if decision.acl is not None:
        yield f"{asked.format('may' if decision.allowed else 'may not')}. This ACL decides:"
        yield f"    {rule_of(decision.acl)} on {pattern_of(decision.acl)}"
        if (membership := roles.get(decision.acl.principal)) is not None and decision.acl.principal != question.principal:
            yield f"It counts because {question.principal} has that role, by this ACL:"
            yield f"    {rule_of(membership)} on {pattern_of(membership)}"
        if not decision.allowed:
            yield "A DENY wins over every ALLOW. To remove it:"
            yield f"    {command_of(connection, 'remove', decision.acl)}"
    else:
        yield asked.format("may not") + f". {_reason(known, decision.rule)} To allow it:"
        yield f"    {command_of(connection, 'add', _missing(question))}"
        if decision.rule is Rule.NO_ACL and ALLOW_WITHOUT_ACL in known.hidden:
            yield "The first ACL of a resource closes it to all principals that no ACL allows."
    if not decision.allowed:
        yield from _unknown(known, question)
    yield from _other_hosts(known.entries, question, roles)


def _authorizer(entries: Sequence[AccessControlEntry]) -> Authorizer:
    authorizer = Authorizer()
    authorizer.replace_all({Uuid(number.to_bytes(16)): entry for number, entry in enumerate(entries)})
    return authorizer


def _principal(question: Question) -> KafkaPrincipal:
    kind, _, name = question.principal.partition(":")
    return with_groups(KafkaPrincipal(kind, name), question.groups)


def _host(question: Question) -> str:
    return WILDCARD if question.host is None else address_text(question.host)


def _reason(known: Knowledge, rule: Rule) -> str:
    if rule is Rule.NO_MATCH:
        return "The resource has ACLs, and none of them allows this."
    if ALLOW_WITHOUT_ACL in known.hidden:
        return f"No ACL is on the resource, unless {ALLOW_WITHOUT_ACL} is true: that is set, and brokers do not show the value."
    return "No ACL is on the resource."


def _missing(question: Question) -> AccessControlEntry:
    return AccessControlEntry(
        question.resource_type,
        question.name,
        PatternType.LITERAL,
        question.principal,
        question.host or WILDCARD,
        question.operation,
        PermissionType.ALLOW,
    )


def command_of(connection: Sequence[str], action: str, entry: AccessControlEntry) -> str:
    """The command that adds or removes an ACL."""
    pattern, rule = pattern_of(entry), rule_of(entry)
    who = "allow" if rule.permission is PermissionType.ALLOW else "deny"
    words = ["tidelog", "acls", *connection, f"--{action}", f"--{who}-principal", rule.principal]
    if rule.host != WILDCARD:
        words += [f"--{who}-host", rule.host]
    words += ["--operation", title(rule.operation), f"--{FLAGS[pattern.resource_type]}"]
    if pattern.resource_type is not ResourceType.CLUSTER:
        words.append(pattern.name)
    if pattern.pattern_type is PatternType.PREFIXED:
        words += ["--resource-pattern-type", "prefixed"]
    return shlex.join(words)


def _unknown(known: Knowledge, question: Question) -> Iterator[str]:
    if SUPER_USERS in known.hidden:
        yield f"If {question.principal} is in {SUPER_USERS}, it may all the same: brokers do not show that setting."


def _other_hosts(entries: Sequence[AccessControlEntry], question: Question, roles: Iterable[str]) -> Iterator[str]:
    """What the answer without an address leaves out. ``roles``: those that the principal has from everywhere."""
    if question.host is not None:
        return
    own = {question.principal, EVERY_USER, *question.groups}
    who = {*own, *roles}
    hosts = {
        entry.host
        for entry in entries
        if entry.host != WILDCARD
        and (
            (entry.resource_type == question.resource_type and entry.covers(question.name) and entry.principal in who)
            or (is_membership(entry) and entry.principal in own)
        )
    }
    if hosts:
        yield f"Other ACLs hold for some addresses ({', '.join(sorted(hosts))}): ask for one of them with --host."
