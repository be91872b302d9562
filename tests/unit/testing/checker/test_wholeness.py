"""All of a transaction, or nothing; and all that was acknowledged, in the end."""

from __future__ import annotations

from tests.unit.testing.checker.told import Told
from tidelog.testing.checker import Anomaly


def pair(kind: str = "ok") -> Told:
    """A transaction with a record in each of two partitions."""
    told = Told().begin("p", "t").send("p", "a", 0, "out-0", txn="t").send("p", "b", 0, "out-1", txn="t")
    return told.commit("p", "t", kind)


def test_seeing_one_half_is_no_fault_until_the_place_of_the_other_was_passed() -> None:
    told = pair().send("q", "z", 2, "out-1").at("r", 0, "out-1").poll("r", (0, "a", "out-0"))
    assert told.found() == {}
    found = told.poll("r", (2, "z", "out-1")).found()
    assert found == {Anomaly.TORN_TRANSACTION: 1, Anomaly.LOST_WRITE: 1}


def test_an_unknown_commit_is_whole_too_once_a_part_was_seen() -> None:
    told = pair("info").send("q", "z", 2, "out-1").at("r", 0, "out-1").poll("r", (2, "z", "out-1"))
    assert told.found() == {}
    assert Anomaly.TORN_TRANSACTION in told.poll("r", (0, "a", "out-0")).found()


def test_records_whose_offset_was_never_told_are_missed_at_the_end_of_the_log() -> None:
    told = Told().begin("p", "t").send("p", "a", 0, txn="t").send("p", "b", None, "out-1", kind="info", txn="t")
    told.commit("p", "t").poll("r", (0, "a"))
    assert told.found() == {}
    assert told.drain("r", 7, "out-1").found() == {Anomaly.UNSEEN_WRITE: 1, Anomaly.TORN_TRANSACTION: 1}


def test_the_offsets_of_a_group_are_part_of_the_transaction() -> None:
    told = Told().begin("p", "t").send("p", "a", 0, txn="t").offsets("p", "g", txn="t", in_0=5).commit("p", "t", "info")
    told.at("r", 0).drain("r", 2)
    assert told.found() == {}
    assert Anomaly.TORN_TRANSACTION in told.fetch("q", "g", in_0=5).found()


def test_an_acknowledged_record_beyond_the_end_is_unseen() -> None:
    told = Told().send("p", "a", 0).send("p", "b", 1).at("r", 0).poll("r", (0, "a"))
    assert told.found() == {}
    assert told.drain("r", 1).found() == {Anomaly.UNSEEN_WRITE: 1}


def test_readers_of_everything_are_enough_where_nobody_reads_committed() -> None:
    told = pair().at("r", 0).poll("r", (0, "a"), (0, "b", "out-1"), isolation="read_uncommitted")
    assert told.drain("r", 1).drain("r", 1, "out-1").found() == {}


def test_what_was_aborted_or_refused_may_be_missing() -> None:
    told = Told().begin("p", "t").send("p", "a", 0, txn="t").abort("p", "t").send("p", "b", None, kind="fail")
    assert told.send("q", "c", None, kind="info").drain("r", 5).found() == {}
