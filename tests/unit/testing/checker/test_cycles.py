"""Dependencies that lead back to where they began."""

from __future__ import annotations

from tests.unit.testing.checker.told import Told
from tidelog.testing.checker import Anomaly, check_events
from tidelog.testing.checker.cycles import Edge, components, shortest_cycle


def test_two_transactions_that_have_read_each_other() -> None:
    told = Told().begin("p", "t").begin("q", "u").send("p", "a", 0, txn="t").send("q", "b", 0, "out-1", txn="u")
    told.poll("p", (0, "b", "out-1"), txn="t").poll("q", (0, "a"), txn="u")
    told.commit("p", "t").commit("q", "u")
    verdict = check_events(told.events)
    assert verdict.anomalies[Anomaly.G1C].examples == ["t (p) -wr-> u (q) -wr-> t (p)"]


def test_reading_what_was_written_after_one_had_written() -> None:
    """q reads a later transaction of p's before committing what p had read before: time went back."""
    told = Told().begin("q", "u").send("q", "x", 0, txn="u").poll("p", (0, "x"))
    told.begin("p", "t").send("p", "a", 0, "out-1", txn="t").commit("p", "t")
    told.poll("q", (0, "a", "out-1"), txn="u").commit("q", "u")
    verdict = check_events(told.events)
    assert "-process->" in verdict.anomalies[Anomaly.G1C].examples[0]


def interleaved() -> Told:
    told = Told().begin("p", "t").begin("q", "u").send("p", "a", 0, txn="t").send("q", "b", 1, txn="u")
    told.send("q", "c", 0, "out-1", txn="u").send("p", "d", 1, "out-1", txn="t")
    return told.commit("p", "t").commit("q", "u")


def test_writes_in_turn_are_lawful_in_kafka_and_a_cycle_where_order_was_promised() -> None:
    assert interleaved().found() == {}
    assert interleaved().found(write_order=True) == {Anomaly.G0: 1}


def test_one_anti_dependency() -> None:
    """u has seen t's record in one partition, and not the one in the other where it read up to it."""
    told = Told().send("s", "z", 0).begin("p", "t").send("p", "a", 1, txn="t").send("p", "b", 0, "out-1", txn="t")
    told.note("p", "invoke", "commit", txn="t")
    told.begin("q", "u").poll("q", (0, "z"), (0, "b", "out-1"), txn="u").commit("q", "u")
    told.note("p", "ok", "commit", txn="t")
    assert told.found() == {}
    assert told.found(write_order=True) == {Anomaly.G_SINGLE: 1}


def test_two_anti_dependencies() -> None:
    """Each has missed what the other wrote: write skew."""
    told = Told().send("s", "y", 0).send("s", "z", 0, "out-1").begin("p", "t").begin("q", "u")
    told.poll("p", (0, "y"), txn="t").poll("q", (0, "z", "out-1"), txn="u")
    told.send("p", "a", 1, "out-1", txn="t").send("q", "b", 1, txn="u").commit("p", "t").commit("q", "u")
    assert told.found() == {}
    assert told.found(write_order=True) == {Anomaly.G2: 1}


def test_transactions_one_after_another_have_no_cycle_of_any_kind() -> None:
    told = Told()
    for number in range(20):
        process, txn = f"p{number % 3}", f"t{number}"
        told.begin(process, txn)
        if number:
            told.poll(process, (number - 1, f"v{number - 1}"), txn=txn)
        told.send(process, f"v{number}", number, txn=txn).commit(process, txn)
        told.at(process, None)
    assert told.found(write_order=True) == {}


def test_aborted_readers_and_dirty_reads_make_no_cycles_with_what_they_may_see() -> None:
    told = Told().begin("p", "t").begin("q", "u").send("p", "a", 0, txn="t").send("q", "b", 0, "out-1", txn="u")
    told.poll("p", (0, "b", "out-1"), txn="t", isolation="read_uncommitted")
    told.poll("q", (0, "a"), txn="u", isolation="read_uncommitted").commit("p", "t").commit("q", "u")
    assert told.found() == {}


def test_components_of_a_long_chain_need_no_recursion() -> None:
    length = 50_000
    after: list[dict[int, Edge]] = [{node + 1: Edge.WR} for node in range(length - 1)] + [{}]
    assert list(components(after)) == []
    after[-1] = {length - 3: Edge.WR}
    (part,) = components(after)
    assert sorted(part) == [length - 3, length - 2, length - 1]
    assert shortest_cycle(after, part, Edge.WR) in (
        [length - 3, length - 2, length - 1, length - 3],
        [length - 2, length - 1, length - 3, length - 2],
        [length - 1, length - 3, length - 2, length - 1],
    )
