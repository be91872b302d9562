"""ACLs as the console shows them, and back: Kafka's names in lower case."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final

from tidelog.model.acl import AccessControlEntry, AclOperation, PatternType, PermissionType, ResourceType

FIELDS: Final = ("resource", "name", "pattern", "principal", "host", "operation", "permission")
MAX_TEXT: Final = 1000


def as_row(entry: AccessControlEntry) -> dict[str, str]:
    """The ACL as texts."""
    return {
        "resource": _word(ResourceType, entry.resource_type),
        "name": entry.resource_name,
        "pattern": _word(PatternType, entry.pattern_type),
        "principal": entry.principal,
        "host": entry.host,
        "operation": _word(AclOperation, entry.operation),
        "permission": _word(PermissionType, entry.permission_type),
    }


def entry_of(row: Mapping[str, Any]) -> AccessControlEntry:
    """The ACL of a row. ValueError says what is wrong."""
    if set(row) != set(FIELDS) or not all(isinstance(each, str) and 0 < len(each) <= MAX_TEXT for each in row.values()):
        raise ValueError(f"an ACL has exactly the texts {', '.join(FIELDS)}")
    if ":" not in row["principal"]:
        raise ValueError(f"the principal {row['principal']!r} has no type: User:{row['principal']}")
    return AccessControlEntry(
        _number(ResourceType, row["resource"], "resource"),
        row["name"],
        _number(PatternType, row["pattern"], "pattern"),
        row["principal"],
        row["host"],
        _number(AclOperation, row["operation"], "operation"),
        _number(PermissionType, row["permission"], "permission"),
    )


def described(entry: AccessControlEntry) -> str:
    """In one line."""
    row = as_row(entry)
    return f"{row['permission']} {row['principal']} from {row['host']} to {row['operation']} {row['resource']} {row['name']}" + (
        " (prefix)" if row["pattern"] == "prefixed" else ""
    )


def _word(kind: type[IntEnum], number: int) -> str:
    try:
        return kind(number).name.lower()
    except ValueError:
        return str(number)


_NOT_IN_ACLS: Final = frozenset({"UNKNOWN", "ANY", "MATCH"})


def _number(kind: type[IntEnum], word: str, what: str) -> int:
    names = [each.name for each in kind if each.name not in _NOT_IN_ACLS]
    if word.upper() not in names:
        raise ValueError(f"{word!r} is no {what}; there are {', '.join(name.lower() for name in names)}")
    return int(kind[word.upper()])
