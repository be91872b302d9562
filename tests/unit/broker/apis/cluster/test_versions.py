from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.unit.broker.node_world import NodeWorld
from tidelog.broker.answer_types import Encoded
from tidelog.broker.apis.cluster import versions
from tidelog.broker.node import BrokerContext
from tidelog.broker.table import BROKER_APIS
from tidelog.model.errors import ErrorCode
from tidelog.model.ports import FileSlice
from tidelog.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

HELLO = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.16.1")


def read(ctx: BrokerContext, answer: ApiVersionsResponse | Encoded) -> ApiVersionsResponse:
    """As the client reads it."""
    if isinstance(answer, Encoded):
        return ApiVersionsResponse.decode(
            b"".join(bytes(part) for part in answer.parts if not isinstance(part, FileSlice)), ctx.api_version
        )
    return answer


def api_versions(ctx: BrokerContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    return read(ctx, versions.api_versions(ctx, request))


def broker_api_versions(ctx: BrokerContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    return read(ctx, versions.broker_api_versions(ctx, request))


def test_the_table_is_what_is_answered() -> None:
    response = api_versions(NodeWorld().context(4), HELLO)
    assert response.error_code == 0
    assert {(api.api_key, api.min_version, api.max_version) for api in response.api_keys} == {
        (route.api.key, *route.api.told) for route in BROKER_APIS.values()
    }


def test_the_software_of_the_client_is_remembered() -> None:
    ctx = NodeWorld().context(3)
    api_versions(ctx, HELLO)
    assert (ctx.session.client_software_name, ctx.session.client_software_version) == ("librdkafka", "2.16.1")


@pytest.mark.parametrize("name", ["", "-x", "x y", "x.", "x\n", "ü"])
def test_a_software_name_that_is_none_is_refused_from_version_three_on(name: str) -> None:
    ctx = NodeWorld().context(3)
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
    assert api_versions(ctx, request).error_code == ErrorCode.INVALID_REQUEST
    ctx.api_version = 2
    assert api_versions(ctx, request).error_code == 0


def test_features_that_may_be_at_zero_are_hidden_from_version_three() -> None:
    world = NodeWorld()
    three = {feature.name for feature in api_versions(world.context(3), HELLO).supported_features}
    four = {feature.name: feature.max_version for feature in api_versions(world.context(4), HELLO).supported_features}
    assert three == {"metadata.version"}
    assert four["metadata.version"] == 31
    assert four["group.version"] == 1


def test_finalized_features_come_with_the_offset_of_the_image_and_without_those_at_zero() -> None:
    world = NodeWorld()
    world.broker.image = replace(world.broker.image, offset=77, features={"metadata.version": 29, "group.version": 0})
    response = api_versions(world.context(4), HELLO)
    assert response.finalized_features_epoch == 77
    assert [(f.name, f.min_version_level, f.max_version_level) for f in response.finalized_features] == [
        ("metadata.version", 29, 29)
    ]


@pytest.mark.parametrize(
    ("cluster", "node", "of_broker", "of_controller"),
    [
        (None, -1, 0, 0),
        ("test-cluster", 1, 0, 0),
        ("test-cluster", -1, 42, 42),
        (None, 1, 42, 42),
        ("", -1, 42, 42),
        ("", 1, 129, 0),
        ("other", 1, 129, 0),
        ("test-cluster", 9, 129, 0),
        ("test-cluster", -2, 129, 0),
    ],
)
def test_a_client_that_means_another_node_has_to_begin_again(
    cluster: str | None, node: int, of_broker: int, of_controller: int
) -> None:
    """The codes are those of Apache Kafka 4.4.0."""
    request = ApiVersionsRequest("a", "1", cluster, node)
    answers = [answer(NodeWorld().context(5), request) for answer in (broker_api_versions, api_versions)]
    assert [each.error_code for each in answers] == [of_broker, of_controller]
    assert [bool(each.api_keys) for each in answers] == [not of_broker, not of_controller]
    assert broker_api_versions(NodeWorld().context(4), request).error_code == 0


def test_answers_are_kept_until_the_image_or_the_level_of_kraft_changes() -> None:
    world = NodeWorld()
    first = api_versions(world.context(4), HELLO)
    assert versions.api_versions(world.context(4), HELLO).parts[0] is versions.api_versions(world.context(4), HELLO).parts[0]  # type: ignore[union-attr]
    assert api_versions(world.context(4), HELLO) == first
    assert [each.api_key for each in api_versions(world.context(0), HELLO).api_keys] == [each.api_key for each in first.api_keys]
    world.broker.image = replace(world.broker.image, offset=first.finalized_features_epoch + 1)
    assert api_versions(world.context(4), HELLO).finalized_features_epoch == first.finalized_features_epoch + 1
    before = {each.name: each.max_version_level for each in api_versions(world.context(4), HELLO).finalized_features}
    world.broker.controller = SimpleNamespace(kraft_version=before.get("kraft.version", 0) + 1)  # type: ignore[assignment]
    after = {each.name: each.max_version_level for each in api_versions(world.context(4), HELLO).finalized_features}
    assert after == before | {"kraft.version": before.get("kraft.version", 0) + 1}
