"""Causes from nodes' metrics, and members that fence each other."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.console.group_samples import AT, HEALTHY, READER, SAMPLE, cause, facts, notes, with_partition
from tidelog.console.causes import METRICS, diagnose
from tidelog.console.group_facts import GroupFacts, PartitionFacts, Sample
from tidelog.console.node_facts import FETCH_RATE, FETCH_THROTTLE, FETCHES, ClientFacts, NodeFacts

OTHER = ("users", 0)
STANDS = replace(HEALTHY, committed=40)


def node(**fetches: float) -> NodeFacts:
    return NodeFacts(1, metrics={(FETCHES, frozenset({("topic", topic)})): value for topic, value in fetches.items()})


def static(member_id: str, client: str = "app") -> Sample:
    member = replace(READER, member_id=member_id, instance_id="one", client_id=client)
    return replace(SAMPLE, members=(member,))


def test_g6_is_an_instance_id_that_changes_hands_twice() -> None:
    looks = GroupFacts("g", static("m1", "a"), replace(static("m3", "a"), at_ms=5000), (static("m2", "b"), static("m2", "b")))
    verdict = diagnose(looks)
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.evidence) == (
        "G6",
        ("one: 3 members in 5 s, from a at 10.0.0.1, b at 10.0.0.1",),
    )
    restarted = GroupFacts("g", static("m1"), replace(static("m2"), at_ms=5000), (static("m1"),))
    assert cause(diagnose(restarted)) is None, "a restart of a static member"


def throttled_by(client: str, delay: float) -> Sample:
    labels = frozenset({("user", ""), ("client_id", client)})
    metrics = {(FETCH_THROTTLE, labels): delay, (FETCH_RATE, labels): 2000.0}
    return replace(with_partition(committed=40), nodes=(NodeFacts(1, metrics=metrics),))


def test_r3_is_a_quota_that_throttles_a_member() -> None:
    verdict = diagnose(facts(throttled_by("app", 700.0)))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.evidence) == (
        "R3",
        ("broker 1: app waits 700 ms an answer for consumer_byte_rate, 2000 bytes/s",),
    )
    assert METRICS not in verdict.unseen and METRICS in diagnose(facts(SAMPLE)).unseen
    assert cause(diagnose(facts(throttled_by("other", 700.0)))) == "G4"
    assert cause(diagnose(facts(throttled_by("app", 0.0)))) == "G4"
    done = replace(throttled_by("app", 700.0), partitions={AT: HEALTHY})
    assert cause(diagnose(facts(done))) is None, "it keeps up all the same"


def two(orders: PartitionFacts, users: PartitionFacts, seen: NodeFacts) -> Sample:
    member = replace(READER, assignment=frozenset({AT, OTHER}), subscription=frozenset({"orders", "users"}))
    return replace(SAMPLE, members=(member,), partitions={AT: orders, OTHER: users}, nodes=(seen,))


def test_r6_is_a_topic_that_is_not_fetched_by_a_member_that_goes_on_elsewhere() -> None:
    first = two(STANDS, replace(HEALTHY, committed=80), node(orders=5, users=7))
    verdict = diagnose(facts(first, two(STANDS, replace(HEALTHY, committed=90), node(orders=5, users=9))))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.evidence[0].partition(":")[0]) == ("R6", "orders-0")
    fetched = two(STANDS, replace(HEALTHY, committed=90), node(orders=6, users=9))
    assert cause(diagnose(facts(first, fetched))) == "G4"
    still = two(STANDS, replace(HEALTHY, committed=80), node(orders=5, users=7))
    assert cause(diagnose(facts(still))) == "G4", "it does not poll at all"
    unread = [replace(each, nodes=()) for each in (first, fetched)]
    assert cause(diagnose(facts(*unread))) == "G4"


def test_g11_is_a_topic_that_is_fetched_and_that_no_member_subscribes_to() -> None:
    def look(fetches: float, committed: int = 40) -> Sample:
        partitions = {AT: HEALTHY, OTHER: replace(HEALTHY, committed=committed)}
        return replace(SAMPLE, partitions=partitions, nodes=(node(users=fetches),))

    verdict = diagnose(facts(look(3), look(8)))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.certain) == ("G11", False)
    assert verdict.primary.evidence == ("users-0: committed 40 at both looks, 60 records behind; no member subscribes to it",)
    assert cause(diagnose(facts(look(3), look(3)))) is None, "offsets of an old subscription"
    assert cause(diagnose(facts(look(3), look(8, committed=50)))) is None, "commits come"
    pattern = [replace(each, members=(replace(READER, pattern="u.*"),)) for each in (look(3), look(8))]
    assert cause(diagnose(facts(*pattern))) is None, "a regular expression may match it"


def test_r4_is_a_leader_without_time_while_the_group_falls_behind() -> None:
    client = ClientFacts("scanner", "h", None, 9000, 1)
    full = NodeFacts(1, 0.95, (client,))
    behind = replace(with_partition(committed=40), nodes=(full,))
    later = replace(with_partition(committed=50, end=200, stable=200), nodes=(full,))
    verdict = diagnose(facts(behind, later))
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.evidence) == (
        "R4",
        ("broker 1: its loop is busy 95 % of the time; scanner: 9000 requests",),
    )
    assert [each.cause for each in verdict.contributing] == ["R1"]
    idle = replace(later, nodes=(NodeFacts(1, 0.5),))
    assert cause(diagnose(facts(behind, idle))) == "R1"
    other = replace(later, nodes=(NodeFacts(2, 0.95),))
    assert cause(diagnose(facts(behind, other))) == "R1", "it does not lead the partition"
    catches_up = diagnose(facts(behind, replace(with_partition(committed=90), nodes=(full,))))
    assert (cause(catches_up), notes(catches_up)) == (None, ["R2"])
