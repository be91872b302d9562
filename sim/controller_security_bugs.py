"""Bugs planted on purpose into ACLs and SCRAM credentials, from the controller's records to a broker's decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple
from typing import Any

from tidelog.controller import acls
from tidelog.metadata import snapshot
from tidelog.metadata.security_delta import SecurityDelta
from tidelog.model.acl import AccessControlEntry
from tidelog.security.authorizer import Authorizer
from tidelog.testing.simulation.patching import Patch


def decisions_outlive_acls() -> list[Patch]:
    """A change of the ACLs leaves the cached decisions."""

    def changed(self: Authorizer) -> None:
        self.version += 1

    return [(Authorizer, "_changed", changed)]


def _removed_acls_stay() -> list[Patch]:
    honest = Authorizer.change

    def change(self: Authorizer, added: Any, removed: Any) -> None:
        honest(self, {acl_id: entry for acl_id, entry in added.items() if acl_id not in self._index}, ())

    return [(Authorizer, "change", change)]


def _snapshots_add_acls() -> list[Patch]:
    """A snapshot's ACLs come to those that are there, instead of replacing them."""

    def replace_all(self: Authorizer, acls: Any) -> None:
        self.change({acl_id: entry for acl_id, entry in acls.items() if acl_id not in self._index}, ())

    return [(Authorizer, "replace_all", replace_all)]


def _parts_of_two_versions() -> list[Patch]:
    """Of the new ACLs of a change, every second one counts from the next change on."""
    honest = Authorizer.change

    def change(self: Authorizer, added: Any, removed: Any) -> None:
        late = self.__dict__.pop("late", {})
        if late:
            honest(self, late, ())
        entries = list(added.items())
        self.__dict__["late"] = dict(entries[1::2])
        honest(self, dict(entries[::2]), removed)

    return [(Authorizer, "change", change)]


def _acls_written_twice() -> list[Patch]:
    """CreateAcls does not look whether an ACL exists."""
    honest = acls.acl_of

    def entry(creation: Any, pattern_type: int) -> AccessControlEntry:
        return _Different(*astuple(honest(creation, pattern_type)))

    return [(acls, "acl_of", entry)]


class _Different(AccessControlEntry):
    """Equal to no other."""

    __slots__ = ()
    __hash__ = AccessControlEntry.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def _without(record_name: str) -> list[Patch]:
    """Snapshots leave these records out."""
    honest = snapshot._security_records

    def records(image: Any) -> Iterator[Any]:
        return (record for record in honest(image) if record_name != record.NAME)

    return [(snapshot, "_security_records", records)]


def _forgets(method: str) -> list[Patch]:
    """A delta passes over these records."""
    return [(SecurityDelta, method, lambda self, record: None)]


def _old_passwords_stay() -> list[Patch]:
    """A new password of a user that has one is not taken."""
    honest = SecurityDelta.set_scram

    def set_scram(self: SecurityDelta, record: Any) -> None:
        if (record.name, record.mechanism) not in self.scram.now:
            honest(self, record)

    return [(SecurityDelta, "set_scram", set_scram)]


SECURITY_BUGS: dict[str, Callable[[], list[Patch]]] = {
    "decisions outlive their ACLs": decisions_outlive_acls,
    "removed ACLs stay": _removed_acls_stay,
    "snapshots add ACLs": _snapshots_add_acls,
    "ACLs are written twice": _acls_written_twice,
    "decisions by parts of two versions": _parts_of_two_versions,
    "a delta forgets that ACLs are removed": lambda: _forgets("remove_acl"),
    "snapshots without ACLs": lambda: _without("AccessControlEntryRecord"),
    "removed credentials stay": lambda: _forgets("remove_scram"),
    "snapshots without credentials": lambda: _without("UserScramCredentialRecord"),
    "old passwords stay": _old_passwords_stay,
}
