from __future__ import annotations

import pytest

from tidelog.config.resolve import BrokerConfig
from tidelog.config.resource_validation import (
    check_broker_change,
    check_client_metrics,
    check_group,
    check_stores_have_a_listener,
    interval_problem,
)
from tidelog.model.errors import ConfigError


def config(**more: str) -> BrokerConfig:
    return BrokerConfig.from_properties({"log.dirs": "/a,/b", **{name.replace("_", "."): text for name, text in more.items()}})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("num.io.threads", "17", "double"),
        ("num.io.threads", "3", "half"),
        ("log.cleaner.threads", "3", "double"),
        ("max.connections.per.ip", "0", "shuts everybody out"),
        ("max.connections.per.ip.overrides", "h:many", "host:number"),
        ("max.connections.per.ip.overrides", "h", "host:number"),
        ("cordoned.log.dirs", "/a,/c", "/c"),
    ],
)
def test_a_change_that_would_hurt_a_running_broker_is_refused(name: str, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_broker_change(config(), {name: text}, {})


@pytest.mark.parametrize(
    "settings",
    [
        {"num.io.threads": "16"},
        {"num.io.threads": "4"},
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:5"},
        {"cordoned.log.dirs": "/a"},
        {"cordoned.log.dirs": "*"},
        {"listener.name.tls.ssl.keystore.password": "secret"},
        {"some.plugin": "x"},
    ],
)
def test_other_changes_are_taken(settings: dict[str, str]) -> None:
    check_broker_change(config(), settings, {})


@pytest.mark.parametrize("name", ["ssl.keystore.password", "ssl.truststore.location", "ssl.key.password"])
def test_a_store_changes_for_one_listener_at_a_time(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"write listener\.name\.NAME\. before {name}$"):
        check_stores_have_a_listener({name: "secret", "log.retention.ms": "1", "some.plugin": "x"})
    check_stores_have_a_listener({f"listener.name.tls.{name}": "secret"})


def test_what_was_set_before_is_not_asked_again() -> None:
    check_broker_change(config(), {"num.io.threads": "99"}, {"num.io.threads": "99"})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"consumer.session.timeout.ms": "1"}, "group.consumer.min.session.timeout.ms"),
        ({"consumer.session.timeout.ms": "99999999"}, "group.consumer.max.session.timeout.ms"),
        ({"consumer.heartbeat.interval.ms": "55000"}, "group.consumer.max.heartbeat.interval.ms"),
        ({"streams.num.standby.replicas": "5"}, "group.streams.max.standby.replicas"),
        ({"share.delivery.count.limit": "1"}, "at least 2"),
        ({"consumer.assignment.interval.ms": "-1"}, "at least 0"),
        ({"share.auto.offset.reset": "yesterday"}, "by_duration"),
        ({"share.auto.offset.reset": "by_duration:P"}, "by_duration"),
        ({"share.isolation.level": "none"}, "read_committed"),
    ],
)
def test_a_group_stays_within_the_brokers_bounds(settings: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_group(config(), settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"consumer.session.timeout.ms": "50000"},
        {"share.auto.offset.reset": "by_duration:P1DT2H3M4.5S"},
        {"share.auto.offset.reset": "earliest"},
        {"share.renew.acknowledge.enable": "false"},
    ],
)
def test_what_is_within_them_is_taken(settings: dict[str, str]) -> None:
    check_group(config(), settings)


def test_a_session_outlives_a_heartbeat_whoever_sets_which() -> None:
    narrow = config(group_consumer_min_session_timeout_ms="5000", group_consumer_max_heartbeat_interval_ms="15000")
    with pytest.raises(ConfigError, match=r"greater than consumer\.heartbeat"):
        check_group(narrow, {"consumer.session.timeout.ms": "5000"})
    with pytest.raises(ConfigError, match=r"greater than consumer\.heartbeat"):
        check_group(narrow, {"consumer.session.timeout.ms": "9000", "consumer.heartbeat.interval.ms": "9000"})


@pytest.mark.parametrize("match", ["client_id", "client_id=[", "colour=red", "client_id=a,colour=red"])
def test_a_pattern_that_matches_nothing_that_there_is_is_refused(match: str) -> None:
    with pytest.raises(ConfigError, match="Illegal client matching pattern"):
        check_client_metrics({"match": match})


def test_patterns_and_intervals_that_can_be() -> None:
    check_client_metrics({"match": "client_software_name=apache-.*, client_source_port=[0-9]+", "metrics": "*"})
    check_client_metrics({"match": ""})
    assert [interval_problem({"interval.ms": text}) is None for text in ("99", "100", "3600000", "3600001")] == [
        False,
        True,
        True,
        False,
    ]
    assert interval_problem({}) is None
