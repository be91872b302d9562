"""Committed offsets, and what was made of what was consumed."""

from __future__ import annotations

from tests.unit.testing.checker.told import Told
from tidelog.testing.checker import Anomaly


def test_a_group_is_never_where_only_aborted_transactions_put_it() -> None:
    told = Told().begin("p", "t").offsets("p", "g", txn="t", in_0=5).abort("p", "t")
    assert told.fetch("p", "g", in_0=-1).found() == {}
    assert told.fetch("p", "g", in_0=5).found() == {Anomaly.ABORTED_OFFSETS: 1}


def test_offsets_that_nobody_had_committed_by_then() -> None:
    told = Told().fetch("p", "g", in_0=5).offsets("p", "g", in_0=5)
    assert told.found() == {Anomaly.ABORTED_OFFSETS: 1}
    assert told.fetch("p", "g", in_0=5).found() == {Anomaly.ABORTED_OFFSETS: 1}


def test_acknowledged_offsets_stay() -> None:
    told = Told().offsets("p", "g", in_0=5).begin("p", "t").offsets("p", "g", txn="t", in_0=7)
    assert told.fetch("q", "g", in_0=5).found() == {}
    told.commit("p", "t").fetch("q", "g", in_0=7)
    assert told.found() == {}
    assert told.fetch("q", "g", in_0=5).found() == {Anomaly.LOST_OFFSETS: 1}


def test_an_unknown_commit_of_offsets_may_count_or_not() -> None:
    told = Told().offsets("p", "g", in_0=5).offsets("p", "g", "info", in_0=7)
    assert told.fetch("q", "g", in_0=5).fetch("q", "g", in_0=7).found() == {}


def transformed(consumed: int, *outputs: str) -> Told:
    """Inputs a and b; a group that ends at ``consumed``, and made these outputs of a."""
    told = Told().send("s", "a", 0, "in-0").send("s", "b", 1, "in-0")
    for number, output in enumerate(outputs):
        txn = f"t{number}"
        told.begin("p", txn).send("p", output, number, txn=txn, source="a").offsets("p", "g", txn=txn, in_0=1).commit("p", txn)
    if consumed > 1:
        told.begin("p", "u").offsets("p", "g", txn="u", in_0=consumed).commit("p", "u")
    told.at("r", 0).poll("r", *((number, output) for number, output in enumerate(outputs))).drain("r", 9)
    return told.fetch("r", "g", in_0=consumed)


def test_what_was_consumed_lands_once() -> None:
    assert transformed(1, "A").found() == {}
    assert transformed(1, "A", "A again").found() == {Anomaly.DUPLICATE_OUTPUT: 1}
    assert transformed(2, "A").found() == {Anomaly.MISSING_OUTPUT: 1}


def test_what_landed_was_consumed() -> None:
    told = transformed(1, "A").begin("p", "w").send("p", "B", 1, txn="w", source="b").offsets("p", "g", "info", txn="w")
    told.commit("p", "w", "info").poll("r", (1, "B")).fetch("r", "g", in_0=1)
    assert told.found() == {Anomaly.UNCOUNTED_OUTPUT: 1}


def test_an_output_of_an_aborted_attempt_does_not_count() -> None:
    told = Told().send("s", "a", 0, "in-0").begin("p", "t").send("p", "A1", 0, txn="t", source="a")
    told.offsets("p", "g", txn="t", in_0=1).abort("p", "t")
    told.begin("p", "u").send("p", "A2", 2, txn="u", source="a").offsets("p", "g", txn="u", in_0=1).commit("p", "u")
    assert told.at("r", 0).poll("r", (2, "A2")).drain("r", 4).fetch("r", "g", in_0=1).found() == {}
