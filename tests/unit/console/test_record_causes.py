"""Causes in the next record, in the history of the log, and in the time that is left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.console.group_samples import AT, HEALTHY, SAMPLE, cause, facts, with_partition
from tidelog.console.causes import diagnose
from tidelog.console.group_facts import GroupFacts, Sample
from tidelog.console.next_record import NextRecord

ALIKE = ("JSON",) * 5
NOW_MS = 1_000_000


def at_record(**changes: Any) -> Sample:
    """The group stands at such a record."""
    return with_partition(committed=40, next=replace(NextRecord(40, 200, 0, "JSON", None, ALIKE), **changes))


def named(sample: Sample) -> str | None:
    return cause(diagnose(facts(sample)))


def test_p9_is_a_batch_larger_than_usual_at_which_the_group_stands() -> None:
    verdict = diagnose(facts(at_record(batch_bytes=3_000_000)))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.certain) == ("P9", False)
    assert [each.cause for each in verdict.contributing] == ["G4"]
    moves = GroupFacts("g", with_partition(committed=30), replace(at_record(batch_bytes=3_000_000), at_ms=5000))
    assert cause(diagnose(moves)) != "P9", "it gets past them"


def test_p10_is_a_record_unlike_those_before_it() -> None:
    assert named(at_record(kind="binary")) == "P10"
    assert named(at_record()) == "G4"
    assert named(at_record(kind="binary", before=("JSON", "text", "JSON"))) == "G4", "there was no one kind"
    assert named(at_record(kind="binary", before=("JSON",) * 2)) == "G4", "too few to say"
    assert named(at_record(kind="JSON", before=("text",) * 5)) == "G4", "text may be anything"
    assert named(at_record(kind="")) == "G4", "too large to be looked at"
    assert named(at_record(kind="text", before=("framed",) * 5)) == "P10"


def test_p11_is_a_schema_that_the_registry_lacks() -> None:
    verdict = diagnose(facts(at_record(kind="framed", schema_id=77, schema_missing=True, before=("framed",) * 5)))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.evidence) == ("P11", ("orders-0: offset 40: schema id 77",))
    assert verdict.primary.command.endswith("--topic orders:0 --to-offset 41 --dry-run")


def test_p12_is_a_batch_whose_checksum_does_not_fit() -> None:
    assert named(at_record(corrupt="its checksum does not fit its bytes")) == "P12"


def test_a_group_without_members_does_not_stand_at_a_record() -> None:
    assert named(replace(at_record(kind="binary"), members=(), state="Empty")) == "G1"


def retained(left: int, then: int, **changes: Any) -> str | None:
    """The cause where so many ms of 100,000 are left at the last look and were at the first, five seconds before."""
    first = with_partition(committed=40, retention_ms=100_000, next=NextRecord(40, 1, NOW_MS + then - 100_000))
    last = with_partition(committed=41, retention_ms=100_000, next=NextRecord(41, 1, NOW_MS + left + 5000 - 100_000), **changes)
    return cause(diagnose(facts(replace(first, at_ms=NOW_MS), last)))


def test_p6_is_little_time_left_that_gets_less() -> None:
    assert retained(9000, 13_000) == "P6"
    assert retained(-10, 4000) == "P6"
    assert retained(11_000, 15_000) is None, "more than a tenth"
    assert retained(9000, 8000) is None, "the group gains"
    endless = with_partition(committed=40, retention_ms=-1, next=NextRecord(40, 1, 0))
    assert cause(diagnose(facts(endless))) == "G4"


def test_p7_is_an_epoch_that_ended_before_the_committed_offset() -> None:
    verdict = diagnose(facts(with_partition(committed=90, committed_epoch=3, epoch_end=(2, 60))))
    assert verdict.primary is not None
    assert verdict.primary.cause == "P7"
    assert verdict.primary.evidence == ("orders-0: committed 90 in leader epoch 3, which ended at 60; the log ends at 100",)
    assert cause(diagnose(facts(with_partition(committed=100, committed_epoch=3, epoch_end=(3, 100))))) is None


def test_p3_is_a_high_watermark_that_stands_below_the_end() -> None:
    verdict = diagnose(facts(with_partition(log_end=105)))
    assert verdict.primary is not None
    assert verdict.primary.evidence == ("orders-0: high watermark 100 at both looks, the leader's log ends at 105; in sync 1, 2",)
    before = with_partition(end=90, log_end=95, committed=90, stable=90)
    assert cause(diagnose(facts(before, with_partition(log_end=105)))) is None
    assert cause(diagnose(facts(with_partition(log_end=100), with_partition(log_end=101)))) is None, "just written"


def test_facts_of_a_partition_that_nothing_is_known_of() -> None:
    assert named(replace(SAMPLE, partitions={AT: replace(HEALTHY, start=None, stable=None, end=None)})) is None
