"""Events of the audit as lines of JSON: one object a line, ASCII, no line break inside.

Every event has ``id`` (unique; a line that was written twice has the same), ``time`` (UTC, ISO 8601), ``node``, ``type``
and, but for ``left-out``, ``principal``, ``host``, ``listener`` and ``allowed``. An event never holds the content of a request:
no setting, no password, no token, no record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from tidelog.broker.ports import Client
from tidelog.model.acl import AccessControlEntry, AclOperation, PatternType, PermissionType, ResourceType
from tidelog.protocol import registry
from tidelog.security.authorizer import Decision, Rule

AUTHORIZATION: Final = "authorization"
AUTHENTICATION: Final = "authentication"
LEFT_OUT: Final = "left-out"
"""What was only counted, or dropped, in the last minute."""
ANY: Final = "*"
"""The name in an event about "some resource of this type" (KIP-679)."""
LONGEST_TEXT: Final = 1000
"""Characters of a text that a client chose; ``cut`` is true in an event with a longer one."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RULES: Final = {
    Rule.SUPER_USER: "super-user",
    Rule.DENY: "acl",
    Rule.ALLOW: "acl",
    Rule.NO_MATCH: "no-matching-acl",
    Rule.NO_ACL: "no-acl",
}


class Kind(NamedTuple):
    """What makes two reads the same for sampling: what was done, to what, by which principal, from where."""

    principal: tuple[str, str]
    host: str
    api_key: int
    operation: int
    resource_type: int
    name: str


def decision(
    client: Client, operation: int, resource_type: int, name: str, decided: Decision, targets: Sequence[str] = ()
) -> dict[str, Any]:
    """What an authorizer decided; ``targets``: what the request is about."""
    event = _done(str(client.principal), client.peer_host, client.api_key, operation, resource_type, name)
    event["allowed"] = decided.allowed
    event["rule"] = _RULES[decided.rule]
    event["listener"] = client.listener
    event["clientId"] = client.client_id
    event["correlationId"] = client.correlation_id
    if decided.acl is not None:
        event["acl"] = _acl(decided.acl)
    if targets:
        event["targets"] = list(targets)
    return event


def repeated(kind: Kind, count: int) -> dict[str, Any]:
    """Reads of one kind that were allowed and only counted."""
    who, name = kind.principal
    event = _done(f"{who}:{name}", kind.host, kind.api_key, kind.operation, kind.resource_type, kind.name)
    return event | {"allowed": True, "leftOut": count}


def login(principal: str, host: str, listener: str, mechanism: str, *, again: bool) -> dict[str, Any]:
    """A client has authenticated. ``again``: on an open connection (KIP-368)."""
    event = {"type": AUTHENTICATION, "principal": principal, "host": host, "listener": listener, "mechanism": mechanism}
    return event | {"allowed": True} | ({"again": True} if again else {})


def failed_login(host: str, listener: str, mechanism: str, reason: str) -> dict[str, Any]:
    """A client has not authenticated. The reason names the user whom it claimed to be, if it got that far."""
    event = {"type": AUTHENTICATION, "principal": None, "host": host, "listener": listener, "mechanism": mechanism or None}
    return event | {"allowed": False, "reason": reason}


def line(event: Mapping[str, Any], event_id: str, node_id: int, now_ms: int) -> bytes:
    """The event on one line, without a line break at the end."""
    time = (_EPOCH + timedelta(milliseconds=now_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    whole: dict[str, Any] = {"id": event_id, "time": time, "node": node_id}
    cut = False
    for key, value in event.items():
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            value, cut = value[:LONGEST_TEXT], True
        whole[key] = value
    if cut:
        whole["cut"] = True
    return json.dumps(whole, separators=(",", ":")).encode("ascii")


def _done(principal: str, host: str, api_key: int, operation: int, resource_type: int, name: str) -> dict[str, Any]:
    return {
        "type": AUTHORIZATION,
        "principal": principal,
        "host": host,
        "request": registry.request_class(api_key).NAME.removesuffix("Request"),
        "operation": AclOperation(operation).name,
        "resourceType": ResourceType(resource_type).name,
        "resourceName": name,
    }


def _acl(acl: AccessControlEntry) -> dict[str, str]:
    return {
        "resourceType": ResourceType(acl.resource_type).name,
        "name": acl.resource_name,
        "patternType": PatternType(acl.pattern_type).name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": AclOperation(acl.operation).name,
        "permissionType": PermissionType(acl.permission_type).name,
    }
