"""The order of DescribeConfigs answers against the recorded one of Apache Kafka 4.3.1 (tests/golden/config/order.json)."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tidelog.config.describe import (
    describe_broker,
    describe_broker_default,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from tidelog.config.listing_order import hash_map_order
from tidelog.config.resolve import BrokerConfig

RECORDED: dict[str, list[str]] = json.loads((Path(__file__).parents[2] / "golden/config/order.json").read_text())


@pytest.fixture
def config() -> BrokerConfig:
    """Settings with two names that no table has, and dynamic ones."""
    given = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@localhost:9093",
        "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
        "log.dirs": "/data",
        "zzz.unknown": "1",
        "listener.name.plaintext.ssl.keystore.type": "JKS",
    }
    config = BrokerConfig.from_properties(given)
    config.apply_dynamic(dict.fromkeys(RECORDED["cluster"], "2"), {})
    return config


@pytest.mark.parametrize("resource", ["topic", "broker", "cluster", "group", "client_metrics"])
def test_settings_are_listed_as_kafka_lists_them(resource: str, config: BrokerConfig) -> None:
    rows = {
        "topic": lambda: describe_topic(config, {"retention.ms": "5"}),
        "broker": lambda: describe_broker(config),
        "cluster": lambda: describe_broker_default(config),
        "group": lambda: describe_group(config, {}),
        "client_metrics": lambda: describe_client_metrics({}),
    }[resource]()
    assert [row.name for row in rows if not row.name.startswith("tidelog.")] == RECORDED[resource]


def test_the_order_of_the_names_asked_for_does_not_matter(config: BrokerConfig) -> None:
    some = [*RECORDED["topic"][3:30:4]]
    assert [row.name for row in describe_topic(config, {}, reversed(some))] == some


def test_kafkas_loggers_are_in_this_order() -> None:
    shuffled = random.Random(1).sample(RECORDED["broker_logger"], len(RECORDED["broker_logger"]))
    listed = hash_map_order(shuffled)
    of_one_bucket = [(a, b) for a, b in zip(listed, RECORDED["broker_logger"], strict=True) if a != b]
    assert {a for a, _ in of_one_bucket} == {b for _, b in of_one_bucket}
    alone = set(listed) - {a for a, _ in of_one_bucket}
    assert len(alone) > 100
    assert [name for name in listed if name in alone] == [name for name in RECORDED["broker_logger"] if name in alone]


def test_minutes_of_retention_have_hours_as_their_synonym() -> None:
    config = BrokerConfig.from_properties({"node.id": "1", "log.retention.minutes": "77"})
    (row,) = describe_broker(config, ["log.retention.minutes"])
    assert [(each.name, each.value) for each in row.synonyms] == [("log.retention.minutes", "77"), ("log.retention.hours", "168")]
