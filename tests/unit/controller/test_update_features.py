from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.controller.test_dynamic_configs import alter
from tests.unit.controller.test_elect_leaders import create
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import KRaftVersion
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.broker_registration import Feature
from tidelog.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest


def update(cluster: Any, *updates: tuple[str, int, int], version: int = 2, validate_only: bool = False) -> Any:
    keys = [FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind) for name, level, kind in updates]
    request = UpdateFeaturesRequest(feature_updates=keys, validate_only=validate_only)
    return cluster.ask(QuorumController.update_features, request, version)


def test_a_feature_moves_up(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(1, metadata_version=21)
    assert update(cluster, ("metadata.version", 29, 1), validate_only=True).error_code == 0
    assert cluster.image.metadata_version == 21
    assert update(cluster, ("metadata.version", 29, 1)).error_code == 0
    assert cluster.image.metadata_version == 29
    again = update(cluster, ("metadata.version", 29, 1), version=1)
    assert (again.error_code, [(each.feature, each.error_code) for each in again.results]) == (0, [("metadata.version", 0)])
    assert cluster.records == []


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("foo.version", 1, 1), "does not support this feature"),
        (("kraft.version", 2, 1), "only supports versions 0-1"),
        (("kraft.version", 0, 2), "cannot be lowered to 0"),
        (("group.version", -1, 1), "levels begin at 0"),
        (("group.version", 0, 0), "upgrade type 0 is none of"),
        (("metadata.version", 32, 1), "only supports versions 7-31"),
        (("group.version", 2, 1), "only supports versions 0-1"),
        (("metadata.version", 21, 1), "Can't downgrade the version of this feature without"),
        (("metadata.version", 21, 2), "might delete metadata information"),
        (("metadata.version", 22, 2), "might delete metadata information"),
        (("metadata.version", 28, 3), "Unsafe metadata downgrade is not supported"),
        (("metadata.version", 30, 2), "Can't downgrade to a newer version"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_of_the_request_done(
    make_cluster: Callable[..., Any], asked: tuple[str, int, int], says: str
) -> None:
    cluster = make_cluster(1, metadata_version=29)
    response = update(cluster, ("transaction.version", 0, 1), asked)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert says in response.error_message
    assert cluster.records == []
    assert update(cluster, asked, version=1).error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_metadata_version_goes_down_as_far_as_nothing_written_can_be_lost(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(1, metadata_version=29)
    assert update(cluster, ("metadata.version", 23, 2)).error_code == 0
    assert cluster.image.metadata_version == 23
    assert update(cluster, ("metadata.version", 22, 2)).error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_the_first_version_only_goes_up(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(1, metadata_version=29)
    request = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("metadata.version", 28, allow_downgrade=True)])
    response = cluster.ask(QuorumController.update_features, request, 0)
    assert "without setting the upgrade type" in response.error_message


def test_a_level_that_a_broker_cannot_do_is_refused(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(metadata_version=21)
    cluster.register(1, features=[Feature(name="metadata.version", min_supported_version=7, max_supported_version=25)])
    assert "Broker 1 only supports versions 7-25" in update(cluster, ("metadata.version", 29, 1)).error_message


def test_a_feature_named_twice_is_refused(cluster: Any) -> None:
    response = update(cluster, ("group.version", 0, 1), ("group.version", 0, 1))
    assert response.error_code == ErrorCode.INVALID_REQUEST


def test_group_version_is_raised_and_lowered(make_cluster: Callable[..., Any]) -> None:
    # A directory of before stays without; whoever runs it decides.
    cluster = make_cluster()
    known = [Feature(name=name, min_supported_version=low, max_supported_version=high)
             for name, low, high in (("metadata.version", 7, 31), ("group.version", 0, 1))]  # fmt: skip
    cluster.register(1, features=known)
    for level, kind in ((1, 1), (0, 2), (1, 1)):
        response = update(cluster, ("group.version", level, kind))
        assert (response.error_code, response.error_message) == (0, None)
        assert cluster.image.features.get("group.version", 0) == level


ELR = "eligible.leader.replicas.version"


def test_eligible_leader_replicas_come_with_one_minimum_for_all_brokers(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(1, 2, metadata_version=29, min_insync_replicas=2)
    alter(cluster, (4, "2"), ("min.insync.replicas", 0, "1"))
    assert update(cluster, (ELR, 1, 1)).error_code == 0
    written = [(r.NAME, getattr(r, "resource_name", None), getattr(r, "value", None)) for r in cluster.records]
    assert written == [
        ("ConfigRecord", "", "2"), ("ConfigRecord", "2", None), ("FeatureLevelRecord", None, None),
    ]  # fmt: skip
    assert update(cluster, (ELR, 0, 2)).error_code == 0
    assert [record.NAME for record in cluster.records] == ["FeatureLevelRecord"]
    assert update(cluster, (ELR, 1, 1)).error_code == 0
    assert [record.NAME for record in cluster.records] == ["FeatureLevelRecord"], "the minimum is there already"


def test_switched_off_nobody_is_eligible_who_was_while_another_led(make_cluster: Callable[..., Any]) -> None:
    """What broker 1 acknowledges alone from then on, broker 2 does not have."""
    cluster = make_cluster(1, 2, min_insync_replicas=2)
    assert update(cluster, (ELR, 1, 1)).error_code == 0
    create(cluster, "t", [1, 2])
    cluster.heartbeat(2, want_fence=True)
    assert update(cluster, (ELR, 0, 2)).error_code == 0
    assert alter(cluster, (2, "t"), ("min.insync.replicas", 0, "1")) == (0, "")
    cluster.heartbeat(2)
    cluster.heartbeat(1, want_fence=True)
    assert cluster.leaders("t")[0][0] == -1
    cluster.heartbeat(1)
    assert update(cluster, (ELR, 1, 1)).error_code == 0
    cluster.heartbeat(1, want_fence=True)
    assert cluster.leaders("t")[0][0] == -1


@pytest.mark.parametrize("clean", [True, False])
def test_switched_off_those_of_before_are_eligible_where_nobody_is_in_sync(make_cluster: Callable[..., Any], clean: bool) -> None:
    """Unless they may have lost what they had: then the last leader, or an unclean election."""
    cluster = make_cluster(1, 2, 3, min_insync_replicas=2)
    assert update(cluster, (ELR, 1, 1)).error_code == 0
    create(cluster, "t", [1, 2, 3])
    for broker_id in (3, 2, 1):
        cluster.heartbeat(broker_id, want_fence=True)
    assert cluster.image.topics.by_name["t"].partitions[0].elr == (1, 2)
    assert update(cluster, (ELR, 0, 2)).error_code == 0
    cluster.heartbeat(3)
    assert cluster.leaders("t")[0][0] == -1
    cluster.heartbeat(2, want_shut_down=True)
    cluster.register(2, incarnation=1, previous_broker_epoch=cluster.image.brokers[2].epoch if clean else -1)
    cluster.heartbeat(2)
    (partition,) = cluster.image.topics.by_name["t"].partitions
    assert (partition.leader, partition.isr, partition.elr) == ((2, (2,), ()) if clean else (-1, (), (1,)))
    cluster.heartbeat(1)
    assert cluster.leaders("t")[0][0] == (2 if clean else 1)
    assert cluster.image.topics.by_name["t"].partitions[0].last_known_elr == ()


def test_a_feature_may_need_a_metadata_version(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(1, metadata_version=22)
    assert "needs metadata.version 23" in update(cluster, (ELR, 1, 1)).error_message
    assert update(cluster, (ELR, 1, 1), ("metadata.version", 23, 1)).error_code == 0


def test_kraft_version_is_the_quorums_own_and_raised_with_the_others(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(1, metadata_version=29)
    controller = cluster.controller
    assert update(cluster, ("kraft.version", 1, 1), ("metadata.version", 30, 1)).error_code == 0, "it is there already"
    controller.kraft = KRaftVersion(0, "not all of the voters support it")
    response = update(cluster, ("kraft.version", 1, 1), ("transaction.version", 1, 2))
    assert (response.error_code, "not all of the voters" in response.error_message) == (ErrorCode.INVALID_UPDATE_VERSION, True)
    controller.kraft = KRaftVersion(0)
    for dry_run in (True, False):
        keys = [FeatureUpdateKey(feature="kraft.version", max_version_level=1, upgrade_type=1)]
        asked = UpdateFeaturesRequest(feature_updates=keys, validate_only=dry_run)
        result = controller.update_features(asked, 0)
        assert (result.response.error_code, result.records, result.raises_kraft_version) == (0, (), not dry_run)
