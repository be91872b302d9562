from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.controller.conftest import Cluster
from tests.unit.controller.test_elect_leaders import create
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import LOST_DIR
from tidelog.protocol.messages.broker_registration import Feature
from tidelog.protocol.messages.feature_level_record import FeatureLevelRecord


def refused(cluster: Cluster, broker_id: int, **more: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        cluster.register(broker_id, **more)
    return caught.value.code


def with_elr(cluster: Cluster) -> None:
    record = FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)
    cluster.controller.replay([record], cluster.controller.next_offset, 1, 0)


def test_the_same_process_amends_its_registration(cluster: Cluster) -> None:
    epoch = cluster.image.brokers[1].epoch
    assert cluster.register(1, rack="r") == epoch
    assert (cluster.image.brokers[1].rack, cluster.image.brokers[1].fenced) == ("r", False)
    assert [record.NAME for record in cluster.records] == ["RegisterBrokerRecord"]


def test_another_process_waits_for_the_end_of_the_session(cluster: Cluster) -> None:
    assert refused(cluster, 1, incarnation=1) == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.heartbeat(1, want_fence=True)
    assert refused(cluster, 1, incarnation=1) == ErrorCode.DUPLICATE_BROKER_REGISTRATION, "a fenced one lives as well"
    cluster.silence(1)
    cluster.register(1, incarnation=1)


def test_who_stopped_in_order_may_come_back_at_once(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, 2)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    cluster.register(1, incarnation=1)


@pytest.mark.parametrize(
    "log_dirs", [[], [LOST_DIR], [b"x" * 16, b"x" * 16], [bytes([1, 0, 0xD0, 0]) * 4]], ids=["none", "reserved", "twice", "of 1"]
)
def test_log_dirs_have_to_be_ones_own(cluster: Cluster, log_dirs: list[bytes]) -> None:
    assert refused(cluster, 2, log_dirs=log_dirs) == ErrorCode.INVALID_REGISTRATION


def test_a_broker_has_to_say_which_metadata_it_can_read(cluster: Cluster) -> None:
    features = [Feature(name="group.version", min_supported_version=0, max_supported_version=1)]
    assert refused(cluster, 2, features=features) == ErrorCode.INVALID_REGISTRATION


def test_brokers_of_zookeeper_clusters_are_refused(cluster: Cluster) -> None:
    assert refused(cluster, 2, is_migrating_zk_broker=True) == ErrorCode.BROKER_ID_NOT_REGISTERED


def state(cluster: Cluster, name: str) -> tuple[tuple[int, ...], ...]:
    partition = cluster.image.topics.by_name[name].partitions[0]
    return partition.isr, partition.elr, partition.last_known_elr


def restarted(cluster: Cluster, *, clean: bool) -> list[str]:
    """Broker 1 while its session is over, but before it was fenced: as a new controller on the same node sees it."""
    cluster.controller.heartbeats.end(1)
    previous = cluster.image.brokers[1].epoch if clean else -1
    cluster.register(1, incarnation=1, previous_broker_epoch=previous)
    return [record.NAME for record in cluster.records]


def test_what_the_process_before_led_ends_before_the_new_one_is_registered(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, 2)
    create(cluster, "t", [1, 2])
    create(cluster, "u", [1])
    next_offset = cluster.controller.next_offset
    assert restarted(cluster, clean=False) == ["PartitionChangeRecord", "PartitionChangeRecord", "RegisterBrokerRecord"]
    assert cluster.image.brokers[1].epoch == next_offset
    assert (cluster.leaders("t"), cluster.leaders("u")) == ([(2, 1)], [(-1, 1)])
    assert [cluster.image.topics.by_name[name].partitions[0].isr for name in "tu"] == [(2,), (1,)]
    behind = cluster.heartbeat(1, current_metadata_offset=next_offset)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True), "its registration is two records further on"
    assert not cluster.heartbeat(1).is_fenced


def test_with_elr_a_process_that_ended_without_order_is_in_sync_and_eligible_nowhere(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster(1, 2, min_insync_replicas=2)
    with_elr(cluster)
    create(cluster, "t", [1])
    create(cluster, "u", [2, 1])
    cluster.silence(1)
    assert [state(cluster, name) for name in "tu"] == [((), (1,), (1,)), ((2,), (1,), ())]
    restarted(cluster, clean=False)
    assert [state(cluster, name) for name in "tu"] == [((), (), (1,)), ((2,), (), ())]
    cluster.heartbeat(1)
    recovered = cluster.image.topics.by_name["t"].partitions[0]
    assert (recovered.leader, recovered.isr, recovered.leader_recovery_state) == (1, (1,), 1), "what it has is all there is"


def test_with_elr_a_process_that_ended_in_order_stays_eligible(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, 2, min_insync_replicas=2)
    with_elr(cluster)
    create(cluster, "t", [1])
    restarted(cluster, clean=True)
    partition = cluster.image.topics.by_name["t"].partitions[0]
    assert (partition.leader, partition.isr, partition.elr) == (-1, (), (1,))
    cluster.heartbeat(1)
    partition = cluster.image.topics.by_name["t"].partitions[0]
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), 0)
