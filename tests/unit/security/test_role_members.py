from __future__ import annotations

from tests.unit.security.acl_entries import member
from tidelog.model.acl import AccessControlEntry, PermissionType
from tidelog.model.ids import Uuid
from tidelog.security.role_members import RoleMembers

HOST = "10.0.0.1"


def members(*entries: AccessControlEntry) -> RoleMembers:
    return RoleMembers({Uuid(number.to_bytes(16)): entry for number, entry in enumerate(entries)})


def test_roles_are_given_to_users_and_groups() -> None:
    direct, by_group = member("User:alice", "Role:readers"), member("Group:staff", "Role:writers")
    found = members(direct, by_group)
    assert found.of(["User:alice", "User:*"], HOST) == {"Role:readers": direct}
    assert found.of(["User:alice", "Group:staff"], HOST) == {"Role:readers": direct, "Role:writers": by_group}
    assert found.of(["User:bob"], HOST) == {}
    assert members(member("User:*", "Role:all")).of(["User:bob", "User:*"], HOST).keys() == {"Role:all"}


def test_a_membership_counts_from_its_addresses() -> None:
    found = members(member("User:alice", "Role:readers", host=HOST))
    assert found.of(["User:alice"], HOST)
    assert not found.of(["User:alice"], "10.0.0.2")


def test_a_deny_takes_a_member_out_whoever_let_it_in() -> None:
    found = members(member("User:alice", "Role:readers"), member("Group:contractors", "Role:readers", PermissionType.DENY))
    assert found.of(["User:alice"], HOST)
    assert not found.of(["User:alice", "Group:contractors"], HOST)


def test_a_role_is_no_member_of_a_role() -> None:
    assert not members(member("Role:readers", "Role:writers")).of(["Role:readers"], HOST)


def test_a_membership_ends_when_its_acl_is_removed() -> None:
    found = members(member("User:alice", "Role:readers"), member("User:alice", "Role:writers"))
    assert len(found) == 2
    found.remove(Uuid((0).to_bytes(16)))
    assert found.of(["User:alice"], HOST).keys() == {"Role:writers"}
    found.remove(Uuid((1).to_bytes(16)))
    found.remove(Uuid((7).to_bytes(16)))
    assert (len(found), found.of(["User:alice"], HOST)) == (0, {})
