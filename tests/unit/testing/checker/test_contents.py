"""Records that should not be there, or not yet, or elsewhere."""

from __future__ import annotations

from tests.unit.testing.checker.told import Told
from tidelog.testing.checker import Anomaly


def test_aborted_records_are_for_read_uncommitted_only() -> None:
    told = Told().begin("p", "t").send("p", "a", 0, txn="t").abort("p", "t")
    assert told.poll("r", (0, "a"), isolation="read_uncommitted").found() == {}
    assert told.poll("s", (0, "a")).poll("u", (0, "a")).found() == {Anomaly.ABORTED_READ: 1}


def test_a_refused_send_is_an_aborted_read_as_well() -> None:
    assert Told().send("p", "a", None, kind="fail").poll("r", (0, "a")).found() == {Anomaly.ABORTED_READ: 1}


def test_a_record_may_be_read_only_after_its_commit_was_asked_for() -> None:
    early = Told().begin("p", "t").send("p", "a", 0, txn="t").poll("r", (0, "a")).commit("p", "t")
    assert early.found() == {Anomaly.INTERMEDIATE_READ: 1}
    told = Told().begin("p", "t").send("p", "a", 0, txn="t").note("p", "invoke", "commit", txn="t").poll("r", (0, "a"))
    assert told.note("p", "ok", "commit", txn="t").found() == {}


def test_a_record_that_nobody_sent() -> None:
    assert Told().poll("r", (0, "a")).poll("s", (0, "a")).found() == {Anomaly.PHANTOM_READ: 1}


def test_an_offset_has_one_value_and_a_value_one_offset() -> None:
    two = Told().send("p", "a", 0).send("q", "b", 1).poll("r", (0, "a")).poll("s", (0, "b"))
    assert Anomaly.INCONSISTENT_OFFSET in two.found()
    assert Told().send("p", "a", 0).poll("r", (1, "a")).found()[Anomaly.INCONSISTENT_OFFSET] == 1
    assert Told().send("p", "a", 0).poll("r", (0, "a", "other-0")).found()[Anomaly.INCONSISTENT_OFFSET] == 1
    acknowledged_twice = Told().send("p", "a", 0).send("q", "b", 0)
    assert acknowledged_twice.found()[Anomaly.INCONSISTENT_OFFSET] == 1


def test_a_value_read_at_two_offsets_is_a_duplicate_whichever_is_read_first() -> None:
    assert Told().send("p", "a", 0).poll("r", (0, "a"), (1, "a")).found() == {Anomaly.DUPLICATE_WRITE: 1}
    assert Anomaly.DUPLICATE_WRITE in Told().send("p", "a", 0).poll("r", (1, "a")).poll("s", (0, "a")).found()
    assert Anomaly.DUPLICATE_WRITE in Told().send("p", "a", None, kind="info").poll("r", (0, "a"), (1, "a")).found()


def test_producers_that_may_repeat_themselves_may() -> None:
    told = Told().send("p", "a", 0, ordered=False).poll("r", (0, "a"), (1, "a"))
    assert told.found() == {}
