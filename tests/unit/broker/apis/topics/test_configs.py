from __future__ import annotations

import logging

import pytest

from tests.unit.broker.allowing import Allowing
from tests.unit.broker.node_world import NodeWorld
from tidelog.broker.apis.topics.configs import describe_configs
from tidelog.metadata.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from tidelog.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResult


def ask(
    world: NodeWorld, kind: int, name: str, keys: list[str] | None = None, synonyms: bool = False, docs: bool = False
) -> DescribeConfigsResult:
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)],
        include_synonyms=synonyms,
        include_documentation=docs,
    )
    response = describe_configs(world.context(4), request)
    for version in range(1, 5):
        response.encode(version)
    return response.results[0]


def test_a_topics_settings_come_with_value_source_and_type() -> None:
    world = NodeWorld()
    world.create("t")
    rows = {row.name: row for row in ask(world, TOPIC_RESOURCE, "t").configs}
    assert (rows["cleanup.policy"].value, rows["cleanup.policy"].config_source) == ("delete", 5)
    assert rows["cleanup.policy"].synonyms == []
    assert rows["cleanup.policy"].documentation is None
    (row,) = ask(world, TOPIC_RESOURCE, "t", ["segment.bytes"], synonyms=True, docs=True).configs
    assert [synonym.name for synonym in row.synonyms] == ["log.segment.bytes"]
    assert row.documentation
    assert row.config_type == 3


def test_brokers_groups_and_client_metrics_have_settings_too() -> None:
    world = NodeWorld()
    assert "num.partitions" in {row.name for row in ask(world, BROKER_RESOURCE, "1").configs}
    assert ask(world, BROKER_RESOURCE, "").configs == []
    assert ask(world, GROUP_RESOURCE, "g").configs
    assert ask(world, CLIENT_METRICS_RESOURCE, "m").configs


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC_RESOURCE, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC_RESOURCE, "a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER_RESOURCE, "2", ErrorCode.INVALID_REQUEST),
        (BROKER_RESOURCE, "x", ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER_RESOURCE, "2", ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER_RESOURCE, "x", ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER_RESOURCE, "", ErrorCode.INVALID_REQUEST),
        (GROUP_RESOURCE, "", ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS_RESOURCE, "", ErrorCode.INVALID_REQUEST),
        (77, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_has_no_settings_here_is_an_error_of_that_resource(kind: int, name: str, error: ErrorCode) -> None:
    result = ask(NodeWorld(), kind, name)
    assert (result.error_code, result.configs) == (error, [])
    assert result.error_message


def test_loggers_are_described_with_the_level_in_force() -> None:
    logging.getLogger("tidelog.test.described")
    rows = ask(NodeWorld(), BROKER_LOGGER_RESOURCE, "1", docs=True).configs
    assert {"root", "tidelog.test.described"} <= {row.name for row in rows}
    (row,) = ask(NodeWorld(), BROKER_LOGGER_RESOURCE, "1", ["root", "no.such.logger"]).configs
    assert (row.name, row.config_source, row.read_only) == ("root", 6, False)


@pytest.mark.parametrize(
    ("kind", "name", "resource", "guarded", "code"),
    [
        (TOPIC_RESOURCE, "t", ResourceType.TOPIC, "t", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (TOPIC_RESOURCE, "missing", ResourceType.TOPIC, "missing", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (TOPIC_RESOURCE, "not a name", ResourceType.TOPIC, "not a name", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (GROUP_RESOURCE, "g", ResourceType.GROUP, "g", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (BROKER_RESOURCE, "1", ResourceType.CLUSTER, CLUSTER_NAME, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (BROKER_RESOURCE, "7", ResourceType.CLUSTER, CLUSTER_NAME, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (BROKER_RESOURCE, "", ResourceType.CLUSTER, CLUSTER_NAME, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (BROKER_LOGGER_RESOURCE, "1", ResourceType.CLUSTER, CLUSTER_NAME, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (CLIENT_METRICS_RESOURCE, "m", ResourceType.CLUSTER, CLUSTER_NAME, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ],
)
def test_settings_are_shown_only_with_describe_configs_on_what_protects_them(
    kind: int, name: str, resource: ResourceType, guarded: str, code: ErrorCode
) -> None:
    world = NodeWorld()
    world.create("t")
    open_answer = ask(world, kind, name)
    every_other = {(each, resource, guarded) for each in AclOperation if each is not AclOperation.DESCRIBE_CONFIGS}
    world.broker.access = Allowing(every_other)
    answer = ask(world, kind, name)
    assert (answer.error_code, answer.error_message, answer.configs) == (code, None, [])
    assert (answer.resource_type, answer.resource_name) == (kind, name)
    world.broker.access = Allowing({(AclOperation.DESCRIBE_CONFIGS, resource, guarded)})
    assert ask(world, kind, name) == open_answer
