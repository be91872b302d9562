"""Kafka's authorizer log: a line for each decision, on the logger ``kafka.authorizer.logger``.

Denied operations are logged at INFO, allowed ones at DEBUG, quiet questions at TRACE (see ``broker.authorization``). A line names
principal, operation, address, resource, API and the rule that decided, in Apache Kafka's form, so that tools that read its log
read this one. A second has at most 100 lines of denials; the others are counted. In a dry run the form is another one: "would be
Denied" stands where Kafka has "is Denied".
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from tidelog.broker.loggers import LEVELS
from tidelog.broker.ports import Client
from tidelog.model.acl import AccessControlEntry, AclOperation, PatternType, PermissionType, ResourceType
from tidelog.model.printable import printable
from tidelog.protocol import registry
from tidelog.security.authorizer import Decision, Rule
from tidelog.server.serving.violations import LogLimit

NAME: Final = "kafka.authorizer.logger"
LINES_PER_SECOND: Final = 100
LONGEST_LINE: Final = 2000
_TRACE: Final = LEVELS["TRACE"]
_TYPES: Final = {
    ResourceType.TOPIC: "Topic",
    ResourceType.GROUP: "Group",
    ResourceType.CLUSTER: "Cluster",
    ResourceType.TRANSACTIONAL_ID: "TransactionalId",
    ResourceType.DELEGATION_TOKEN: "DelegationToken",
    ResourceType.USER: "User",
}


class AuthorizerLog:
    """Implements ``broker.access_control.DecisionLog``."""

    def __init__(self, real_ms: Callable[[], int], *, dry_run: bool = False) -> None:
        self._dry_run = dry_run
        self._log = logging.getLogger(NAME)
        self._real_ms = real_ms
        self._limit = LogLimit(LINES_PER_SECOND)
        self.tells_allowed: Callable[[], bool] = partial(self._log.isEnabledFor, logging.DEBUG)

    def allowed(self, client: Client, operation: int, resource_type: int, name: str, decision: Decision, quiet: bool) -> None:
        level = _TRACE if quiet else logging.DEBUG
        if self._log.isEnabledFor(level):
            self._log.log(level, "%s", line(client, operation, resource_type, name, decision))

    def denied(self, client: Client, operation: int, resource_type: int, name: str, decision: Decision, quiet: bool) -> None:
        level = _TRACE if quiet else logging.INFO
        if not self._log.isEnabledFor(level):
            return
        if untold := self._limit.untold(self._real_ms()):
            self._log.info("%d more operations %s denied", untold, "would be" if self._dry_run else "were")
        if self._limit.takes():
            self._log.log(level, "%s", line(client, operation, resource_type, name, decision, dry_run=self._dry_run))


def line(client: Client, operation: int, resource_type: int, name: str, decision: Decision, *, dry_run: bool = False) -> str:
    """One decision in Kafka's form, on one line; ``dry_run``: a denial was none."""
    done = "is Allowed" if decision.allowed else "would be Denied" if dry_run else "is Denied"
    request = registry.request_class(client.api_key).NAME.removesuffix("Request")
    text = (
        f"Principal = {client.principal} {done} operation = {AclOperation(operation).name} from host = {client.peer_host} "
        f"on resource = {_TYPES[ResourceType(resource_type)]}:LITERAL:{name} for request = {request} "
        f"with resourceRefCount = 1 based on rule {_rule(decision)}"
    )
    return printable(text)[:LONGEST_LINE]


def _rule(decision: Decision) -> str:
    if decision.acl is not None:
        return f"MatchingAcl(acl={_acl(decision.acl)})"
    if decision.rule is Rule.SUPER_USER:
        return "SuperUser"
    return "DefaultAllow" if decision.allowed else "DefaultDeny"


def _acl(acl: AccessControlEntry) -> str:
    return (
        f"StandardAcl[resourceType={ResourceType(acl.resource_type).name}, resourceName={acl.resource_name}, "
        f"patternType={PatternType(acl.pattern_type).name}, principal={acl.principal}, host={acl.host}, "
        f"operation={AclOperation(acl.operation).name}, permissionType={PermissionType(acl.permission_type).name}]"
    )
