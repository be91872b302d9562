from __future__ import annotations

from tidelog.console.asking.searching import Named, found, matches


def names(query: str, *given: str, limit: int = 10) -> list[str]:
    return [each.name for each in found(query, [Named("topic", name, "") for name in given], limit)]


def test_the_best_match_comes_first() -> None:
    assert names("orders", "my-orders", "xorders", "orders.eu", "orders") == ["orders", "orders.eu", "my-orders", "xorders"]


def test_case_does_not_count_and_the_number_is_bounded() -> None:
    assert names("ORD", "Orders", "payments") == ["Orders"]
    assert len(names("a", *(f"a{number}" for number in range(50)), limit=3)) == 3


def test_what_matches_is_what_is_found() -> None:
    for name in ("Orders", "my-ORDers", "payments", ""):
        assert matches("orders", name) == bool(names("ORDERS", name))
