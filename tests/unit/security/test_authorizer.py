"""The rules, one by one. ``tests/interop/test_security_decisions.py`` compares them with Apache Kafka's authorizer."""

from __future__ import annotations

import pytest

from tests.unit.security.acl_entries import acl, member
from tidelog.model.acl import AccessControlEntry, PatternType, PermissionType, ResourceType
from tidelog.model.acl import AclOperation as Op
from tidelog.model.ids import Uuid
from tidelog.security import authorizer as module
from tidelog.security.authorizer import Authorizer, Rule, address_text
from tidelog.security.principal import KafkaPrincipal, with_groups

ALICE = KafkaPrincipal("User", "alice")
BOB = KafkaPrincipal("User", "bob")
HOST = "10.0.0.1"


def identity(number: int) -> Uuid:
    return Uuid(number.to_bytes(16))


def with_acls(*entries: AccessControlEntry, **settings: object) -> Authorizer:
    found = Authorizer(**settings)  # type: ignore[arg-type]
    found.replace_all({identity(number): entry for number, entry in enumerate(entries)})
    return found


def rule(authorizer: Authorizer, who: KafkaPrincipal, operation: int, name: str, host: str = HOST) -> Rule:
    return authorizer.decide(who, host, operation, ResourceType.TOPIC, name).rule


def test_without_an_acl_only_the_setting_decides() -> None:
    assert not with_acls().allows(ALICE, HOST, Op.READ, ResourceType.TOPIC, "t")
    assert with_acls(allow_without_acl=True).allows(ALICE, HOST, Op.READ, ResourceType.TOPIC, "t")


def test_the_first_acl_on_a_resource_ends_the_open_house() -> None:
    open_house = with_acls(acl("t", Op.READ), allow_without_acl=True)
    assert rule(open_house, ALICE, Op.READ, "t") is Rule.ALLOW
    assert rule(open_house, BOB, Op.READ, "t") is Rule.NO_MATCH
    assert rule(open_house, BOB, Op.READ, "other") is Rule.NO_ACL


def test_a_deny_wins_whatever_its_pattern() -> None:
    denied = acl("or", Op.ALL, "User:*", PermissionType.DENY, PatternType.PREFIXED)
    both = with_acls(acl("orders", Op.READ), denied, acl("*", Op.ALL))
    found = both.decide(ALICE, HOST, Op.READ, ResourceType.TOPIC, "orders")
    assert (found.allowed, found.rule, found.acl) == (False, Rule.DENY, denied)
    assert both.allows(ALICE, HOST, Op.READ, ResourceType.TOPIC, "payments")


def test_a_super_user_is_not_denied() -> None:
    root = with_acls(acl("*", Op.ALL, "User:*", PermissionType.DENY), super_users=[ALICE])
    assert rule(root, ALICE, Op.DELETE, "t") is Rule.SUPER_USER
    assert rule(root, BOB, Op.DELETE, "t") is Rule.DENY


@pytest.mark.parametrize("given", [Op.READ, Op.WRITE, Op.DELETE, Op.ALTER])
def test_an_allow_includes_describe_and_a_deny_does_not(given: Op) -> None:
    assert rule(with_acls(acl("t", given)), ALICE, Op.DESCRIBE, "t") is Rule.ALLOW
    mixed = with_acls(acl("t", given, permission=PermissionType.DENY), acl("t", Op.DESCRIBE))
    assert rule(mixed, ALICE, Op.DESCRIBE, "t") is Rule.ALLOW
    assert rule(mixed, ALICE, given, "t") is Rule.DENY
    assert rule(with_acls(acl("t", Op.CREATE)), ALICE, Op.DESCRIBE, "t") is Rule.NO_MATCH


def test_a_host_is_compared_in_one_form() -> None:
    here = with_acls(acl("t", Op.READ, host="::ffff:10.0.0.1"), acl("six", Op.READ, host="2001:DB8::1"))
    assert rule(here, ALICE, Op.READ, "t") is Rule.ALLOW
    assert rule(here, ALICE, Op.READ, "t", "10.0.0.2") is Rule.NO_MATCH
    assert rule(here, ALICE, Op.READ, "six", address_text("2001:db8:0:0::1")) is Rule.ALLOW


def test_addresses_are_written_as_java_writes_them() -> None:
    assert address_text("::1") == "0:0:0:0:0:0:0:1"
    assert address_text("fe80::a:0b%eth0") == "fe80:0:0:0:0:0:a:b"
    assert address_text("::ffff:192.0.2.1") == "192.0.2.1"
    assert address_text("192.0.2.1") == "192.0.2.1"
    assert address_text("*") == "*"
    assert address_text("a.example") == "a.example"


def test_a_change_is_seen_by_the_next_decision() -> None:
    rules = with_acls(acl("t", Op.READ))
    assert rules.allows(ALICE, HOST, Op.READ, ResourceType.TOPIC, "t")
    version = rules.version
    rules.change({}, [identity(0)])
    assert not rules.allows(ALICE, HOST, Op.READ, ResourceType.TOPIC, "t")
    rules.change({identity(7): acl("t", Op.READ)}, [])
    assert rules.allows(ALICE, HOST, Op.READ, ResourceType.TOPIC, "t")
    assert rules.version == version + 2
    assert len(rules) == 1


def test_removing_one_acl_leaves_every_other_decision() -> None:
    """CVE-2024-27309: the removal of an ACL of a resource weakened its other ACLs."""
    deny = acl("t", Op.READ, "User:bob", PermissionType.DENY)
    rules = with_acls(acl("t", Op.READ, "User:*"), deny, acl("t", Op.WRITE), acl("t", Op.WRITE, "User:bob"))
    rules.change({}, [identity(2)])
    assert rule(rules, BOB, Op.READ, "t") is Rule.DENY
    assert rule(rules, BOB, Op.WRITE, "t") is Rule.ALLOW
    assert rule(rules, ALICE, Op.WRITE, "t") is Rule.NO_MATCH


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHED_DECISIONS", 10)
    rules = with_acls(acl("t", Op.READ, pattern=PatternType.PREFIXED))
    for number in range(100):
        assert rules.allows(ALICE, HOST, Op.READ, ResourceType.TOPIC, f"t{number}")
    assert len(rules._decided) <= 10


@pytest.mark.parametrize("who", [ALICE, with_groups(ALICE, frozenset({"Group:staff"}))])
def test_long_names_are_decided_and_not_kept(who: KafkaPrincipal) -> None:
    """A client without any permission could fill the memory with names of 32 KB."""
    rules = with_acls(acl("t", Op.READ, pattern=PatternType.PREFIXED))
    longest = module.LONGEST_CACHED_NAME
    for name, allowed in (("t" * longest, True), ("t" * (longest + 1), True), ("u" * 32_767, False)):
        assert rules.allows(who, HOST, Op.READ, ResourceType.TOPIC, name) is allowed
    assert [key[3] for key in rules._decided] == ["t" * longest]


def test_some_topic_may_be_written() -> None:
    def some(*entries: AccessControlEntry) -> bool:
        return with_acls(*entries).allows_any(ALICE, HOST, Op.WRITE, ResourceType.TOPIC)

    literal, prefix = acl("t", Op.WRITE), acl("te", Op.WRITE, pattern=PatternType.PREFIXED)
    deny_t = acl("t", Op.WRITE, permission=PermissionType.DENY, pattern=PatternType.PREFIXED)
    assert some(literal)
    assert some(prefix)
    assert not some()
    assert not some(acl("t", Op.READ))
    assert not some(literal, acl("t", Op.ALL, permission=PermissionType.DENY))
    assert not some(literal, prefix, deny_t)
    assert some(acl("s", Op.ALL), deny_t)
    assert not some(literal, acl("*", Op.WRITE, permission=PermissionType.DENY))


def test_the_authorized_operations_of_a_topic() -> None:
    rules = with_acls(acl("t", Op.ALTER_CONFIGS), acl("t", Op.READ))
    found = rules.operations(ALICE, HOST, ResourceType.TOPIC, "t")
    assert found == {Op.READ, Op.DESCRIBE, Op.ALTER_CONFIGS, Op.DESCRIBE_CONFIGS}


STAFF, CONTRACTORS = frozenset({"Group:staff"}), frozenset({"Group:staff", "Group:contractors"})


def test_the_acls_of_a_group_count_for_those_in_it() -> None:
    allow = acl("t", Op.READ, "Group:staff")
    rules = with_acls(allow)
    assert rules.decide(with_groups(ALICE, STAFF), HOST, Op.READ, ResourceType.TOPIC, "t").acl == allow
    assert rule(rules, with_groups(ALICE, STAFF), Op.DESCRIBE, "t") is Rule.ALLOW
    assert rule(rules, ALICE, Op.READ, "t") is Rule.NO_MATCH
    assert rule(rules, with_groups(BOB, frozenset({"Group:Staff"})), Op.READ, "t") is Rule.NO_MATCH, "case counts"


@pytest.mark.parametrize("denied", ["User:alice", "User:*", "Group:contractors", "Role:readers"])
@pytest.mark.parametrize("allowed", ["User:alice", "User:*", "Group:staff", "Role:readers"])
def test_a_deny_of_any_principal_wins_over_an_allow_of_any(denied: str, allowed: str) -> None:
    """Kafka's rule, over all principals of a client."""
    who = with_groups(ALICE, CONTRACTORS)
    deny = acl("t", Op.READ, denied, PermissionType.DENY, PatternType.PREFIXED)
    for entries in ((acl("t", Op.READ, allowed), deny), (deny, acl("t", Op.READ, allowed))):
        rules = with_acls(*entries, member("User:alice", "Role:readers"))
        found = rules.decide(who, HOST, Op.READ, ResourceType.TOPIC, "t")
        assert (found.rule, found.acl) == (Rule.DENY, deny)
        assert not rules.allows_any(who, HOST, Op.READ, ResourceType.TOPIC)
        rules.change({}, [identity(entries.index(deny))])
        assert rules.allows(who, HOST, Op.READ, ResourceType.TOPIC, "t")
        assert rules.allows_any(who, HOST, Op.READ, ResourceType.TOPIC)


def test_a_role_counts_from_its_membership_on_and_until_its_end() -> None:
    rules = with_acls(acl("t", Op.READ, "Role:readers"))
    assert not rules.allows(ALICE, HOST, Op.READ, ResourceType.TOPIC, "t")
    rules.change({identity(7): member("Group:staff", "Role:readers")}, [])
    assert rules.allows(with_groups(ALICE, STAFF), HOST, Op.READ, ResourceType.TOPIC, "t")
    assert not rules.allows(ALICE, HOST, Op.READ, ResourceType.TOPIC, "t")
    assert list(rules.roles(with_groups(ALICE, STAFF), HOST)) == ["Role:readers"]
    rules.change({}, [identity(7)])
    assert not rules.allows(with_groups(ALICE, STAFF), HOST, Op.READ, ResourceType.TOPIC, "t")
    rules.replace_all({identity(1): member("User:alice", "Role:x"), identity(2): acl("t", Op.READ, "Role:x")})
    assert rules.allows(ALICE, HOST, Op.READ, ResourceType.TOPIC, "t")


def test_a_group_makes_no_super_user() -> None:
    rules = with_acls(super_users=[KafkaPrincipal("Group", "staff"), BOB])
    assert not rules.allows(with_groups(ALICE, STAFF), HOST, Op.READ, ResourceType.TOPIC, "t")
    assert rules.allows(with_groups(BOB, STAFF), HOST, Op.READ, ResourceType.TOPIC, "t")


def test_a_cached_decision_is_that_of_the_same_groups() -> None:
    rules = with_acls(acl("t", Op.READ, "Group:staff"), acl("t", Op.READ, "Group:contractors", PermissionType.DENY))
    asked = [(ALICE, False), (with_groups(ALICE, STAFF), True), (with_groups(ALICE, CONTRACTORS), False)]
    for who, allowed in asked * 2 + asked[::-1]:
        assert rules.allows(who, HOST, Op.READ, ResourceType.TOPIC, "t") is allowed
    assert len(rules._decided) == 3, "each of them is decided once"


def test_the_sets_of_groups_in_the_cache_are_bounded_and_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHED_GROUPS", 25)
    rules = with_acls(acl("t", Op.READ, "Group:g0"))
    for number in range(100):
        who = with_groups(ALICE, frozenset(f"Group:g{each}" for each in range(number, number + 10)))
        for name in ("t", "u"):
            assert rules.allows(who, HOST, Op.READ, ResourceType.TOPIC, name) is (number == 0 and name == "t")
            assert sum(map(len, rules._sets)) == rules._grouped <= 25
    keys = [key for key in rules._decided if len(key) == 5]
    assert {id(key[-1]) for key in keys} == {id(each) for each in rules._sets.values()}
    assert all(type(key[0]) is KafkaPrincipal for key in keys), "no object of a connection"
