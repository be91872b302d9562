"""Decides who may do what, by the rules of Apache Kafka's StandardAuthorizer (KIP-801), and says which rule decided.

The order of the rules: a super user may do everything; a DENY that matches wins over every ALLOW; an ALLOW that matches allows;
a resource with ACLs, none of which matches, is denied; a resource without any ACL follows ``allow.everyone.if.no.acl.found``.
An ALLOW of some operations implies another one (``IMPLIED``), a DENY never does.

Beyond Kafka: a client may be in groups, and have roles by memberships (``model.acl_groups``). The ACLs of all of these principals
count for it as its own do, so a DENY of any of them wins, then an ALLOW of any. Of super.users only the client itself counts.

Decisions are cached. Every change of the ACLs empties the cache, so no request is decided by two versions of them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

from tidelog.model.acl import OPERATIONS, WILDCARD, AccessControlEntry, AclOperation, PatternType, PermissionType
from tidelog.model.ids import Uuid
from tidelog.security.acl_index import AclIndex
from tidelog.security.principal import USER, KafkaPrincipal
from tidelog.security.role_members import RoleMembers

IMPLIED: Mapping[int, frozenset[int]] = {
    AclOperation.DESCRIBE: frozenset({AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
}
"""An operation, and the operations whose ALLOW includes it."""
EVERY_USER = f"{USER}:*"
"""The principal of an ACL for every principal, whatever its type."""
PROBE = "hardcode"
"""The name with which Kafka asks whether super.users or allow.everyone.if.no.acl.found allow an operation on any resource."""
_NONE: Mapping[Uuid, AccessControlEntry] = {}
CACHED_DECISIONS = 50_000
"""The cache is emptied when it holds this many decisions, about 15 MB."""
LONGEST_CACHED_NAME = 256
"""Characters. A client may ask about any name of 32 KB, and 50,000 of them would take gigabytes; no topic has a longer name."""
CACHED_GROUPS = 100_000
"""The cache is emptied when the different sets of groups in it have this many members together, about 10 MB."""


class Rule(Enum):
    """What decided."""

    SUPER_USER = "the principal is in super.users"
    DENY = "a DENY matches"
    ALLOW = "an ALLOW matches"
    NO_MATCH = "the resource has ACLs, and none of them allows this"
    NO_ACL = "no ACL is on the resource: allow.everyone.if.no.acl.found decides"


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer, with its reason; ``acl`` is the entry that decided, if one did."""

    allowed: bool
    rule: Rule
    acl: AccessControlEntry | None = None


class Authorizer:
    """One node's view of the ACLs. The node applies each change of the metadata before it serves the next request."""

    def __init__(self, super_users: Iterable[KafkaPrincipal] = (), allow_without_acl: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._without_acl = Decision(allow_without_acl, Rule.NO_ACL)
        self._index = AclIndex()
        self._roles = RoleMembers()
        self._decided: dict[tuple[object, ...], Decision] = {}
        self._sets: dict[frozenset[str], frozenset[str]] = {}
        """The sets of groups in the keys of the cache; each is kept once, however many clients have it."""
        self._grouped = 0
        """How many members these sets have."""
        self.version = 0
        """Rises with each change of the ACLs."""

    def __len__(self) -> int:
        """How many ACLs there are."""
        return len(self._index)

    def replace_all(self, acls: Mapping[Uuid, AccessControlEntry]) -> None:
        """Takes the ACLs of a whole image, at once."""
        normal = {acl_id: _normal(entry) for acl_id, entry in acls.items()}
        self._index, self._roles = AclIndex(normal), RoleMembers(normal)
        self._changed()

    def change(self, added: Mapping[Uuid, AccessControlEntry], removed: Iterable[Uuid]) -> None:
        """Takes the changes of one delta, at once."""
        for acl_id in removed:
            self._index.remove(acl_id)
            self._roles.remove(acl_id)
        for acl_id, entry in added.items():
            normal = _normal(entry)
            self._index.add(acl_id, normal)
            self._roles.add(acl_id, normal)
        self._changed()

    def _changed(self) -> None:
        self._forget()
        self.version += 1

    def _forget(self) -> None:
        self._decided.clear()
        self._sets.clear()
        self._grouped = 0

    def is_super_user(self, principal: KafkaPrincipal) -> bool:
        """Whether the principal may do everything, whatever the ACLs are."""
        return principal in self._super_users

    def allows(self, principal: KafkaPrincipal, host: str, operation: int, resource_type: int, name: str) -> bool:
        """Whether the operation is allowed; ``host`` in any form."""
        return self.decided(principal, host, operation, resource_type, name).allowed

    def decided(self, principal: KafkaPrincipal, host: str, operation: int, resource_type: int, name: str) -> Decision:
        """The decision with its reason, from the cache if it is there; ``host`` in any form."""
        if type(principal) is not KafkaPrincipal:
            return self._decided_with_groups(principal, host, operation, resource_type, name)
        # One number for two enums: hashing an enum is a call.
        key = (principal, host, operation << 4 | resource_type, name)
        found = self._decided.get(key)
        if found is None:
            found = self.decide(principal, address_text(host), operation, resource_type, name)
            if len(name) <= LONGEST_CACHED_NAME:
                if len(self._decided) >= CACHED_DECISIONS:
                    self._forget()
                self._decided[key] = found
        return found

    def _decided_with_groups(
        self, principal: KafkaPrincipal, host: str, operation: int, resource_type: int, name: str
    ) -> Decision:
        groups = principal.groups
        found = self._decided.get((principal, host, operation << 4 | resource_type, name, groups))
        if found is None:
            if len(name) > LONGEST_CACHED_NAME:
                return self.decide(principal, address_text(host), operation, resource_type, name)
            if len(self._decided) >= CACHED_DECISIONS:
                self._forget()
            if groups not in self._sets:
                if self._grouped + len(groups) > CACHED_GROUPS:
                    self._forget()
                self._grouped += len(groups)
            # The key holds no object of one connection.
            who = KafkaPrincipal(principal.type, principal.name)
            key = (who, host, operation << 4 | resource_type, name, self._sets.setdefault(groups, groups))
            found = self._decided[key] = self.decide(principal, address_text(host), operation, resource_type, name)
        return found

    def decide(self, principal: KafkaPrincipal, host: str, operation: int, resource_type: int, name: str) -> Decision:
        """The decision with its reason, not cached; ``host`` is in the form of ``address_text``."""
        if principal in self._super_users:
            return Decision(True, Rule.SUPER_USER)
        principals = self._principals(principal, host)
        implying = IMPLIED.get(operation, frozenset())
        allow: AccessControlEntry | None = None
        covered = False
        for group in self._index.covering(resource_type, name):
            covered = True
            for who in principals:
                for entry in group.get(who, _NONE).values():
                    if entry.host not in (host, WILDCARD):
                        continue
                    exact = entry.operation in (operation, AclOperation.ALL)
                    if entry.permission_type == PermissionType.DENY:
                        if exact:
                            return Decision(False, Rule.DENY, entry)
                    elif exact or entry.operation in implying:
                        allow = entry
        if allow is not None:
            return Decision(True, Rule.ALLOW, allow)
        return Decision(False, Rule.NO_MATCH) if covered else self._without_acl

    def allows_any(self, principal: KafkaPrincipal, host: str, operation: int, resource_type: int) -> bool:
        """Whether the operation may be allowed on some resource of the type (KIP-679).

        Asked for an idempotent producer, which needs WRITE on some topic. As in Kafka, the answer is yes when a resource with
        the name PROBE is allowed; otherwise only the operation itself or ALL counts, and ``User:*`` is every principal.
        """
        if self.allows(principal, host, operation, resource_type, PROBE):
            return True
        candidates = frozenset(self._principals(principal, host))
        allowed: set[tuple[int, str]] = set()
        denied: set[tuple[int, str]] = set()
        for entry in self._index.of_type(resource_type):
            if (
                entry.principal in candidates
                and entry.host in (host, WILDCARD)
                and entry.operation in (operation, AclOperation.ALL)
            ):
                patterns = denied if entry.permission_type == PermissionType.DENY else allowed
                patterns.add((entry.pattern_type, entry.resource_name))
        everything = (int(PatternType.LITERAL), WILDCARD)
        if everything in denied:
            return False
        return everything in allowed or any(not _hidden(*pattern, denied) for pattern in allowed)

    def roles(self, principal: KafkaPrincipal, host: str) -> Mapping[str, AccessControlEntry]:
        """The roles of a client, each with the ACL that makes it a member; ``host`` is in the form of ``address_text``."""
        return self._roles.of(_without_roles(principal), host)

    def _principals(self, principal: KafkaPrincipal, host: str) -> tuple[str, ...]:
        """All principals whose ACLs count for a client."""
        found = _without_roles(principal)
        return (*found, *self._roles.of(found, host)) if self._roles else found

    def operations(self, principal: KafkaPrincipal, host: str, resource_type: int, name: str) -> frozenset[AclOperation]:
        """The operations that fit the type and are allowed: the authorized operations of an answer (KIP-430)."""
        return frozenset(each for each in OPERATIONS[resource_type] if self.allows(principal, host, each, resource_type, name))


def _without_roles(principal: KafkaPrincipal) -> tuple[str, ...]:
    return (str(principal), EVERY_USER, *sorted(principal.groups))


def _hidden(pattern_type: int, name: str, denied: set[tuple[int, str]]) -> bool:
    """Whether a DENY covers all that this pattern allows."""
    if pattern_type == PatternType.LITERAL and (int(PatternType.LITERAL), name) in denied:
        return True
    return any((int(PatternType.PREFIXED), name[:length]) in denied for length in range(1, len(name) + 1))


def _normal(entry: AccessControlEntry) -> AccessControlEntry:
    host = address_text(entry.host)
    return entry if host == entry.host else replace(entry, host=host)


@lru_cache(10_000)
def address_text(host: str) -> str:
    """An IP address as Java prints it, which is how ACLs of Kafka's tools hold it; any other text as it is.

    IPv6 is written in full without leading zeros (``0:0:0:0:0:0:0:1``), and an IPv4 address mapped into IPv6 as IPv4.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4:
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(part, 16):x}" for part in address.exploded.split(":"))
