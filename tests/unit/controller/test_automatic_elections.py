from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.controller.conftest import Cluster
from tests.unit.controller.test_alter_partition import alter
from tests.unit.controller.test_elect_leaders import create
from tidelog.controller import automatic_elections

INTERVAL_MS = 300_000


def away(cluster: Cluster) -> None:
    """Broker 1 was gone and is back and in sync, broker 2 leads."""
    create(cluster, "t", [1, 2])
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(1)
    assert alter(cluster, [2, 1], broker_id=2).error_code == 0
    assert cluster.leaders("t") == [(2, 1)]


def keep_alive(cluster: Cluster, ms: int) -> None:
    """So much time in steps that no session notices."""
    for _ in range(0, ms, 4_000):
        for broker_id in (1, 2):
            cluster.heartbeat(broker_id, want_fence=cluster.image.brokers[broker_id].fenced)
        cluster.tick(4_000)


def test_preferred_leaders_lead_again_when_the_interval_is_over(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, 2)
    cluster.tick()
    away(cluster)
    keep_alive(cluster, INTERVAL_MS - 4_000)
    assert cluster.leaders("t") == [(2, 1)]
    keep_alive(cluster, 4_000)
    assert cluster.leaders("t") == [(1, 2)]


def test_leaderships_stay_when_nobody_wants_them_moved(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, 2, auto_leader_rebalance_enable=False)
    cluster.tick()
    away(cluster)
    keep_alive(cluster, INTERVAL_MS)
    assert cluster.leaders("t") == [(2, 1)]


def test_a_preferred_leader_out_of_sync_does_not_lead(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, 2)
    create(cluster, "t", [1, 2])
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(1)
    assert automatic_elections.balance_leaders(cluster.controller._decision).records == ()


def test_so_many_elections_at_once_and_the_rest_right_after(
    make_cluster: Callable[..., Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(automatic_elections, "MAX_ELECTIONS", 2)
    cluster = make_cluster(1, 2, leader_imbalance_check_interval_ms=1_000)
    cluster.tick()
    create(cluster, "t", [1, 2], [1, 2], [1, 2])
    create(cluster, "u", [2])
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(1)
    for number in range(3):
        present = cluster.image.topics.by_name["t"].partitions[number]
        assert (
            alter(cluster, [2, 1], broker_id=2, partition_index=number, partition_epoch=present.partition_epoch).error_code == 0
        )
    assert [leader for leader, _ in cluster.leaders("t")] == [2, 2, 2]
    first = cluster.controller.tick(0, cluster.steady_ms + 1_000)
    assert (first.response, len(first.records)) == (True, 2)
    assert len(cluster.tick(1_000)) == 3
    assert [leader for leader, _ in cluster.leaders("t")] == [1, 1, 1]


def test_a_leaderless_partition_gets_a_leader_once_that_is_allowed(make_cluster: Callable[..., Cluster]) -> None:
    for allowed, leader in ((False, -1), (True, 2)):
        cluster = make_cluster(1, 2, unclean_leader_election_interval_ms=8_000)
        cluster.tick()
        create(cluster, "t", [1, 2])
        cluster.heartbeat(2, want_fence=True)
        cluster.heartbeat(1, want_fence=True)
        cluster.heartbeat(2)
        settings = cluster.controller._settings
        cluster.controller.set_settings(
            type(settings)(unclean_leader_election_enable=allowed, unclean_leader_election_interval_ms=8_000)
        )
        keep_alive(cluster, 4_000)
        assert cluster.leaders("t")[0][0] == -1
        keep_alive(cluster, 4_000)
        assert cluster.leaders("t")[0][0] == leader
