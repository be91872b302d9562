"""Reads that leave something out, or go back."""

from __future__ import annotations

from tests.unit.testing.checker.told import Told
from tidelog.testing.checker import Anomaly


def three() -> Told:
    return Told().send("p", "a", 0).send("p", "b", 1).send("p", "c", 2)


def test_what_others_read_may_not_be_left_out() -> None:
    all_of_it = three().poll("s", (0, "a"), (1, "b"), (2, "c"))
    assert all_of_it.poll("r", (0, "a"), (2, "c")).found() == {Anomaly.SKIPPED_WITHIN: 1}
    all_of_it = three().poll("s", (0, "a"), (1, "b"), (2, "c"))
    assert all_of_it.poll("r", (0, "a")).poll("r", (2, "c")).found() == {Anomaly.SKIPPED: 1}


def test_what_all_have_passed_and_nobody_read_is_lost_and_told_once() -> None:
    told = three().poll("r", (0, "a"), (2, "c")).poll("s", (0, "a")).poll("s", (2, "c"))
    assert told.found() == {Anomaly.LOST_WRITE: 1}


def test_a_known_start_and_a_known_end_count_as_read() -> None:
    told = three().at("r", 0).poll("r", (1, "b"), (2, "c"))
    assert told.found() == {Anomaly.LOST_WRITE: 1}
    told = three().poll("r", (0, "a"), (1, "b"), positions={"out-0": 3})
    assert told.found() == {Anomaly.LOST_WRITE: 1}


def test_where_a_reader_began_is_not_known_unless_it_says_so() -> None:
    assert three().poll("r", (2, "c")).found() == {}
    assert three().at("r", None).poll("r", (2, "c")).found() == {}


def test_seeks_and_revocations_allow_to_go_back_and_forth() -> None:
    told = three().poll("r", (0, "a")).at("r", 2).poll("r", (2, "c")).at("r", 0).poll("r", (0, "a"), (1, "b"))
    assert told.found() == {}
    told = three().poll("r", (1, "b"), (2, "c")).note("r", "ok", "revoke", partitions=["out-0"]).poll("r", (0, "a"))
    assert told.found() == {}


def test_polls_do_not_go_back() -> None:
    assert three().poll("r", (1, "b"), (0, "a")).found() == {Anomaly.POLL_BACK_WITHIN: 1}
    assert three().poll("r", (0, "a"), (1, "b")).poll("r", (1, "b"), (2, "c")).found() == {Anomaly.POLL_BACK: 1}
    assert three().at("r", 1).poll("r", (0, "a"), (1, "b")).found() == {Anomaly.POLL_BACK: 1}


def test_committed_readers_pass_aborted_records_and_uncommitted_ones_do_not() -> None:
    told = Told().send("p", "a", 0).begin("q", "t").send("q", "x", 1, txn="t").abort("q", "t").send("p", "b", 3)
    assert told.poll("r", (0, "a"), (3, "b")).found() == {}
    told.poll("u", (0, "a"), (1, "x"), (3, "b"), isolation="read_uncommitted")
    assert told.found() == {}
    told.poll("v", (0, "a"), (3, "b"), isolation="read_uncommitted")
    assert told.found() == {Anomaly.SKIPPED_WITHIN: 1}


def test_unknown_records_may_be_missing_but_not_for_one_reader_only() -> None:
    told = Told().send("p", "a", 0).begin("q", "t").send("q", "x", 1, txn="t").commit("q", "t", "info").send("p", "b", 3)
    assert told.poll("r", (0, "a"), (3, "b")).found() == {}
    assert told.poll("s", (0, "a"), (1, "x")).found() == {Anomaly.SKIPPED_WITHIN: 1}


def test_sends_of_one_producer_lie_in_their_order() -> None:
    assert Told().send("p", "a", 1).send("p", "b", 0).found() == {Anomaly.SEND_BACK: 1}
    assert Told().send("p", "a", 1).send("q", "b", 0).found() == {}
    assert Told().send("p", "a", 1).send("p", "b", 0, "out-1").found() == {}
    assert Told().send("p", "a", 1, ordered=False).send("p", "b", 0, ordered=False).found() == {}
    told = Told().begin("p", "t").send("p", "a", 1, txn="t").send("p", "b", 0, txn="t").commit("p", "t")
    assert told.found() == {Anomaly.SEND_BACK_WITHIN: 1}
