"""Causes that take several nodes, of which one is stopped."""

from __future__ import annotations

from tests.causes.scenario import Answer, Scenario
from tests.causes.scene import Scene
from tests.causes.stages import CLUSTER
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
