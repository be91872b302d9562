"""Each cause from its evidence, what is no alarm, and the order of two at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.console.group_samples import AT, EMPTY, HEALTHY, READER, SAMPLE, cause, facts, notes, with_partition
from tidelog.console.causes import CHECKS, diagnose
from tidelog.console.group_facts import HeldBy, MemberFacts, Sample
from tidelog.console.wording import SHOWN


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


def test_g10_names_the_partitions_that_are_down() -> None:
    verdict = diagnose(facts(SAMPLE, Sample(0, coordinator_error="COORDINATOR_NOT_AVAILABLE", leaderless_offsets=(4, 7))))
    assert verdict.primary is not None
    assert verdict.primary.evidence[1] == "partitions of __consumer_offsets without a leader: 4, 7"


def test_r7_is_a_leader_that_cannot_be_reached_at_both_looks() -> None:
    away = with_partition(unreachable="10.0.0.9:1 refused", start=None, stable=None, end=None)
    verdict = diagnose(facts(away))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.evidence) == ("R7", ("orders-0: broker 1: 10.0.0.9:1 refused",))
    assert cause(diagnose(facts(SAMPLE, away))) is None


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


def test_g5_is_what_a_rebalance_waits_for_and_g3_is_many_of_them() -> None:
    keeper = replace(READER, target=frozenset())
    one = replace(SAMPLE, state="Reconciling", protocol="consumer", epoch=3, members=(keeper,))
    verdict = diagnose(facts(one))
    assert (cause(verdict), verdict.contributing) == ("G5", ())
    verdict = diagnose(facts(one, replace(one, epoch=7)))
    assert (cause(verdict), [each.cause for each in verdict.contributing]) == ("G3", ["G5"])


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


def test_names_near_a_missing_one_are_looked_for_where_they_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("difflib.get_close_matches", lambda name, *_: asked.append(name) or [])
    names = frozenset(f"nowhere-{number}" for number in range(5000))  # any client may ask for as many
    idle = replace(READER, assignment=frozenset(), subscription=names)
    verdict = diagnose(facts(Sample(0, "Stable", members=(idle,), missing_topics=names, topics=frozenset({"orders"}))))
    assert verdict.primary is not None
    assert len(verdict.primary.evidence) == len(asked) == SHOWN


def test_offsets_of_a_deleted_topic_are_no_alarm() -> None:
    verdict = diagnose(facts(replace(SAMPLE, missing_topics=frozenset({"gone"}))))
    assert (cause(verdict), notes(verdict)) == (None, ["G8"])
    assert "--topic gone" in verdict.notes[0].command


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


def test_the_json_has_the_same() -> None:
    found = diagnose(facts(EMPTY)).as_json()
    assert (found["group"], found["state"], found["lag"], found["watched_seconds"]) == ("g", "Empty", 60, 5.0)
    assert found["primary"]["cause"] == "G1"
    assert set(found["primary"]) == {"cause", "title", "evidence", "advice", "command", "certain"}


REBALANCE = "PreparingRebalance"


def test_names_in_commands_stay_one_word() -> None:
    """A group, a transaction and a topic that a client subscribes to are named by that client."""
    evil = "x; touch $HOME\n"
    commands = [
        diagnose(replace(facts(replace(SAMPLE, state=REBALANCE)), group_id=evil)).primary,
        diagnose(facts(with_partition(committed=40, stable=40, held_by=HeldBy(7, evil, "Ongoing")))).primary,
        diagnose(facts(replace(SAMPLE, missing_topics=frozenset({evil}), members=(_reads(evil),)))).primary,
    ]
    for each in commands:
        assert each is not None
        assert each.command.isprintable()
        assert "$'x; touch $HOME\\x0a'" in each.command


def _reads(topic: str) -> MemberFacts:
    return replace(READER, subscription=frozenset({topic}))
