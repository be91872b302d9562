"""The ACLs and credentials that the records of a simulated run come to, and the decisions that follow from them.

Records are read here without the code that nodes run, and rules are looked at one by one, as StandardAuthorizer's are written
(KIP-801). What a node knows and decides has to be equal to this.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from sim.controller_checkers import require
from tidelog.model.acl import AccessControlEntry, AclOperation, PermissionType
from tidelog.model.ids import Uuid

IMPLIES_DESCRIBE = (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER)
UserId = tuple[str, int]
"""A user's name, and the number of a SCRAM mechanism."""


class Credential(NamedTuple):
    """What is stored of a password."""

    salt: bytes
    stored_key: bytes


class Ledger:
    """See the module. One for each reader of the log."""

    def __init__(self) -> None:
        self.acls: dict[Uuid, AccessControlEntry] = {}
        self.credentials: dict[UserId, Credential] = {}

    def read(self, records: Iterable[Any]) -> None:
        """Violation for a record that stops a node of Apache Kafka: a known id, an ACL a second time, an unknown removal."""
        for record in records:
            if record.NAME == "AccessControlEntryRecord":
                self._add(record)
            elif record.NAME == "RemoveAccessControlEntryRecord":
                require(self.acls.pop(Uuid(record.id), None) is not None, "the removal of an ACL that is not there")
            elif record.NAME == "UserScramCredentialRecord":
                credential = Credential(bytes(record.salt), bytes(record.stored_key))
                self.credentials[record.name, record.mechanism] = credential
            elif record.NAME == "RemoveUserScramCredentialRecord":
                found = self.credentials.pop((record.name, record.mechanism), None)
                require(found is not None, "the removal of a credential that is not there")

    def _add(self, record: Any) -> None:
        entry = AccessControlEntry(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )
        require(Uuid(record.id) not in self.acls, "an ACL with a known id")
        require(entry not in self.acls.values(), f"an ACL a second time: {entry}")
        self.acls[Uuid(record.id)] = entry


def may(acls: Iterable[AccessControlEntry], user: str, host: str, operation: AclOperation, resource_type: int, name: str) -> bool:
    """``user`` with its type, ``host`` as ACLs hold it. The user is no super user, and what has no ACL is closed."""
    matching = [
        each
        for each in acls
        if each.resource_type == resource_type
        and each.covers(name)
        and each.principal in (user, "User:*")
        and each.host in (host, "*")
    ]
    same = (operation, AclOperation.ALL)
    if any(each.permission_type == PermissionType.DENY and each.operation in same for each in matching):
        return False
    enough = (*same, *IMPLIES_DESCRIBE) if operation == AclOperation.DESCRIBE else same
    return any(each.permission_type == PermissionType.ALLOW and each.operation in enough for each in matching)
