"""What keeps a streams group from having tasks."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.console.group_samples import READER, SAMPLE, cause, facts
from tidelog.console.causes import STREAMS_CHECKS, diagnose
from tidelog.console.group_facts import STREAMS, StreamsFacts

TOPOLOGY = StreamsFacts(3, (("0", ("orders", "users")),), frozenset({"orders", "users"}), frozenset({"app-store-changelog"}))
READY = replace(SAMPLE, protocol=STREAMS, protocol_type="streams", streams=TOPOLOGY, counts={"orders": 2, "users": 2})
WAITS = replace(READY, state="NotReady", members=(replace(READER, assignment=frozenset(), subscription=frozenset()),))


def test_a_group_with_its_topics_has_no_cause() -> None:
    verdict = diagnose(facts(READY))
    assert (cause(verdict), len(verdict.fine)) == (None, len(STREAMS_CHECKS))


def test_t1_names_source_topics_that_are_missing() -> None:
    verdict = diagnose(facts(replace(WAITS, missing_topics=frozenset({"users"}), topics=frozenset({"user", "orders"}))))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.command) == ("T1", "tidelog topics --create --topic users")
    assert verdict.primary.evidence[1] == "source topic users does not exist; there is user"


def test_t1_names_unequal_partitions_and_internal_topics() -> None:
    unequal = replace(WAITS, counts={"orders": 2, "users": 3}, missing_topics=TOPOLOGY.internal)
    verdict = diagnose(facts(unequal))
    assert verdict.primary is not None
    assert verdict.primary.evidence[1:] == (
        "subtopology 0 reads topics with unequal partitions: orders has 2, users has 3",
        "internal topic app-store-changelog does not exist",
    )


def test_t1_is_not_one_look() -> None:
    assert cause(diagnose(facts(WAITS, READY))) is None, "internal topics were made meanwhile"


def test_t1_names_members_with_another_topology() -> None:
    stale = replace(READY, streams=replace(TOPOLOGY, stale=("app at h: topology epoch 2",)))
    verdict = diagnose(facts(stale))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.evidence[-1]) == ("T1", "app at h: topology epoch 2")
    assert cause(diagnose(facts(READY, stale))) is None, "a new version is being rolled out"
