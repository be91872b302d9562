from __future__ import annotations

import pytest

from tests.unit.controller.conftest import Cluster
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import ControllerSettings
from tidelog.metadata.supported_features import supported_ranges
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.controller_registration import ControllerRegistrationRequest, Feature, Listener


def request(features: dict[str, tuple[int, int]] | None = None) -> ControllerRegistrationRequest:
    ranges = supported_ranges() if features is None else features
    return ControllerRegistrationRequest(
        controller_id=7,
        incarnation_id=b"i" * 16,
        listeners=[Listener("CONTROLLER", "h", 9093, 0)],
        features=[Feature(name, low, high) for name, (low, high) in ranges.items()],
    )


def test_a_standby_is_registered_with_its_listeners_and_versions() -> None:
    cluster = Cluster(ControllerSettings())
    result = cluster.controller.register_standby(request(), 0)
    assert len(result.records) == 1
    cluster.controller.replay(result.records, cluster.controller.next_offset, 1, 0)
    registered = cluster.image.controllers[7]
    assert (registered.endpoints["CONTROLLER"].port, registered.features) == (9093, supported_ranges())
    assert result.response.error_code == ErrorCode.NONE


@pytest.mark.parametrize(("level", "features"), [(30, {}), (30, {"metadata.version": (1, 7)}), (13, None)])
def test_who_cannot_do_what_the_cluster_has_is_refused(level: int, features: dict[str, tuple[int, int]] | None) -> None:
    cluster = Cluster(ControllerSettings(), metadata_version=level)
    with pytest.raises(KafkaError) as refused:
        QuorumController.register_standby(cluster.controller, request(features), 0)
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
