"""The members of roles, from the ACLs that say so (``model.acl_groups``), found by member."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.model.acl import WILDCARD, AccessControlEntry, PermissionType
from tidelog.model.acl_groups import ROLE, is_membership
from tidelog.model.ids import Uuid

_NONE: Mapping[Uuid, AccessControlEntry] = {}


class RoleMembers:
    """Memberships by the principal of the member. Roles have no roles: a membership of a principal ``Role:`` does not count."""

    __slots__ = ("_by_id", "_by_member")

    def __init__(self, acls: Mapping[Uuid, AccessControlEntry] | None = None) -> None:
        self._by_id: dict[Uuid, AccessControlEntry] = {}
        self._by_member: dict[str, dict[Uuid, AccessControlEntry]] = {}
        for acl_id, entry in (acls or {}).items():
            self.add(acl_id, entry)

    def __len__(self) -> int:
        """How many memberships there are."""
        return len(self._by_id)

    def add(self, acl_id: Uuid, entry: AccessControlEntry) -> None:
        """Takes an ACL; one that is no membership makes no difference."""
        if is_membership(entry) and not entry.principal.startswith(f"{ROLE}:"):
            self._by_id[acl_id] = entry
            self._by_member.setdefault(entry.principal, {})[acl_id] = entry

    def remove(self, acl_id: Uuid) -> None:
        """Forgets an ACL."""
        entry = self._by_id.pop(acl_id, None)
        if entry is not None:
            members = self._by_member[entry.principal]
            del members[acl_id]
            if not members:
                del self._by_member[entry.principal]

    def of(self, principals: Iterable[str], host: str) -> dict[str, AccessControlEntry]:
        """The roles of a client with these principals at this address, each with a membership that gives it; by name."""
        given: dict[str, AccessControlEntry] = {}
        taken = set()
        for who in principals:
            for entry in self._by_member.get(who, _NONE).values():
                if entry.host not in (host, WILDCARD):
                    continue
                if entry.permission_type == PermissionType.DENY:
                    taken.add(entry.resource_name)
                else:
                    given.setdefault(entry.resource_name, entry)
        return {role: given[role] for role in sorted(given) if role not in taken}
