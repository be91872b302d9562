"""What a change is about: the names in its request, and none of the values.

A decision about the cluster alone would not say which user's password, which ACL or which quota was changed, and one about a
topic's settings not which setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from itertools import islice
from typing import Any, Final

from tidelog.model.acl import AclOperation, PatternType, PermissionType, ResourceType
from tidelog.protocol.api_keys import ApiKey
from tidelog.security.scram import ScramMechanism

MOST: Final = 50
"""Targets that an event names; ``targets`` ends with "and more" where there are more."""
LONGEST: Final = 300
"""Characters of one target."""
_ANY: Final = "any"


def targets(request: Any) -> list[str]:
    """What the request is about, or the names themselves of a tuple of names; empty for other APIs."""
    if isinstance(request, tuple):
        names: Iterable[str] = request
    else:
        named = _NAMED.get(getattr(request, "API_KEY", None))
        names = () if named is None else named(request)
    found = [each[:LONGEST] for each in islice(names, MOST + 1)]
    return found if len(found) <= MOST else [*found[:MOST], "and more"]


def _word(kind: type[IntEnum], value: int) -> str:
    try:
        return kind(value).name
    except ValueError:
        return str(value)


def _created_acls(request: Any) -> Iterator[str]:
    for each in request.creations:
        yield _acl(each, each.resource_pattern_type, each.resource_name, each.resource_type)


def _deleted_acls(request: Any) -> Iterator[str]:
    for each in request.filters:
        filtered = _Filter(each.permission_type, each.principal_filter, each.operation, each.host_filter)
        yield _acl(filtered, each.pattern_type_filter, each.resource_name_filter, each.resource_type_filter)


class _Filter:
    """A filter under the names of a creation."""

    def __init__(self, permission_type: int, principal: str | None, operation: int, host: str | None) -> None:
        self.permission_type = permission_type
        self.principal = principal
        self.operation = operation
        self.host = host


def _acl(rule: Any, pattern_type: int, name: str | None, resource_type: int) -> str:
    who = f"{_word(PermissionType, rule.permission_type)} {rule.principal or _ANY} {_word(AclOperation, rule.operation)}"
    what = f"{_word(ResourceType, resource_type)}:{_word(PatternType, pattern_type)}:{name or _ANY}"
    return f"{who} {what} from {rule.host or _ANY}"


def _scram_users(request: Any) -> Iterator[str]:
    for each in request.deletions:
        yield f"{each.name} {_mechanism(each.mechanism)} deleted"
    for each in request.upsertions:
        yield f"{each.name} {_mechanism(each.mechanism)}"


def _mechanism(number: int) -> str:
    return next((each.title for each in ScramMechanism if each == number), str(number))


def _quotas(request: Any) -> Iterator[str]:
    for entry in request.entries:
        entity = ",".join(
            f"{each.entity_type}={'<default>' if each.entity_name is None else each.entity_name}" for each in entry.entity
        )
        yield f"{entity} {','.join(op.key for op in entry.ops)}"


def _log_dirs(request: Any) -> Iterable[str]:
    return (topic.name for directory in request.dirs for topic in directory.topics)


_NAMED: Final[Mapping[Any, Callable[[Any], Iterable[str]]]] = {
    ApiKey.CREATE_ACLS: _created_acls,
    ApiKey.DELETE_ACLS: _deleted_acls,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _scram_users,
    ApiKey.ALTER_CLIENT_QUOTAS: _quotas,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda request: (topic.name for topic in request.topics),
    ApiKey.ELECT_LEADERS: lambda request: (topic.topic for topic in request.topic_partitions or ()),
    ApiKey.ALTER_REPLICA_LOG_DIRS: _log_dirs,
    ApiKey.UPDATE_FEATURES: lambda request: (update.feature for update in request.feature_updates),
    ApiKey.UNREGISTER_BROKER: lambda request: (f"broker {request.broker_id}",),
    ApiKey.ADD_RAFT_VOTER: lambda request: (f"voter {request.voter_id}",),
    ApiKey.REMOVE_RAFT_VOTER: lambda request: (f"voter {request.voter_id}",),
}
