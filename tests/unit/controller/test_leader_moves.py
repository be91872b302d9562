from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.controller.conftest import Cluster
from tests.unit.controller.test_broker_registration import with_elr
from tests.unit.controller.test_elect_leaders import create
from tidelog.controller import leader_moves
from tidelog.metadata.image import PartitionImage
from tidelog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)


def moves(cluster: Cluster, event: Callable[..., list[Any]], *args: Any, **more: Any) -> list[tuple[int, int, list[int] | None]]:
    """(partition, new leader, new ISR) of each record that follows."""
    records = event(cluster.controller._decision, *args, **more)
    return [(record.partition_id, record.leader, record.isr) for record in records]


def partitions(cluster: Cluster) -> tuple[PartitionImage, ...]:
    return cluster.image.topics.by_name["t"].partitions


def test_only_the_partitions_of_the_broker_are_touched(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, 2, 3)
    create(cluster, "t", [1, 2], [2, 3], [3, 1])
    create(cluster, "u", [2], [1])
    assert moves(cluster, leader_moves.when_gone, 1) == [(0, 2, [2]), (2, -2, [3]), (1, -1, None)]


def test_a_broker_that_comes_gives_leaders_only_to_its_own_partitions(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, 2)
    create(cluster, "t", [1], [2])
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(2, want_fence=True)
    assert moves(cluster, leader_moves.when_back, 1) == [(0, 1, None)]


def test_a_broker_that_is_removed_is_eligible_nowhere(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, 2, min_insync_replicas=2)
    with_elr(cluster)
    create(cluster, "t", [1, 2])
    cluster.heartbeat(1, want_fence=True)
    assert (partitions(cluster)[0].isr, partitions(cluster)[0].elr) == ((2,), (1,))
    assert moves(cluster, leader_moves.when_gone, 1) == []
    assert moves(cluster, leader_moves.when_restarted, 1, clean=True) == []
    (record,) = leader_moves.when_restarted(cluster.controller._decision, 1, clean=False)
    assert record.eligible_leader_replicas == []  # type: ignore[attr-defined]


def test_the_topics_own_rule_decides_whether_an_unclean_leader_will_do(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, 2)
    create(cluster, "t", [1, 2])
    cluster.heartbeat(2, want_fence=True)
    assert moves(cluster, leader_moves.when_gone, 1) == [(0, -1, None)]
    allow = AlterableConfig("unclean.leader.election.enable", 0, "true")
    request = IncrementalAlterConfigsRequest(resources=[AlterConfigsResource(2, "t", [allow])])
    cluster.ask(type(cluster.controller).incremental_alter_configs, request)
    cluster.heartbeat(1, want_fence=True)
    assert moves(cluster, leader_moves.when_back, 2) == [(0, 2, [2])]


def test_replicas_of_failed_directories_leave_their_isr(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, 2)
    create(cluster, "t", [1, 2], [2, 1])
    (directory,) = cluster.image.brokers[1].directories
    assert moves(cluster, leader_moves.when_directories_fail, 1, [directory]) == [(0, 2, [2]), (1, -2, [2])]
    assert moves(cluster, leader_moves.when_directories_fail, 1, [b"x" * 16]) == []
    topic = cluster.image.topics.by_name["t"].id
    assert moves(cluster, leader_moves.when_replicas_are_lost, 1, [(topic, 1)]) == [(1, -2, [2])]
