"""The causes that are seen in offsets, and what healthy groups look like."""

from __future__ import annotations

import pytest

from tests.unit.console.group_samples import SAMPLE, cause, facts, notes, with_partition
from tidelog.console.causes import diagnose
from tidelog.console.group_facts import HeldBy


@pytest.mark.parametrize(
    ("changes", "evidence"),
    [
        ({"start": 50, "committed": 20}, "orders-0: committed 20, the log begins at 50"),
        ({"committed": 300}, "orders-0: committed 300, the log ends at 100"),
    ],
)
def test_p5_an_offset_outside_of_the_log(changes: dict[str, int], evidence: str) -> None:
    verdict = diagnose(facts(with_partition(**changes)))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.evidence) == ("P5", (evidence,))
    assert "--dry-run" in verdict.primary.command
    assert not verdict.contributing, "a lag below the log's start has its cause"


def test_p4_names_the_transaction_and_when_it_ends() -> None:
    holder = HeldBy(7, "payments", "Ongoing", started_ms=0, timeout_ms=65_000)
    verdict = diagnose(facts(with_partition(committed=80, stable=80, held_by=holder)))
    assert verdict.primary is not None
    assert verdict.primary.cause == "P4"
    text = "orders-0: committed 80, last stable offset 80, high watermark 100: producer 7, payments, Ongoing"
    assert verdict.primary.evidence == (text,)
    assert "aborts it in 60 s at the latest" in verdict.primary.advice
    assert not verdict.contributing, "that nothing is committed meanwhile follows from it"


def test_p4_of_a_hanging_transaction_has_the_abort_command() -> None:
    verdict = diagnose(facts(with_partition(committed=80, stable=80, held_by=HeldBy(7))))
    assert verdict.primary is not None
    assert "it hangs" in verdict.primary.advice
    assert verdict.primary.command == "tidelog transactions abort --topic orders --partition 0 --start-offset 80"


def test_g12_a_group_that_never_commits() -> None:
    verdict = diagnose(facts(with_partition(committed=None, end=90), with_partition(committed=None)))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.evidence) == ("G12", ("orders-0: offsets 0 to 100",))
    assert verdict.primary.certain
    assert cause(diagnose(facts(with_partition(committed=None, end=0, stable=0)))) is None, "there is nothing to commit"


def test_g4_a_member_with_records_that_commits_nothing() -> None:
    verdict = diagnose(facts(with_partition(committed=40)))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.evidence[0]) == ("G4", "orders-0: committed 40, 60 records behind")
    assert "read by app at 10.0.0.1" in verdict.primary.evidence[1]
    fresh = diagnose(facts(SAMPLE, with_partition(end=150, stable=150)))
    assert cause(fresh) is None, "records that came between the two looks"


def test_r1_slower_than_producers_and_r2_catching_up() -> None:
    before = with_partition(committed=40)
    slower = diagnose(facts(before, with_partition(committed=50, end=200, stable=200)))
    assert slower.primary is not None
    assert slower.primary.cause == "R1"
    assert slower.primary.evidence == ("150 records behind, 2.0 records/s read, 20.0 records/s written, over 5 s",)
    catching_up = diagnose(facts(before, with_partition(committed=90, end=100)))
    assert (cause(catching_up), notes(catching_up)) == (None, ["R2"])
    assert "in about 1 s" in catching_up.notes[0].title


def test_a_group_that_reads_within_the_time_watched_what_there_was_before_is_not_slow() -> None:
    """A consumer that commits now and then is always some records behind, also when it keeps up."""
    before = with_partition(committed=60)
    assert cause(diagnose(facts(before, with_partition(committed=160, end=200, stable=200)))) is None
    late = diagnose(facts(before, with_partition(committed=99, end=200, stable=200)))
    assert cause(late) == "R1", "100 were there at the first look"


def test_p4_is_a_transaction_that_holds_at_both_looks() -> None:
    """A reader of committed records always ends at the transaction that is open now."""
    before = with_partition(committed=80, stable=80, held_by=HeldBy(7, "payments", "Ongoing"))
    after = with_partition(committed=180, stable=180, end=190, held_by=HeldBy(7, "payments", "Ongoing"))
    verdict = diagnose(facts(before, after))
    assert (cause(verdict), verdict.contributing) == (None, ())


def test_p4_is_not_of_a_reader_that_has_gone_past_the_transaction() -> None:
    assert cause(diagnose(facts(with_partition(committed=90, stable=80)))) == "G4", "it does not read committed records only"


def test_p4_explains_why_a_group_has_committed_nothing_yet() -> None:
    holder = HeldBy(7, "payments", "Ongoing")
    verdict = diagnose(facts(with_partition(committed=None, start=10, stable=10, held_by=holder)))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.contributing) == ("P4", ())
    assert verdict.primary.evidence[0].startswith("orders-0: nothing committed, last stable offset 10, ")


def test_g12_is_not_certain_while_nothing_is_written() -> None:
    """With auto.offset.reset=latest such a reader has nothing to commit."""
    verdict = diagnose(facts(with_partition(committed=None)))
    assert (cause(verdict), notes(verdict)) == (None, ["G12"])
    assert not verdict.notes[0].certain


def test_g13_offsets_that_wait_for_a_transaction_are_not_those_of_a_member_that_commits_nothing() -> None:
    before = with_partition(committed=40, pending=True)
    verdict = diagnose(facts(before))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.contributing) == ("G13", ())
    assert verdict.primary.evidence == ("orders-0: committed 40, 60 records behind",)
    assert cause(diagnose(facts(before, with_partition(committed=90, pending=True)))) is None, "the next transaction"


def test_a_lag_of_markers_alone_is_none() -> None:
    verdict = diagnose(facts(with_partition(committed=99, only_markers=True)))
    assert (cause(verdict), verdict.notes, verdict.lag) == (None, (), 0)
