"""Each cause from its evidence, what is no alarm, and the order of two at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tidelog.console.causes import CHECKS, diagnose
from tidelog.console.group_facts import GroupFacts, HeldBy, MemberFacts, PartitionFacts, Sample
from tidelog.console.verdict import Verdict

AT = ("orders", 0)
HEALTHY = PartitionFacts(1, (1, 2), (1, 2), 1, start=0, stable=100, end=100, committed=100)
READER = MemberFacts("m1", "app", "/10.0.0.1", None, frozenset({AT}), None, frozenset({"orders"}))
SAMPLE = Sample(0, "Stable", members=(READER,), partitions={AT: HEALTHY})


def facts(first: Sample, last: Sample | None = None, seconds: int = 5) -> GroupFacts:
    return GroupFacts("g", first, replace(last or first, at_ms=first.at_ms + 1000 * seconds))


def with_partition(sample: Sample = SAMPLE, **changes: Any) -> Sample:
    return replace(sample, partitions={AT: replace(HEALTHY, **changes)})


def cause(verdict: Verdict) -> str | None:
    return None if verdict.primary is None else verdict.primary.cause


def notes(verdict: Verdict) -> list[str]:
    return [each.cause for each in verdict.notes]


def test_a_healthy_group_has_no_cause_and_all_is_checked() -> None:
    verdict = diagnose(facts(SAMPLE))
    assert (cause(verdict), verdict.contributing, verdict.notes) == (None, (), ())
    assert len(verdict.fine) == len(CHECKS)
    assert verdict.unseen


def test_g10_a_coordinator_that_refuses_hides_all_else() -> None:
    verdict = diagnose(facts(SAMPLE, Sample(0, coordinator_error="NOT_COORDINATOR")))
    assert (cause(verdict), verdict.fine) == ("G10", ())
    assert verdict.primary is not None and "NOT_COORDINATOR, for 5 s" in verdict.primary.evidence


def test_g10_says_why_there_is_no_coordinator_at_all() -> None:
    verdict = diagnose(facts(SAMPLE, Sample(0, coordinator_error="COORDINATOR_NOT_AVAILABLE", no_offsets_topic=True)))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.fine) == ("G10", ())
    assert "offsets.topic.replication.factor" in verdict.primary.advice


def test_p1_names_the_brokers_to_start() -> None:
    verdict = diagnose(facts(with_partition(leader=-1, in_sync=(), start=None, stable=None, end=None)))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.evidence) == ("P1", ("orders-0: replicas 1, 2, in sync none",))
    assert "Start one of the brokers 1, 2" in verdict.primary.advice
    alone = diagnose(facts(with_partition(leader=-1, replicas=(2,), in_sync=(), start=None, stable=None, end=None)))
    assert alone.primary is not None and alone.primary.advice.startswith("Start broker 2: ")


def test_p2_says_why_nothing_new_comes() -> None:
    verdict = diagnose(facts(with_partition(in_sync=(1,), min_in_sync=2)))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.evidence) == ("P2", ("orders-0: in sync 1, min.insync.replicas 2",))


EMPTY = Sample(0, "Empty", partitions={AT: replace(HEALTHY, committed=40)})


def test_g1_an_empty_group_with_a_lag_is_stuck_and_one_without_is_not() -> None:
    verdict = diagnose(facts(EMPTY))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.lag) == ("G1", 60)
    read_all = diagnose(facts(replace(EMPTY, partitions={AT: HEALTHY})))
    assert (cause(read_all), notes(read_all)) == (None, ["G1"])


def test_g2_manual_assignment_is_no_alarm() -> None:
    manual = replace(EMPTY, protocol_type="")
    verdict = diagnose(facts(manual, replace(manual, partitions={AT: replace(HEALTHY, committed=50)})))
    assert (cause(verdict), notes(verdict)) == (None, ["G2"])
    assert "1 offset moved meanwhile" in verdict.notes[0].evidence[0]


def test_g3_is_a_rebalance_at_both_looks() -> None:
    joining = replace(SAMPLE, state="PreparingRebalance")
    verdict = diagnose(facts(joining, replace(joining, state="CompletingRebalance")))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.evidence[1]) == ("G3", "app at 10.0.0.1")
    assert cause(diagnose(facts(SAMPLE, joining))) is None, "one rebalance is normal"


def test_g5_a_member_that_keeps_what_is_not_its_target() -> None:
    keeper = replace(READER, target=frozenset())
    waits = MemberFacts("m2", "other", "/10.0.0.2", None, frozenset(), frozenset({AT}), frozenset({"orders"}))
    verdict = diagnose(facts(replace(SAMPLE, protocol="consumer", members=(keeper, waits))))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.evidence) == ("G5", ("app at 10.0.0.1 still has orders-0",))


def test_g7_spare_members_are_no_alarm() -> None:
    spare = replace(READER, member_id="m2", assignment=frozenset(), instance_id="two")
    verdict = diagnose(facts(replace(SAMPLE, members=(READER, spare))))
    assert (cause(verdict), notes(verdict)) == (None, ["G7"])
    assert verdict.notes[0].evidence == ("app at 10.0.0.1, instance two",)


def test_g8_a_missing_topic_with_the_nearest_name_and_a_pattern_that_matches_none() -> None:
    idle = replace(READER, assignment=frozenset(), subscription=frozenset({"order"}))
    missing = Sample(0, "Stable", members=(idle,), missing_topics=frozenset({"order"}), topics=frozenset({"orders", "x"}))
    verdict = diagnose(facts(missing))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.evidence) == ("G8", ("order does not exist; there is orders",))
    pattern = replace(idle, subscription=frozenset(), pattern="ord.*")
    verdict = diagnose(facts(Sample(0, "Stable", "consumer", members=(pattern,))))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.evidence) == ("G8", ("app at 10.0.0.1: ord.*",))


def test_offsets_of_a_deleted_topic_are_no_alarm() -> None:
    verdict = diagnose(facts(replace(SAMPLE, missing_topics=frozenset({"gone"}))))
    assert (cause(verdict), notes(verdict)) == (None, ["G8"])
    assert "--topic gone" in verdict.notes[0].command


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


def test_two_causes_at_once_come_in_order_and_at_most_two_contribute() -> None:
    other, third = ("orders", 1), ("orders", 2)
    parts = {
        AT: replace(HEALTHY, leader=-1),
        other: replace(HEALTHY, in_sync=(1,), min_in_sync=2),
        third: replace(HEALTHY, committed=300),
    }
    verdict = diagnose(facts(replace(EMPTY, partitions={**parts, ("orders", 3): replace(HEALTHY, committed=40)})))
    assert cause(verdict) == "P1"
    assert [each.cause for each in verdict.contributing] == ["P2", "G1"]


def test_a_finding_names_five_partitions_and_counts_the_rest() -> None:
    parts = {("orders", index): replace(HEALTHY, leader=-1) for index in range(9)}
    verdict = diagnose(facts(replace(SAMPLE, partitions=parts)))
    assert verdict.primary is not None
    assert (len(verdict.primary.evidence), verdict.primary.evidence[-1]) == (6, "and 4 more")


def test_the_json_has_the_same() -> None:
    found = diagnose(facts(EMPTY)).as_json()
    assert (found["group"], found["state"], found["lag"], found["watched_seconds"]) == ("g", "Empty", 60, 5.0)
    assert found["primary"]["cause"] == "G1"
    assert set(found["primary"]) == {"cause", "title", "evidence", "advice", "command", "certain"}
