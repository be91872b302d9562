from __future__ import annotations

from tidelog.console.access.rights import EVERYTHING, About, Access, Grant, Mask, Right

ORDERS = Grant(frozenset({Right.VIEW, Right.PAYLOAD}), ("prod",), ("orders*",), ("billing",))


def test_nothing_is_allowed_without_a_grant() -> None:
    access = Access()
    for right in Right:
        for about in About:
            assert not access.may(right, "prod", about, "orders")
        assert not access.may_anything(right, "prod")
    assert not access.sees("prod")
    assert access.rights() == []


def test_grants_hold_for_their_names_rights_and_clusters() -> None:
    access = Access((ORDERS,))
    assert access.may(Right.VIEW, "prod", About.TOPIC, "orders.eu")
    assert access.may(Right.PAYLOAD, "prod", About.GROUP, "billing")
    assert not access.may(Right.CHANGE, "prod", About.TOPIC, "orders")
    assert not access.may(Right.VIEW, "prod", About.TOPIC, "payments")
    assert not access.may(Right.VIEW, "test", About.TOPIC, "orders")
    assert not access.may(Right.VIEW, "prod", About.GROUP, "orders")
    assert not access.may(Right.VIEW, "prod", About.CLUSTER)
    assert (access.sees("prod"), access.sees("test")) == (True, False)
    assert access.rights() == [Right.VIEW, Right.PAYLOAD]


def test_read_only_takes_the_right_to_change_from_everyone() -> None:
    access = Access((EVERYTHING,), read_only=True)
    assert not access.may(Right.CHANGE, "c", About.TOPIC, "orders")
    assert not access.may_anything(Right.CHANGE, "c")
    assert access.may(Right.PAYLOAD, "c", About.TOPIC, "orders")
    assert Right.CHANGE not in access.rights()


def test_masks_hold_but_for_roles_that_are_excepted() -> None:
    mask = Mask(("customers*",), (("value", "mail"), ("key",)), except_roles=frozenset({"support"}))
    seen = Access((EVERYTHING,), (mask,))
    assert seen.hidden("c", "customers.eu", "value") == (("mail",),)
    assert seen.hidden("c", "customers.eu", "key") == ((),)
    assert seen.hidden("c", "orders", "value") == ()
    assert seen.is_masked("c", "customers")
    excepted = Access((EVERYTHING,), (mask,), frozenset({"support"}))
    assert not excepted.is_masked("c", "customers")


def test_brackets_in_a_pattern_are_letters() -> None:
    access = Access((Grant(frozenset({Right.VIEW}), groups=("team[12]-*",)),))
    assert access.may(Right.VIEW, "main", About.GROUP, "team[12]-a")
    assert not access.may(Right.VIEW, "main", About.GROUP, "team1-a")
