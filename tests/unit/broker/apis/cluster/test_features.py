from __future__ import annotations

import pytest

from tests.unit.broker.node_world import NodeWorld, refused, run
from tidelog.broker.apis.cluster.features import update_features
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse


def update(version: int, feature: str, level: int) -> UpdateFeaturesResponse:
    request = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(feature=feature, max_version_level=level)])
    response = run(update_features(NodeWorld().context(version), request))
    return UpdateFeaturesResponse.decode(response.encode(version), version)


@pytest.mark.parametrize("version", range(3))
def test_a_level_that_is_not_supported_fails_the_request(version: int) -> None:
    for feature, level in (("metadata.version", 31), ("group.version", 99), ("no.such.feature", 1)):
        response = update(version, feature, level)
        assert (response.error_code, response.results) == (95, [])
        assert feature in (response.error_message or "")


def test_the_request_is_read_as_its_version_means_it() -> None:
    assert [each.feature for each in update(1, "group.version", 0).results] == ["group.version"]
    assert update(2, "group.version", 0).results == []


def test_a_refusal_of_all_is_told() -> None:
    stopped = KafkaError(ErrorCode.NOT_CONTROLLER, "the controller has stopped")
    assert refused(NodeWorld().context(2), ApiKey.UPDATE_FEATURES, UpdateFeaturesRequest(), stopped).error_code == 41
