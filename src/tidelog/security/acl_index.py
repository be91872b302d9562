"""The ACLs of a cluster, found by resource: those on a literal name, on the wildcard, and on each prefix of the name.

A lookup costs one dictionary access per distinct length of a prefix, however many ACLs there are; the ACLs of a pattern are by
principal, so that those of others are not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tidelog.model.acl import WILDCARD, AccessControlEntry, PatternType
from tidelog.model.ids import Uuid

_Pattern = tuple[int, int, str]
"""(resource type, pattern type, name)."""
_LITERAL, _PREFIXED = int(PatternType.LITERAL), int(PatternType.PREFIXED)
"""Plain numbers: hashing an enum is a call."""


class AclIndex:
    """ACLs by id, and by pattern and principal. Not shared between threads."""

    __slots__ = ("_by_id", "_by_pattern", "_lengths")

    def __init__(self, acls: Mapping[Uuid, AccessControlEntry] | None = None) -> None:
        self._by_id: dict[Uuid, AccessControlEntry] = {}
        self._by_pattern: dict[_Pattern, dict[str, dict[Uuid, AccessControlEntry]]] = {}
        self._lengths: dict[int, Counter[int]] = {}
        """Per resource type: how many prefixes have this length."""
        for acl_id, entry in (acls or {}).items():
            self.add(acl_id, entry)

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, acl_id: object) -> bool:
        return acl_id in self._by_id

    def add(self, acl_id: Uuid, entry: AccessControlEntry) -> None:
        """Adds an ACL. AssertionError for a known id: the controller writes each id once."""
        assert acl_id not in self._by_id, f"ACL {acl_id.hex()} is there already"
        self._by_id[acl_id] = entry
        pattern = _pattern(entry)
        group = self._by_pattern.get(pattern)
        if group is None:
            group = self._by_pattern[pattern] = {}
            if entry.pattern_type == PatternType.PREFIXED:
                self._lengths.setdefault(entry.resource_type, Counter())[len(entry.resource_name)] += 1
        group.setdefault(entry.principal, {})[acl_id] = entry

    def remove(self, acl_id: Uuid) -> None:
        """Removes an ACL. KeyError for an unknown id."""
        entry = self._by_id.pop(acl_id)
        pattern = _pattern(entry)
        group = self._by_pattern[pattern]
        del group[entry.principal][acl_id]
        if not group[entry.principal]:
            del group[entry.principal]
        if not group:
            del self._by_pattern[pattern]
            if entry.pattern_type == PatternType.PREFIXED:
                lengths = self._lengths[entry.resource_type]
                lengths[len(entry.resource_name)] -= 1
                if not lengths[len(entry.resource_name)]:
                    del lengths[len(entry.resource_name)]

    def covering(self, resource_type: int, name: str) -> Iterator[Mapping[str, Mapping[Uuid, AccessControlEntry]]]:
        """The ACLs of each pattern that matches this resource, by principal; none of the mappings is empty."""
        found = self._by_pattern.get
        if group := found((resource_type, _LITERAL, name)):
            yield group
        if name != WILDCARD and (group := found((resource_type, _LITERAL, WILDCARD))):
            yield group
        for length in self._lengths.get(resource_type, ()):
            if length <= len(name) and (group := found((resource_type, _PREFIXED, name[:length]))):
                yield group

    def of_type(self, resource_type: int) -> Iterator[AccessControlEntry]:
        """The ACLs on resources of this type."""
        return (entry for entry in self._by_id.values() if entry.resource_type == resource_type)


def _pattern(entry: AccessControlEntry) -> _Pattern:
    return int(entry.resource_type), int(entry.pattern_type), entry.resource_name
