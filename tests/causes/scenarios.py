"""Each cause that is made, and each healthy group that looks odd. A scenario brings a group into its state and returns what
was answered."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import TopicPartition

from tests.causes.cluster_scenarios import CLUSTER_SCENARIOS
from tests.causes.record_scenarios import RECORD_SCENARIOS
from tests.causes.scenario import Answer, Scenario
from tests.causes.scene import WAIT_S, Scene
from tests.causes.share_scenarios import SHARE_SCENARIOS
from tests.causes.streams_scenarios import STREAMS_SCENARIOS
from tests.causes.traffic_scenarios import TRAFFIC_SCENARIOS
from tidelog.console.group_facts import Sample


def stable(members: int) -> Callable[[Sample], bool]:
    return lambda found: found.state == "Stable" and len(found.members) == members


def stopped(scene: Scene) -> Answer:
    scene.create()
    scene.produce(10)
    scene.stop(scene.reader(3))
    return scene.why()


def rebalance_without_end(scene: Scene) -> Answer:
    scene.create(2)
    scene.produce(10)
    scene.reader(3)
    second = scene.consumer(scene.topic)
    scene.until(lambda found: found.state == "PreparingRebalance", second)
    return scene.why()


def stands(scene: Scene) -> Answer:
    scene.create()
    scene.produce(10)
    scene.reader(3)
    return scene.why()


def keeps_partitions(scene: Scene) -> Answer:
    scene.create(2)
    scene.produce(10)
    scene.reader(3, group_protocol="consumer")
    second = scene.consumer(scene.topic, group_protocol="consumer")
    scene.until(lambda found: any(each.assignment - (each.target or frozenset()) for each in found.members), second)
    return scene.why()


def missing_topic(scene: Scene) -> Answer:
    scene.create()
    member = scene.consumer(scene.topic[:-1], group_protocol="consumer")
    scene.until(lambda found: bool(found.members), member)
    return scene.why()


def never_commits(scene: Scene) -> Answer:
    scene.create()
    scene.produce(10)
    member = scene.consumer(scene.topic)
    assert len(member.consume(10, WAIT_S)) == 10
    return scene.why(lambda: (scene.produce(10), member.poll(0)))


def under_min_isr(scene: Scene) -> Answer:
    scene.create(min_insync_replicas="2")
    scene.store(0)
    return scene.why()


def open_transaction(scene: Scene) -> Answer:
    scene.create()
    scene.produce(3)
    producer = scene.transaction("slow-payments")
    producer.produce(scene.topic, b"held", partition=0)
    producer.flush(WAIT_S)
    scene.reader(3, isolation_level="read_committed")
    answer = scene.why()
    producer.abort_transaction(WAIT_S)
    return answer


def removed_records(scene: Scene) -> Answer:
    scene.create()
    scene.produce(10)
    scene.store(3)
    scene.remove_before(8)
    return scene.why()


def beyond_the_end(scene: Scene) -> Answer:
    scene.create()
    scene.produce(2)
    scene.store(999)
    return scene.why()


def slower(scene: Scene) -> Answer:
    scene.create()
    scene.produce(1000)
    member = scene.reader(3)
    offset = iter(range(4, 1000))
    return scene.why(lambda: (scene.produce(20), scene.commit(member, next(offset))))


def catches_up(scene: Scene) -> Answer:
    scene.create()
    scene.produce(5000)
    member = scene.reader(3)
    offset = iter(range(4, 5000))
    return scene.why(lambda: scene.commit(member, next(offset)))


def assigns_itself(scene: Scene) -> Answer:
    scene.create()
    scene.produce(10)
    member = scene.consumer()
    member.assign([TopicPartition(scene.topic, 0, 0)])
    member.consume(3, WAIT_S)
    scene.commit(member, 3)
    return scene.why()


def spare_members(scene: Scene) -> Answer:
    scene.create()
    members = [scene.consumer(scene.topic, group_protocol="consumer") for _ in range(2)]
    scene.until(stable(2), *members)
    return scene.why(lambda: [each.poll(0) for each in members])


def behind_a_marker(scene: Scene) -> Answer:
    scene.create()
    producer = scene.transaction("marked")
    producer.produce(scene.topic, b"one", partition=0)
    producer.commit_transaction(WAIT_S)
    scene.reader(1, isolation_level="read_committed")
    return scene.why()


def new_group(scene: Scene) -> Answer:
    scene.create()
    member = scene.consumer(scene.topic, group_protocol="consumer")
    scene.until(stable(1), member)
    return scene.why(lambda: member.poll(0))


def healthy(scene: Scene) -> Answer:
    scene.create()
    scene.produce(10)
    scene.reader(10)
    return scene.why()


def a_member_is_replaced(scene: Scene) -> Answer:
    """One leaves and the next one joins while the command looks, both reading to the end."""
    scene.create(2)
    scene.produce(10)
    settings = {"group_protocol": "consumer", "enable_auto_commit": True, "auto_commit_interval_ms": 100}
    members = [scene.consumer(scene.topic, **settings) for _ in range(2)]
    scene.until(lambda found: stable(2)(found) and not sum(part.lag for part in found.partitions.values()), *members)
    waiting = [lambda: members.append(scene.consumer(scene.topic, **settings)), lambda: scene.stop(members.pop(0))]

    def roll() -> None:
        if waiting:
            waiting.pop()()
        for member in members:
            member.poll(0.05)

    return scene.why(roll, seconds=8)


def waits_for_bytes(scene: Scene) -> Answer:
    """Records come one by one, fewer bytes than fetch.min.bytes: each fetch is parked for fetch.wait.max.ms."""
    scene.create()
    scene.produce(10)
    waiting = {"fetch_min_bytes": 1_000_000, "fetch_wait_max_ms": 500, "enable_auto_commit": True, "auto_commit_interval_ms": 100}
    member = scene.consumer(scene.topic, **waiting)
    scene.until(lambda found: stable(1)(found) and all(part.committed == 10 for part in found.partitions.values()), member)
    return scene.why(lambda: (scene.produce(1), member.poll(0.05)))


def stopped_under_min_isr(scene: Scene) -> Answer:
    scene.create()
    scene.produce(10)
    scene.stop(scene.reader(3))
    scene.configure("min.insync.replicas", "2")
    return scene.why()


def stopped_and_removed(scene: Scene) -> Answer:
    scene.create()
    scene.produce(10)
    scene.stop(scene.reader(3))
    scene.remove_before(8)
    return scene.why()


def removed_under_min_isr(scene: Scene) -> Answer:
    scene.create()
    scene.produce(10)
    scene.store(3)
    scene.remove_before(8)
    scene.configure("min.insync.replicas", "2")
    return scene.why()


CONSUMER_SCENARIOS = (
    Scenario("no-members", "3 of 10 records read, then the consumer closed", stopped, "G1", "7 records behind", fast=True),
    Scenario(
        "rebalance", "a member that does not poll, another one that joins", rebalance_without_end, "G3", "PreparingRebalance"
    ),
    Scenario("stands", "a member read 3 of 10 records and polls no more", stands, "G4", "read by app at 127.0.0.1"),
    Scenario("revocation", "a KIP-848 member that does not poll, another one that joins", keeps_partitions, "G5", "still has"),
    Scenario("missing-topic", "a subscription with a letter missing", missing_topic, "G8", "does not exist; there is"),
    Scenario("no-commits", "a member that reads what is written and commits nothing", never_commits, "G12", "offsets 0 to"),
    Scenario("min-isr", "min.insync.replicas=2 with one replica", under_min_isr, "P2", "min.insync.replicas 2", fast=True),
    Scenario("transaction", "a producer's transaction stays open", open_transaction, "P4", "slow-payments, Ongoing"),
    Scenario(
        "removed",
        "DeleteRecords past the committed offset",
        removed_records,
        "P5",
        "committed 3, the log begins at 8",
        fast=True,
    ),
    Scenario("beyond", "an offset stored past the end of the log", beyond_the_end, "P5", "committed 999, the log ends at 2"),
    Scenario("slower", "commits of one record while 20 are written", slower, "R1", "records/s written"),
    Scenario("catches-up", "a backlog that is read while nothing is written", catches_up, None, "records/s read", note="R2"),
    Scenario("manual", "assign() and commits", assigns_itself, None, "no members", note="G2", fast=True),
    Scenario("spare", "two members, one partition", spare_members, None, "app at", note="G7"),
    Scenario("marker", "only the marker of a transaction is behind the committed offset (P8)", behind_a_marker, None),
    Scenario("new-group", "a group that has just joined an empty topic", new_group, None),
    Scenario("healthy", "a member that has read everything", healthy, None),
    Scenario("rolling", "a member leaves and another joins while the command looks", a_member_is_replaced, None),
    Scenario("min-bytes", "fetch.min.bytes 1,000,000, a record now and then (R5)", waits_for_bytes, None),
    Scenario(
        "pair-p2-g1", "no members and under min ISR", stopped_under_min_isr, "P2", "min.insync.replicas 2", beside="G1", fast=True
    ),
    Scenario("pair-g1-p5", "no members and records removed", stopped_and_removed, "G1", "records behind", beside="P5"),
    Scenario(
        "pair-p2-p5", "records removed and under min ISR", removed_under_min_isr, "P2", "min.insync.replicas 2", beside="P5"
    ),
)

SCENARIOS = (*CONSUMER_SCENARIOS, *RECORD_SCENARIOS, *TRAFFIC_SCENARIOS, *CLUSTER_SCENARIOS, *SHARE_SCENARIOS, *STREAMS_SCENARIOS)
