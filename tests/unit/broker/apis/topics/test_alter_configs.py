from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.unit.broker.node_world import NodeWorld, refused, run
from tidelog.broker.apis.topics.alter_configs import (
    alter_configs,
    incremental_alter_configs,
    list_config_resources,
)
from tidelog.metadata.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages import alter_configs as legacy
from tidelog.protocol.messages import incremental_alter_configs as incremental
from tidelog.protocol.messages.list_config_resources import ListConfigResourcesRequest

SET, DELETE, APPEND = 0, 1, 2
LOGGER = "tidelog.test.alter"
Change = tuple[str, int, str | None]


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    found = logging.getLogger(LOGGER)
    found.setLevel(logging.NOTSET)
    yield found
    found.setLevel(logging.NOTSET)


def resource(kind: int, name: str, *changes: Change) -> incremental.AlterConfigsResource:
    configs = [incremental.AlterableConfig(name=each, config_operation=how, value=value) for each, how, value in changes]
    return incremental.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


def alter(world: NodeWorld, *resources: incremental.AlterConfigsResource, validate_only: bool = False) -> list[tuple[str, int]]:
    request = incremental.IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    response = run(incremental_alter_configs(world.context(1), request))
    for version in (0, 1):
        response.encode(version)
    return [(each.resource_name, each.error_code) for each in response.responses]


def test_answers_come_in_the_order_of_the_request_wherever_they_were_decided(logger: logging.Logger) -> None:
    world = NodeWorld()
    world.create("t")
    answers = alter(
        world,
        resource(TOPIC_RESOURCE, "missing", ("retention.ms", SET, "1")),
        resource(BROKER_LOGGER_RESOURCE, "1", (LOGGER, SET, "ERROR")),
        resource(BROKER_RESOURCE, "9", ("log.retention.ms", SET, "5")),
        resource(TOPIC_RESOURCE, "t", ("retention.ms", SET, "7")),
    )
    assert answers == [("missing", 3), ("1", 0), ("9", 42), ("t", 0)]
    assert world.broker.image.topic_configs("t") == {"retention.ms": "7"}
    assert logger.level == logging.ERROR


@pytest.mark.parametrize(
    ("name", "changes", "code"),
    [
        ("1", [("no.such.logger", SET, "INFO")], ErrorCode.INVALID_CONFIG),
        ("1", [(LOGGER, SET, "LOUD")], ErrorCode.INVALID_CONFIG),
        ("1", [(LOGGER, SET, None)], ErrorCode.INVALID_REQUEST),
        ("1", [(LOGGER, APPEND, "INFO")], ErrorCode.INVALID_REQUEST),
        ("1", [(LOGGER, 9, "INFO")], ErrorCode.INVALID_REQUEST),
        ("1", [(LOGGER, SET, "INFO"), (LOGGER, DELETE, None)], ErrorCode.INVALID_REQUEST),
        ("1", [("root", DELETE, None)], ErrorCode.INVALID_REQUEST),
        ("", [(LOGGER, SET, "INFO")], ErrorCode.INVALID_REQUEST),
        ("x", [(LOGGER, SET, "INFO")], ErrorCode.INVALID_REQUEST),
        ("2", [(LOGGER, SET, "INFO")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_levels_that_cannot_be_are_refused_and_change_nothing(
    logger: logging.Logger, name: str, changes: list[Change], code: ErrorCode
) -> None:
    good: Change = ("root", SET, "INFO")
    before = logging.root.level
    changes = changes if changes[0][0] == "root" else [good, *changes]
    assert alter(NodeWorld(), resource(BROKER_LOGGER_RESOURCE, name, *changes)) == [(name, code)]
    assert (logger.level, logging.root.level) == (logging.NOTSET, before)


def test_a_dry_run_leaves_levels_and_settings_alone(logger: logging.Logger) -> None:
    world = NodeWorld()
    asked = [
        resource(BROKER_LOGGER_RESOURCE, "1", (LOGGER, SET, "WARN")),
        resource(BROKER_RESOURCE, "", ("log.retention.ms", SET, "5")),
    ]
    assert alter(world, *asked, validate_only=True) == [("1", 0), ("", 0)]
    assert logger.level == logging.NOTSET
    assert world.broker.image.cluster_configs == {}


def test_a_resource_that_is_named_twice_is_not_changed_at_all(logger: logging.Logger) -> None:
    world = NodeWorld()
    twice = resource(BROKER_LOGGER_RESOURCE, "1", (LOGGER, SET, "WARN"))
    broker = resource(BROKER_RESOURCE, "", ("log.retention.ms", SET, "5"))
    assert alter(world, twice, broker, twice, broker) == [("1", 42), ("", 42), ("1", 42), ("", 42)]
    assert logger.level == logging.NOTSET
    assert world.broker.image.cluster_configs == {}


def replace_settings(world: NodeWorld, kind: int, name: str, **settings: str) -> tuple[int, str | None]:
    configs = [legacy.AlterableConfig(name=each.replace("_", "."), value=value) for each, value in settings.items()]
    asked = legacy.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    response = run(alter_configs(world.context(2), legacy.AlterConfigsRequest(resources=[asked])))
    for version in range(3):
        response.encode(version)
    (answer,) = response.responses
    return answer.error_code, answer.error_message


def test_the_old_form_replaces_everything() -> None:
    world = NodeWorld()
    world.create("t")
    assert replace_settings(world, TOPIC_RESOURCE, "t", retention_ms="7", segment_ms="9") == (0, None)
    assert replace_settings(world, TOPIC_RESOURCE, "t", segment_ms="8") == (0, None)
    assert world.broker.image.topic_configs("t") == {"segment.ms": "8"}


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [(BROKER_RESOURCE, "x", 42), (BROKER_RESOURCE, "2", 42), (BROKER_LOGGER_RESOURCE, "1", 42), (TOPIC_RESOURCE, "u", 3)],
)
def test_the_old_form_refuses_other_brokers_and_kinds_that_it_does_not_know(kind: int, name: str, code: int) -> None:
    assert replace_settings(NodeWorld(), kind, name, retention_ms="7")[0] == code


def test_a_refusal_of_all_is_told_for_each_resource() -> None:
    stopped = KafkaError(ErrorCode.NOT_CONTROLLER, "the controller has stopped")
    ctx = NodeWorld().context(1)
    asked = incremental.IncrementalAlterConfigsRequest(resources=[resource(2, "a")])
    new = refused(ctx, ApiKey.INCREMENTAL_ALTER_CONFIGS, asked, stopped)
    formerly = legacy.AlterConfigsRequest(resources=[legacy.AlterConfigsResource(2, "a")])
    old = refused(ctx, ApiKey.ALTER_CONFIGS, formerly, stopped)
    for (answer,) in (new.responses, old.responses):
        assert (answer.resource_type, answer.resource_name, answer.error_code) == (2, "a", 41)


def listed(world: NodeWorld, *kinds: int, version: int = 1) -> tuple[int, list[tuple[int, str]]]:
    response = list_config_resources(world.context(version), ListConfigResourcesRequest(resource_types=list(kinds)))
    response.encode(version)
    return response.error_code, [(each.resource_type, each.resource_name) for each in response.config_resources]


def test_resources_with_settings_are_listed_by_type_and_all_without_one() -> None:
    world = NodeWorld()
    world.create("t")
    alter(
        world,
        resource(GROUP_RESOURCE, "g", ("consumer.session.timeout.ms", SET, "50000")),
        resource(CLIENT_METRICS_RESOURCE, "m", ("interval.ms", SET, "1000")),
    )
    brokers = [(BROKER_LOGGER_RESOURCE, "1"), (BROKER_RESOURCE, "1")]
    assert listed(world) == (0, [(GROUP_RESOURCE, "g"), (CLIENT_METRICS_RESOURCE, "m"), *brokers, (TOPIC_RESOURCE, "t")])
    assert listed(world, TOPIC_RESOURCE, GROUP_RESOURCE) == (0, [(TOPIC_RESOURCE, "t"), (GROUP_RESOURCE, "g")])
    assert listed(world, TOPIC_RESOURCE, 99) == (35, [])


def test_the_first_version_lists_client_metrics_and_nothing_else() -> None:
    world = NodeWorld()
    world.create("t")
    alter(world, resource(CLIENT_METRICS_RESOURCE, "m", ("interval.ms", SET, "1000")))
    assert listed(world, version=0) == (0, [(CLIENT_METRICS_RESOURCE, "m")])
