"""The table of facts itself."""

from __future__ import annotations

from tidelog.metrics.facts import BY_PATH, FACTS, Kind


def test_each_path_is_there_once_and_below_one_that_holds_others() -> None:
    assert len(BY_PATH) == len(FACTS)
    for fact in FACTS:
        above, _, _ = fact.path.removesuffix("[]").rpartition(".")
        if fact.path.endswith("[]"):
            assert BY_PATH[fact.path.removesuffix("[]")].kind is Kind.LIST
        elif above:
            holder = BY_PATH[above.removesuffix("[]")]
            assert holder.kind is (Kind.LIST if above.endswith("[]") else Kind.OBJECT), fact.path


def test_only_texts_are_names_and_each_row_says_something() -> None:
    assert {fact.kind for fact in FACTS if fact.names} == {Kind.TEXT}
    assert all(fact.doc.endswith(".") for fact in FACTS)
