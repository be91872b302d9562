"""Causes that take several nodes, of which one is stopped."""

from __future__ import annotations

from tests.causes.scenario import Answer, Scenario
from tests.causes.scene import Scene
from tests.causes.stages import CLUSTER, PATIENT
from tests.interop.nodes import free_ports


def without(scene: Scene, node_id: int) -> Answer:
    """The answer while this node is down."""
    scene.cluster.kill(node_id)
    try:
        return scene.why()
    finally:
        scene.cluster.start(node_id)


def no_leader(scene: Scene) -> Answer:
    """The partition has one replica, on a node that does not coordinate the group."""
    away = next(each for each in scene.cluster.brokers if each != scene.coordinator())
    scene.create(on=[away])
    scene.produce(10)
    scene.stop(scene.reader(3))
    scene.cluster.kill(away)
    try:
        scene.cluster.until(lambda: scene.leader(scene.topic) < 0, "no leader")
        return scene.why()
    finally:
        scene.cluster.start(away)


def no_coordinator(scene: Scene) -> Answer:
    away = scene.coordinator()
    scene.create(on=[next(each for each in scene.cluster.brokers if each != away)])
    scene.produce(10)
    scene.stop(scene.reader(3))
    return without(scene, away)


def no_share_state(scene: Scene) -> Answer:
    """The one partition of __share_group_state is down, the group's coordinator and the topic are not."""
    scene.create()
    scene.share_settings()
    worker = scene.worker()
    scene.until(lambda found: found.state_topic_fault is None and bool(found.members), worker)
    scene.dismiss(worker)
    away = scene.leader("__share_group_state")
    scene.topic = "share-state-second"
    scene.create(on=[next(each for each in scene.cluster.brokers if each != away)])
    names = (f"share-state-{number}" for number in range(100))
    scene.group = next(name for name in names if _coordinated_by(scene, name) != away)
    scene.share_settings()
    scene.produce(10)
    scene.cluster.kill(away)
    try:
        scene.cluster.until(lambda: scene.leader("__share_group_state") < 0, "no leader")
        worker = scene.worker()
        scene.until(lambda found: bool(found.members), worker)
        return scene.why()
    finally:
        scene.cluster.start(away)


def _coordinated_by(scene: Scene, group: str) -> int:
    scene.group = group
    return scene.coordinator()


def wrong_address(scene: Scene) -> Answer:
    """The leader tells clients an address at which nothing listens."""
    away = next(each for each in scene.cluster.brokers if each != scene.coordinator())
    scene.create(on=[away])
    scene.produce(10)
    scene.stop(scene.reader(3))
    (closed,) = free_ports(1)
    scene.cluster.stop(away)
    scene.cluster.start(away, advertised_listeners=f"PLAINTEXT://127.0.0.1:{closed}")
    try:
        scene.cluster.until(lambda: scene.leader(scene.topic) == away, "it leads")
        scene.consumer(scene.topic).poll(1)
        return scene.why()
    finally:
        scene.cluster.stop(away)
        scene.cluster.start(away)


def slow_follower(scene: Scene) -> Answer:
    """A follower in sync hangs: what is written is not yet readable."""
    cluster = scene.cluster
    hangs = next(each for each in cluster.brokers if each not in (scene.coordinator(), cluster.active_controller()))
    leads = scene.coordinator()
    scene.create(on=[leads, hangs])
    scene.produce(10)
    member = scene.reader(10)
    cluster.pause(hangs)
    scene.servers = cluster.address(leads)  # a node that hangs takes connections, and answers nothing
    try:
        scene.write(b"not readable yet", acks=1)
        return scene.why(lambda: member.poll(0.05))
    finally:
        cluster.resume(hangs)


def other_history(scene: Scene) -> Answer:
    """The group reads what one replica alone has; that one is lost, and the other one leads."""
    cluster = scene.cluster
    kept = scene.coordinator()
    first, second = (each for each in cluster.brokers if each != kept)
    scene.create(on=[first, second], unclean_leader_election_enable="true", min_insync_replicas="1")
    scene.produce(5)
    cluster.kill(second)
    scene.write(*(b"lost %d" % number for number in range(5)))
    member = scene.consumer(scene.topic)
    assert len(member.consume(10, 60)) == 10
    member.commit(asynchronous=False)
    scene.stop(member)
    cluster.kill(first)
    cluster.start(second)
    try:
        cluster.until(lambda: scene.leader(scene.topic) == second, "an unclean election")
        scene.write(*(b"other %d" % number for number in range(9)))
        quiet = scene.consumer(scene.topic)
        quiet.poll(1)
        return scene.why()
    finally:
        cluster.start(first)


def too_few_in_sync(scene: Scene) -> Answer:
    """One of two replicas is down, and producers with acks=all are refused."""
    away = next(each for each in scene.cluster.brokers if each != scene.coordinator())
    scene.create(on=[scene.coordinator(), away], min_insync_replicas="2")
    scene.produce(10)
    member = scene.reader(10)
    scene.cluster.kill(away)
    try:
        scene.cluster.until(scene.refuses, "NOT_ENOUGH_REPLICAS")
        return scene.why(lambda: member.poll(0.05))
    finally:
        scene.cluster.start(away)


CLUSTER_SCENARIOS = (
    Scenario("leaderless", "the one node with the partition is killed", no_leader, "P1", "in sync", stage=CLUSTER),
    Scenario(
        "address",
        "advertised.listeners of the leader names a port at which nothing listens",
        wrong_address,
        "R7",
        "Connection refused",
        stage=CLUSTER,
    ),
    Scenario(
        "too-few-in-sync",
        "one of two replicas is killed, min.insync.replicas=2; a producer gets NOT_ENOUGH_REPLICAS",
        too_few_in_sync,
        "P2",
        "min.insync.replicas 2",
        stage=CLUSTER,
    ),
    Scenario("hangs", "a follower in sync hangs, acks=1", slow_follower, "P3", "the leader's log ends at 11", stage=PATIENT),
    Scenario(
        "history",
        "an unclean election after the group has read what the lost leader alone had",
        other_history,
        "P7",
        "which ended at 5",
        stage=CLUSTER,
    ),
    Scenario("coordinator", "the group's coordinator is killed", no_coordinator, "G10", "COORDINATOR", stage=CLUSTER),
    Scenario(
        "share-state",
        "the node with __share_group_state is killed",
        no_share_state,
        "S5",
        "1 of 1 partitions without a leader",
        stage=CLUSTER,
    ),
)
