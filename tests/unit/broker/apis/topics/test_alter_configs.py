from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.unit.broker.allowing import Allowing
from tests.unit.broker.node_world import NodeWorld, refused, run
from tidelog.broker.apis.topics.alter_configs import (
    alter_configs,
    incremental_alter_configs,
    list_config_resources,
)
from tidelog.broker.node import ControllerSide
from tidelog.broker.request import RequestContext, Session
from tidelog.metadata.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from tidelog.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from tidelog.model.errors import ConfigError, ErrorCode, KafkaError
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


CLUSTER_PERMISSION = (AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME)
CHANGES = [
    resource(TOPIC_RESOURCE, "t", ("retention.ms", SET, "7")),
    resource(TOPIC_RESOURCE, "missing", ("retention.ms", SET, "7")),
    resource(TOPIC_RESOURCE, "t2", ("no.such.setting", SET, "7")),
    resource(GROUP_RESOURCE, "g", ("consumer.session.timeout.ms", SET, "46000")),
    resource(BROKER_RESOURCE, "1", ("log.retention.ms", SET, "5")),
    resource(BROKER_RESOURCE, "9", ("log.retention.ms", SET, "5")),
    resource(BROKER_RESOURCE, "x", ("log.retention.ms", SET, "5")),
    resource(BROKER_LOGGER_RESOURCE, "1", (LOGGER, SET, "ERROR")),
    resource(BROKER_LOGGER_RESOURCE, "9", (LOGGER, SET, "ERROR")),
    resource(CLIENT_METRICS_RESOURCE, "m", ("interval.ms", SET, "1000")),
]
"""Each with the settings to change: some would be accepted, some would be refused for what they are."""


def denied(kind: int) -> ErrorCode:
    return {
        TOPIC_RESOURCE: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        GROUP_RESOURCE: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    }.get(kind, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def test_a_change_is_refused_before_it_is_looked_at(logger: logging.Logger) -> None:
    world = NodeWorld()
    world.create("t")
    access = world.broker.access = Allowing()
    assert alter(world, *CHANGES) == [(each.resource_name, denied(each.resource_type)) for each in CHANGES]
    assert not world.broker.image.configs
    assert logger.level == logging.NOTSET
    assert {operation for operation, _, _ in access.loud} == {AclOperation.ALTER_CONFIGS}


def test_with_the_permissions_each_change_gets_its_own_answer(logger: logging.Logger) -> None:
    world, free = NodeWorld(), NodeWorld()
    for each in (world, free):
        each.create("t")
    topics = {(AclOperation.ALTER_CONFIGS, ResourceType.TOPIC, name) for name in ("t", "missing", "t2")}
    world.broker.access = Allowing({CLUSTER_PERMISSION, (AclOperation.ALTER_CONFIGS, ResourceType.GROUP, "g")} | topics)
    expected = alter(free, *CHANGES)
    assert alter(world, *CHANGES) == expected
    assert {code for _, code in expected} >= {0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_REQUEST}
    assert world.broker.image.configs == free.broker.image.configs


def test_permissions_are_those_of_each_resource() -> None:
    world = NodeWorld()
    for name in ("mine", "other"):
        world.create(name)
    world.broker.access = Allowing({(AclOperation.ALTER_CONFIGS, ResourceType.TOPIC, "mine")})
    changes = [resource(TOPIC_RESOURCE, name, ("retention.ms", SET, "7")) for name in ("other", "mine")]
    assert alter(world, *changes) == [("other", ErrorCode.TOPIC_AUTHORIZATION_FAILED), ("mine", 0)]
    old = [
        legacy.AlterConfigsResource(each.resource_type, each.resource_name, [legacy.AlterableConfig("retention.ms", "8")])
        for each in (*changes, resource(BROKER_RESOURCE, "9"), resource(GROUP_RESOURCE, "g"))
    ]
    response = run(alter_configs(world.context(2), legacy.AlterConfigsRequest(resources=old)))
    answers = [(each.resource_name, each.error_code) for each in response.responses]
    assert answers == [("other", 29), ("mine", 0), ("9", 31), ("g", 30)]
    assert world.broker.image.topic_configs("mine") == {"retention.ms": "8"}
    assert world.broker.image.topic_configs("other") == {}


def test_where_another_process_decides_the_broker_checks_only_what_concerns_itself(logger: logging.Logger) -> None:
    world = NodeWorld()
    access = world.broker.access = Allowing({CLUSTER_PERMISSION})
    asked: list[list[str]] = []

    def elsewhere(version: int, request: Any, asker: Any) -> Any:
        asked.append([each.resource_name for each in request.resources])
        answers = [
            incremental.AlterConfigsResourceResponse(0, None, each.resource_type, each.resource_name)
            for each in request.resources
        ]
        return incremental.IncrementalAlterConfigsResponse(responses=answers)

    world.controller.elsewhere = elsewhere
    wrong = (BROKER_RESOURCE, "9"), (BROKER_RESOURCE, "x"), (BROKER_LOGGER_RESOURCE, "9")
    assert alter(world, *CHANGES) == [
        (each.resource_name, ErrorCode.INVALID_REQUEST if (each.resource_type, each.resource_name) in wrong else 0)
        for each in CHANGES
    ]
    assert asked == [["t", "missing", "t2", "g", "1", "m"]]
    assert logger.level == logging.ERROR
    assert {(operation, kind) for operation, kind, _ in access.loud} == {(AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER)}


def test_the_loggers_of_a_controller_need_cluster_action(logger: logging.Logger) -> None:
    change = incremental.IncrementalAlterConfigsRequest(resources=[resource(BROKER_LOGGER_RESOURCE, "1", (LOGGER, SET, "ERROR"))])
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    for operation, code in ((AclOperation.ALTER_CONFIGS, refused), (AclOperation.CLUSTER_ACTION, ErrorCode.NONE)):
        broker = NodeWorld().broker
        nothing: Any = None
        side = ControllerSide(
            node_id=1,
            cluster_id="c",
            config=broker.config,
            images=broker,
            controller=broker.controller,
            quorum=nothing,
            runtime=broker.runtime,
            rng=broker.rng,
            apis={},
            access=Allowing({(operation, ResourceType.CLUSTER, CLUSTER_NAME)}),
        )
        ctx = RequestContext(side, Session("CONTROLLER", "10.0.0.1"), ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
        assert [each.error_code for each in run(incremental_alter_configs(ctx, change)).responses] == [code]


def test_a_value_that_looks_like_a_reference_to_a_file_is_kept_as_it_is() -> None:
    """CVE-2024-31141: a client must not read the server's files through the values of settings."""
    world = NodeWorld()
    value = "client_id=${file:/etc/hostname:x}"
    assert alter(world, resource(CLIENT_METRICS_RESOURCE, "m", ("match", SET, value))) == [("m", 0)]
    assert world.broker.image.configs[CLIENT_METRICS_RESOURCE, "m"] == {"match": value}


class Stores:
    """The key and trust stores of a broker; one of its files is bad."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, str]] = []

    def check(self, dynamic: Mapping[str, str]) -> None:
        self.asked.append(dict(dynamic))
        if "/bad" in dynamic.values():
            raise ConfigError("listener OUTSIDE: /bad cannot be read.")


STORE, PASSWORD = (f"listener.name.outside.ssl.keystore.{each}" for each in ("location", "password"))


def test_new_stores_of_a_listener_are_tried_before_they_are_stored() -> None:
    world = NodeWorld()
    stores = world.broker.tls = Stores()
    assert alter(world, resource(BROKER_RESOURCE, "1", (STORE, SET, "/good"), (PASSWORD, SET, "p"))) == [("1", 0)]
    assert alter(world, resource(BROKER_RESOURCE, "1", (STORE, SET, "/bad"))) == [("1", ErrorCode.INVALID_REQUEST)]
    assert alter(world, resource(BROKER_RESOURCE, "1", (PASSWORD, DELETE, None)), validate_only=True) == [("1", 0)]
    assert stores.asked == [{STORE: "/good", PASSWORD: "p"}, {STORE: "/bad", PASSWORD: "p"}, {STORE: "/good"}]
    assert world.broker.image.broker_configs(1) == {STORE: "/good", PASSWORD: "p"}
    code, message = replace_settings(world, BROKER_RESOURCE, "1", **{STORE.replace(".", "_"): "/bad"})
    assert (code, message) == (ErrorCode.INVALID_REQUEST, "listener OUTSIDE: /bad cannot be read.")


def test_stores_are_not_read_for_a_client_without_the_permission_or_for_other_settings() -> None:
    world = NodeWorld()
    stores = world.broker.tls = Stores()
    alter(
        world, resource(BROKER_RESOURCE, "1", ("log.retention.ms", SET, "5")), resource(BROKER_RESOURCE, "", (STORE, SET, "/bad"))
    )
    world.broker.access = Allowing()
    assert alter(world, resource(BROKER_RESOURCE, "1", (STORE, SET, "/bad"))) == [("1", ErrorCode.CLUSTER_AUTHORIZATION_FAILED)]
    assert stores.asked == []


def test_stores_belong_to_one_broker() -> None:
    assert alter(NodeWorld(), resource(BROKER_RESOURCE, "", (STORE, SET, "/good"))) == [("", ErrorCode.INVALID_REQUEST)]
