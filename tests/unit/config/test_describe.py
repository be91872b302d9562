"""DescribeConfigs rows against what Apache Kafka 4.3.1 answered: tests/golden/config, and a node with dynamic settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidelog.config.describe import (
    ConfigRow,
    describe_broker,
    describe_broker_default,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from tidelog.config.options import Type
from tidelog.config.resolve import BrokerConfig

GOLDEN = Path(__file__).parents[2] / "golden/config"


def answers(table: str) -> dict[str, list]:
    rows = [json.loads(line) for line in (GOLDEN / f"{table}.jsonl").read_text().splitlines()]
    return {row["name"]: row["answer"] for row in rows if "answer" in row}


def as_answer(row: ConfigRow) -> list:
    synonyms = [[synonym.name, synonym.value, f"{synonym.source.name}_CONFIG"] for synonym in row.synonyms]
    return [row.value, f"{row.source.name}_CONFIG", row.read_only, row.is_sensitive, synonyms]


@pytest.fixture
def as_recorded() -> BrokerConfig:
    """The node that gave the recorded answers, as far as they show it."""
    static = {name: a[0] for name, a in answers("broker").items() if a[1] == "STATIC_BROKER_CONFIG" and name != "broker.id"}
    config = BrokerConfig.from_properties(static)
    config.apply_dynamic({"min.insync.replicas": "1"}, {})
    return config


def test_every_broker_row_is_what_kafka_answers(as_recorded: BrokerConfig) -> None:
    rows = {row.name: row for row in describe_broker(as_recorded)}
    for name, answer in answers("broker").items():
        assert as_answer(rows.pop(name)) == answer, name
    assert {name.partition(".")[0] for name in rows} == {"tidelog"}


def test_every_topic_row_is_what_kafka_answers(as_recorded: BrokerConfig) -> None:
    rows = {row.name: row for row in describe_topic(as_recorded, {})}
    wanted = answers("topic")
    assert set(rows) == set(wanted)
    for name, answer in wanted.items():
        assert as_answer(rows[name]) == answer, name


def dynamic_node() -> BrokerConfig:
    """A node like the one that was asked by hand; its answers are in the tests below."""
    config = BrokerConfig.from_properties(
        {
            "log.retention.hours": "24",
            "log.roll.ms": "100000000",
            "log.cleaner.io.buffer.load.factor": "0.90",
            "ssl.key.password": "abc",
            "foo.bar": "1",
            "listener.name.plaintext.ssl.key.password": "xyz",
        }
    )
    config.apply_dynamic(
        {"log.retention.ms": "7200000", "message.max.bytes": "2000000", "log.cleaner.io.buffer.load.factor": "0.80"},
        {"message.max.bytes": "3000000", "listener.name.plaintext.max.connections": "7", "foo.dyn": "3"},
    )
    return config


DYNAMIC, DEFAULT_DYNAMIC, STATIC, DEFAULT = (
    "DYNAMIC_BROKER_CONFIG",
    "DYNAMIC_DEFAULT_BROKER_CONFIG",
    "STATIC_BROKER_CONFIG",
    "DEFAULT_CONFIG",
)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        (
            "log.retention.ms",
            ["7200000", DEFAULT_DYNAMIC, False, False,
             [["log.retention.ms", "7200000", DEFAULT_DYNAMIC], ["log.retention.hours", "24", STATIC],
              ["log.retention.hours", "168", DEFAULT]]],
        ),
        ("log.roll.ms", ["100000000", STATIC, False, False, [["log.roll.ms", "100000000", STATIC],
         ["log.roll.hours", "168", DEFAULT]]]),
        (
            "message.max.bytes",
            ["3000000", DYNAMIC, False, False,
             [["message.max.bytes", "3000000", DYNAMIC], ["message.max.bytes", "2000000", DEFAULT_DYNAMIC],
              ["message.max.bytes", "1048588", DEFAULT]]],
        ),
        (
            "log.cleaner.io.buffer.load.factor",
            ["0.8", DEFAULT_DYNAMIC, False, False,
             [["log.cleaner.io.buffer.load.factor", "0.80", DEFAULT_DYNAMIC],
              ["log.cleaner.io.buffer.load.factor", "0.90", STATIC],
              ["log.cleaner.io.buffer.load.factor", "0.9", DEFAULT]]],
        ),
        ("ssl.key.password", [None, STATIC, False, True, [["ssl.key.password", None, STATIC]]]),
        ("foo.bar", [None, STATIC, True, True, [["foo.bar", None, STATIC]]]),
        ("foo.dyn", [None, DYNAMIC, True, True, [["foo.dyn", None, DYNAMIC]]]),
        (
            "listener.name.plaintext.ssl.key.password",
            [None, STATIC, True, True, [["listener.name.plaintext.ssl.key.password", None, STATIC],
             ["ssl.key.password", None, STATIC]]],
        ),
        (
            "listener.name.plaintext.max.connections",
            ["7", DYNAMIC, True, False,
             [["listener.name.plaintext.max.connections", "7", DYNAMIC], ["max.connections", "2147483647", DEFAULT]]],
        ),
        ("log.flush.interval.ms", [None, DEFAULT, False, False, []]),
    ],
)  # fmt: skip
def test_a_broker_row_tells_all_layers_as_kafka_does(name: str, answer: list) -> None:
    (row,) = describe_broker(dynamic_node(), [name])
    assert as_answer(row) == answer


def test_a_setting_in_no_table_has_no_type_and_one_of_a_listener_has_that_of_its_option() -> None:
    types = {row.name: row.type for row in describe_broker(dynamic_node())}
    assert types["foo.bar"] is Type.UNKNOWN
    assert types["listener.name.plaintext.ssl.key.password"] is Type.PASSWORD
    assert types["listener.name.plaintext.max.connections"] is Type.INT


def test_the_rates_of_moving_replicas_are_in_no_table_and_no_secret() -> None:
    """As Apache Kafka answers while kafka-reassign-partitions --throttle is at work."""
    config = BrokerConfig({})
    name = "leader.replication.throttled.rate"
    config.apply_dynamic({}, {name: "1000"})
    (row,) = describe_broker(config, [name])
    assert (row.value, row.is_sensitive, row.source.name) == ("1000", False, "DYNAMIC_BROKER")
    assert [(synonym.name, synonym.value) for synonym in row.synonyms] == [(name, "1000")]
    config.apply_dynamic({name: "5"}, {})
    (row,) = describe_broker_default(config)
    assert (row.value, row.is_sensitive) == ("5", False)


def test_the_default_broker_tells_only_what_was_set_and_as_it_was_set() -> None:
    rows = {row.name: row for row in describe_broker_default(dynamic_node())}
    assert sorted(rows) == ["log.cleaner.io.buffer.load.factor", "log.retention.ms", "message.max.bytes"]
    assert as_answer(rows["log.cleaner.io.buffer.load.factor"]) == [
        "0.80",
        DEFAULT_DYNAMIC,
        False,
        False,
        [["log.cleaner.io.buffer.load.factor", "0.80", DEFAULT_DYNAMIC]],
    ]


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("cleanup.policy", ["compact,delete", "TOPIC_CONFIG", False, False,
                            [["cleanup.policy", "compact,delete", "TOPIC_CONFIG"], ["log.cleanup.policy", "delete", DEFAULT]]]),
        ("min.cleanable.dirty.ratio", ["0.5", "TOPIC_CONFIG", False, False,
                                       [["min.cleanable.dirty.ratio", "0.5", "TOPIC_CONFIG"],
                                        ["log.cleaner.min.cleanable.ratio", "0.5", DEFAULT]]]),
        ("max.message.bytes", ["3000000", DYNAMIC, False, False,
                               [["message.max.bytes", "3000000", DYNAMIC], ["message.max.bytes", "2000000", DEFAULT_DYNAMIC],
                                ["message.max.bytes", "1048588", DEFAULT]]]),
        ("retention.ms", ["7200000", DEFAULT_DYNAMIC, False, False,
                          [["log.retention.ms", "7200000", DEFAULT_DYNAMIC], ["log.retention.hours", "24", STATIC],
                           ["log.retention.hours", "168", DEFAULT]]]),
        ("segment.ms", ["100000000", STATIC, False, False, [["log.roll.ms", "100000000", STATIC],
         ["log.roll.hours", "168", DEFAULT]]]),
        ("segment.jitter.ms", ["0", DEFAULT, False, False, []]),
        ("flush.ms", ["5", "TOPIC_CONFIG", False, False, [["flush.ms", "5", "TOPIC_CONFIG"]]]),
    ],
)  # fmt: skip
def test_a_topic_row_tells_its_own_word_and_the_brokers(name: str, answer: list) -> None:
    overrides = {"cleanup.policy": "compact, delete", "min.cleanable.dirty.ratio": "0.50", "flush.ms": "+5"}
    (row,) = describe_topic(dynamic_node(), overrides, [name])
    assert as_answer(row) == answer


def test_a_fallback_alone_gives_the_value_but_no_synonyms() -> None:
    config = BrokerConfig.from_properties({"log.retention.hours": "24"})
    (row,) = describe_topic(config, {}, ["retention.ms"])
    assert as_answer(row) == ["86400000", DEFAULT, False, False, []]


def test_an_internal_topic_setting_is_listed_only_when_set() -> None:
    config = BrokerConfig.from_properties({})
    assert len(describe_topic(config, {})) == 34
    assert len(describe_topic(config, {"internal.segment.bytes": "1000"})) == 35


def test_names_that_do_not_exist_are_left_out_and_no_names_mean_all() -> None:
    config = BrokerConfig.from_properties({})
    assert [row.name for row in describe_topic(config, {}, ["retention.ms", "nope"])] == ["retention.ms"]
    assert len(describe_topic(config, {}, [])) == 34


def test_a_group_follows_the_broker_and_client_metrics_nobody() -> None:
    config = BrokerConfig.from_properties({"group.consumer.session.timeout.ms": "46000"})
    (row,) = describe_group(config, {}, ["consumer.session.timeout.ms"])
    assert (row.value, row.synonyms[0].name) == ("46000", "group.consumer.session.timeout.ms")
    (row,) = describe_group(config, {"consumer.session.timeout.ms": "50000"}, ["consumer.session.timeout.ms"])
    assert next((s.name, s.value, int(s.source)) for s in row.synonyms) == ("consumer.session.timeout.ms", "50000", 8)
    (row,) = describe_group(config, {}, ["share.auto.offset.reset"])
    assert as_answer(row) == ["latest", DEFAULT, False, False, [["share.auto.offset.reset", "latest", DEFAULT]]]
    rows = {row.name: row for row in describe_client_metrics({"interval.ms": "5000"})}
    assert (rows["interval.ms"].value, int(rows["interval.ms"].source), rows["match"].synonyms) == ("5000", 7, ())


def test_secrets_of_a_listener_are_never_shown() -> None:
    own = "listener.name.outside.ssl"
    given = {f"{own}.keystore.password": "canary", f"{own}.key.password": "canary", f"{own}.keystore.type": "PEM"}
    config = BrokerConfig.from_properties({"ssl.keystore.key": "canary"})
    config.apply_dynamic({}, given)
    rows = {row.name: row for row in describe_broker(config)}
    assert "canary" not in repr(rows)
    assert all(rows[name].is_sensitive and rows[name].value is None for name in given if "password" in name)
    assert rows[f"{own}.keystore.type"].synonyms[0].value == "PEM"
