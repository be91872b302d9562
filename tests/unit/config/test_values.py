"""What texts mean: fallbacks, roles, listeners."""

from __future__ import annotations

import typing

import pytest

from tidelog.config import typed
from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.listeners import EndPoint
from tidelog.config.resolve import BrokerConfig
from tidelog.config.values import NodeValues

PLAIN = EndPoint("PLAINTEXT", "PLAINTEXT", "localhost", 9092)


def test_without_any_file_a_node_is_broker_and_controller_on_localhost() -> None:
    config = BrokerConfig.from_properties({})
    assert config.embedded
    assert (config.node_id, config.broker_id) == (1, 1)
    assert config.process_roles == ("broker", "controller")
    assert config.endpoints == config.broker_endpoints == (PLAIN,)
    assert config.controller_endpoints == ()
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("given", "retention_ms"),
    [
        ({}, 168 * 3_600_000),
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-1"}, -1),
    ],
)
def test_retention_is_ms_else_minutes_else_hours(given: dict[str, str], retention_ms: int) -> None:
    config = BrokerConfig.from_properties(given)
    assert config.log_retention_ms == retention_ms
    assert config.topic_config({}).retention_ms == retention_ms


def test_other_fallbacks() -> None:
    config = BrokerConfig.from_properties({"log.dir": "/a", "log.roll.hours": "1", "log.flush.scheduler.interval.ms": "77"})
    assert (config.log_dirs, config.log_roll_ms, config.log_flush_interval_ms) == (("/a",), 3_600_000, 77)
    assert config.topic_config({}).segment_ms == 3_600_000
    assert config.topic_config({}).flush_ms == 77


def test_a_controller_alone_advertises_its_controller_listener() -> None:
    config = BrokerConfig.from_properties(
        {
            "process.roles": "controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": "outside:9093",
            "controller.listener.names": "CONTROLLER",
            "listeners": "CONTROLLER://:9093",
            "advertised.listeners": "CONTROLLER://outside:9093",
        }
    )
    assert [(point.host, point.port) for point in config.advertised_endpoints] == [("outside", 9093)]


def test_advertised_addresses_take_the_ports_and_the_name_that_the_node_got() -> None:
    config = BrokerConfig.from_properties({"listeners": "PLAINTEXT://:0"})
    assert config.advertised({"PLAINTEXT": 40001}, "box") == (EndPoint("PLAINTEXT", "PLAINTEXT", "box", 40001),)
    config = BrokerConfig.from_properties({"listeners": "PLAINTEXT://:0", "advertised.listeners": "PLAINTEXT://outside:7"})
    assert config.advertised({"PLAINTEXT": 40001}, "box") == (EndPoint("PLAINTEXT", "PLAINTEXT", "outside", 7),)


def test_a_listener_that_is_not_advertised_is_not_told() -> None:
    config = BrokerConfig.from_properties(
        {
            "listeners": "A://:1,B://:2",
            "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "advertised.listeners": "B://b:2",
        }
    )
    assert [point.listener for point in config.advertised({}, "box")] == ["B"]


def test_every_option_has_a_typed_attribute_of_the_type_that_it_holds() -> None:
    hints = typing.get_type_hints(typed.BrokerValues)
    assert set(hints) == {option.attribute for option in BROKER_OPTIONS.values()}
    config = BrokerConfig.from_properties({})
    for name, hint in hints.items():
        value = getattr(config, name)
        kinds = typing.get_args(hint) if type(hint).__name__ == "UnionType" else (hint,)
        plain = tuple(typing.get_origin(kind) or kind for kind in kinds)
        assert isinstance(value, plain), name


@pytest.mark.parametrize(
    ("listeners", "settings", "expected"),
    [
        ("PLAINTEXT://:9092", {}, "PLAINTEXT"),
        ("OUT://:9092,PLAINTEXT://:9094", {}, "PLAINTEXT"),
        ("OUT://:9092,IN://:9094", {"inter.broker.listener.name": "in"}, "IN"),
        ("OUT://:9092,IN://:9094", {}, "OUT"),
    ],
)
def test_brokers_talk_to_each_other_on_the_listener_that_is_named(
    listeners: str, settings: dict[str, str], expected: str
) -> None:
    given = {
        "process.roles": "broker",
        "node.id": "1",
        "listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUT:PLAINTEXT,IN:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        **settings,
    }
    assert BrokerConfig(given).inter_broker_listener == expected


def test_a_copy_with_other_values_leaves_the_original_alone() -> None:
    values = NodeValues({"listeners": "PLAINTEXT://here:1"})
    other = values.with_values({"num_partitions": 7})
    assert (values.num_partitions, other.num_partitions) == (1, 7)
    assert other.endpoints == values.endpoints
