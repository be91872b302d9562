"""Each cause of a share group from its evidence, and what is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.console.group_samples import AT, HEALTHY, READER, cause, facts, notes
from tidelog.console.causes import SHARE_CHECKS, WINDOWS, diagnose
from tidelog.console.group_facts import SHARE, PartitionFacts, Sample, ShareLimits, ShareProgress, ShareWindow
from tidelog.console.node_facts import SESSIONS, NodeFacts

WINDOW = ShareWindow("active", None, 40, 49, 10, 0, "acquired", 1, READER.member_id, 25_000, 0.0)
LIMITS = ShareLimits(reset="earliest", max_size=200, max_sessions=2000)


def part(window: ShareWindow | None = WINDOW, **changes: Any) -> PartitionFacts:
    """A partition with records up to 100, of which the group has finished those below 40."""
    share = ShareProgress(True, None, 40, 60, window, window is not None)
    return replace(HEALTHY, committed=40, share=replace(share, **changes))


def look(at: PartitionFacts, **changes: Any) -> Sample:
    return replace(Sample(0, "Stable", SHARE, "share", 1, (READER,), {AT: at}, limits=LIMITS), **changes)


def named(first: PartitionFacts, last: PartitionFacts, **changes: Any) -> str | None:
    return cause(diagnose(facts(look(first, **changes), look(last, **changes))))


def window(**changes: Any) -> PartitionFacts:
    return part(replace(WINDOW, **changes))


def test_a_group_that_has_finished_everything_has_no_cause() -> None:
    done = part(replace(WINDOW, start=100, end=99, in_flight=0, first_state=None, first_deliveries=0, first_member=None), lag=0)
    verdict = diagnose(facts(look(done)))
    assert (cause(verdict), notes(verdict), len(verdict.fine)) == (None, [], len(SHARE_CHECKS))
    assert WINDOWS not in verdict.unseen


def test_s1_is_a_full_window_that_stands() -> None:
    full = window(in_flight=2000, end=2039)
    verdict = diagnose(facts(look(full)))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.contributing) == ("S1", ())
    assert "2000 of 2000" in verdict.primary.evidence[0] and "with app at 10.0.0.1 for 25 s more" in verdict.primary.evidence[0]
    assert named(full, window(in_flight=2000, start=140, end=2139)) != "S1", "it moves"


def test_s2_is_a_record_that_is_delivered_nearly_as_often_as_allowed() -> None:
    assert named(window(first_deliveries=3), window(first_deliveries=4)) == "S2"
    assert named(window(first_deliveries=3), window(first_deliveries=3)) != "S2"
    twice = ShareLimits(deliveries=2)
    assert named(window(), window(), limits=twice) != "S2", "a first delivery is none too many"


def test_s3_is_locks_that_time_out_meanwhile() -> None:
    assert named(window(), window(lock_timeouts=3.0)) == "S3"
    assert named(window(lock_timeouts=3.0), window(lock_timeouts=3.0)) == "G4", "those of the past are over"
    assert named(window(), window(lock_timeouts=None)) == "G4", "no page of metrics"


def test_s4_is_a_start_that_stands_while_records_behind_it_are_finished() -> None:
    assert named(window(), window(finished_above=5, lock_left_ms=14_000)) == "S4"
    assert named(window(), window(finished_above=5, first_deliveries=2)) == "S4"
    soon = diagnose(facts(look(window()), look(window(finished_above=5))))
    assert (cause(soon), notes(soon)) == (None, ["S4", "R2"]), "workers finish their batches at different times"


def test_s4_is_seen_by_lag_alone_but_not_who_has_the_record() -> None:
    verdict = diagnose(facts(look(part(None)), look(part(None, lag=50))))
    assert (cause(verdict), notes(verdict)) == (None, ["S4", "R2"])
    assert WINDOWS in verdict.unseen


def test_s5_is_a_state_that_cannot_be_stored_or_loaded() -> None:
    refused = part(None, error="COORDINATOR_NOT_AVAILABLE", start=None, lag=None)
    assert named(refused, refused) == "S5"
    assert named(part(), refused) is None, "a coordinator may move"
    loading = part(ShareWindow("loading", "COORDINATOR_LOAD_IN_PROGRESS"))
    assert named(loading, loading) == "S5"
    uninitialized = replace(HEALTHY, share=ShareProgress())
    fault = {"state_topic_fault": "__share_group_state does not exist"}
    assert named(uninitialized, uninitialized, **fault) == "S5"
    assert named(uninitialized, uninitialized) is None, "the first heartbeats take their time"
    done = part(replace(WINDOW, start=100, in_flight=0, end=99, first_state=None))
    assert named(done, done, **fault) is None, "a partition of the topic that this group does not need"


def test_s6_is_a_group_that_begins_behind_what_is_there() -> None:
    behind = replace(HEALTHY, share=ShareProgress(True))
    latest = ShareLimits(reset="latest")
    assert named(behind, behind, limits=latest) == "S6"
    assert named(behind, behind) is None, "earliest"
    assert named(replace(behind, end=90), behind, limits=latest) is None, "records come: the first one may be at work"
    empty = replace(behind, start=100)
    assert named(empty, empty, limits=latest) is None
    opened = replace(behind, share=ShareProgress(True, window=replace(WINDOW, start=100, in_flight=0, end=99), leader_seen=True))
    assert named(opened, opened, limits=latest) == "S6"


def test_s7_is_a_full_group_or_a_broker_full_of_sessions() -> None:
    assert named(part(), part(), limits=replace(LIMITS, max_size=1)) == "S7"
    crowded = NodeFacts(3, metrics={(SESSIONS, frozenset()): 2000.0})
    verdict = diagnose(facts(look(part(), nodes=(crowded,))))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.certain) == ("S7", False)
    assert "broker 3: 2000 sessions" in verdict.primary.evidence[0]


def test_g4_is_a_partition_of_which_nothing_is_finished() -> None:
    verdict = diagnose(facts(look(window())))
    assert verdict.primary is not None
    assert verdict.primary.cause == "G4"
    assert "60 records behind; the first record, 40, is acquired, delivery 1" in verdict.primary.evidence[0]
    silent = diagnose(facts(look(part(None, leader_seen=True))))
    assert silent.primary is not None and "no member fetches from its leader" in silent.primary.evidence[0]


def test_p4_holds_back_readers_of_committed_records_only() -> None:
    held = replace(part(None), stable=40)
    assert named(held, held, limits=replace(LIMITS, committed_only=True)) == "P4"
    assert named(held, held) == "G4"


def test_r1_and_r2_compare_what_is_finished_with_what_is_written() -> None:
    later = window(start=45, end=54)
    assert named(window(), replace(later, end=200)) == "R1"
    verdict = diagnose(facts(look(window()), look(later)))
    assert (cause(verdict), notes(verdict)) == (None, ["R2"])
    assert named(window(), replace(window(start=110, end=119), end=120)) is None, "all that was there is finished"


def test_g1_a_share_group_without_workers_has_what_it_has_not_finished() -> None:
    verdict = diagnose(facts(look(part(None), state="Empty", members=())))
    assert (cause(verdict), verdict.lag) == ("G1", 60)
