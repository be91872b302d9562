from __future__ import annotations

from dataclasses import fields

import pytest

from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError
from tidelog.server import component_settings
from tidelog.storage.log_config import LogConfig


def config(**values: str) -> BrokerConfig:
    return BrokerConfig.from_properties({name.replace("_", "."): value for name, value in values.items()})


def test_a_log_follows_its_topics_settings_and_the_brokers_defaults() -> None:
    broker = config(log_retention_hours="2", log_segment_bytes="5000000")
    made = component_settings.log_config(broker.topic_config({"cleanup.policy": "compact", "flush.messages": "7"}))
    assert (made.retention_ms, made.segment_bytes, made.flush_messages) == (7_200_000, 5_000_000, 7)
    assert made.compact
    assert not made.delete


def test_a_topic_without_settings_has_the_defaults_of_a_log() -> None:
    made = component_settings.log_config(config().topic_config({}))
    assert {field.name: getattr(made, field.name) for field in fields(LogConfig)} == {
        field.name: getattr(LogConfig(), field.name) for field in fields(LogConfig)
    }


def test_topics_with_equal_settings_share_one_object() -> None:
    broker = config()
    assert component_settings.log_config(broker.topic_config({})) is component_settings.log_config(broker.topic_config({}))


def test_the_rate_of_connections_spares_the_listener_between_brokers_where_there_are_others() -> None:
    one = config(max_connection_creation_rate="7")
    assert (component_settings.limits(one).max_creation_rate, component_settings.limits(one).exempt) == (7, "")
    two = config(
        listeners="A://:1,B://:2", listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT", inter_broker_listener_name="B"
    )
    assert component_settings.limits(two).exempt == "B"


def test_limits_are_kafkas() -> None:
    made = component_settings.limits(
        config(
            socket_request_max_bytes="1000",
            max_connections="5",
            max_connections_per_ip="3",
            max_connections_per_ip_overrides="10.0.0.1:2, ::1:7",
            connections_max_idle_ms="100",
        )
    )
    assert (made.max_request_bytes, made.max_connections, made.max_idle_ms) == (1000, 5, 100)
    assert [made.for_host(host) for host in ("10.0.0.1", "::1", "elsewhere")] == [2, 7, 3]


def test_the_bounds_of_a_listener_are_those_of_the_strongest_layer() -> None:
    name = "listener.name.plaintext.max.connections"
    broker = BrokerConfig.from_properties({name: "5", "listener.name.plaintext.max.connection.creation.rate": "6"})
    made = component_settings.limits(broker, "PLAINTEXT")
    assert (made.own_connections, made.own_creation_rate) == (5, 6)
    assert component_settings.limits(broker, "OTHER").own_connections == component_settings.limits(config()).own_connections
    broker.apply_dynamic({name: "7"}, {})
    assert component_settings.limits(broker, "PLAINTEXT").own_connections == 7
    broker.apply_dynamic({name: "7"}, {name: "8"})
    assert component_settings.limits(broker, "PLAINTEXT").own_connections == 8


@pytest.mark.parametrize("overrides", ["10.0.0.1", "10.0.0.1:x", ":"])
def test_overrides_that_cannot_be_read_are_refused(overrides: str) -> None:
    with pytest.raises(ConfigError, match=r"max\.connections\.per\.ip\.overrides"):
        component_settings.limits(config(max_connections_per_ip_overrides=overrides))


def test_the_controller_and_its_log_have_their_settings() -> None:
    broker = config(num_partitions="3", delete_topic_enable="false", metadata_log_max_snapshot_interval_ms="1000")
    assert component_settings.controller_settings(broker).num_partitions == 3
    assert not component_settings.controller_settings(broker).delete_topic_enable
    assert component_settings.metadata_log_config(broker).max_snapshot_interval_ms == 1000


def test_delegation_tokens_are_on_with_a_secret() -> None:
    assert component_settings.controller_settings(config()).tokens is None
    assert component_settings.token_rules(config(delegation_token_secret_key="")) is None
    rules = component_settings.controller_settings(
        config(delegation_token_secret_key="k3y", delegation_token_max_lifetime_ms="5", delegation_token_expiry_time_ms="4")
    ).tokens
    assert rules is not None
    assert (rules.max_lifetime_ms, rules.expiry_ms, rules.check_interval_ms) == (5, 4, 3_600_000)
    assert "k3y" not in repr(rules)


def test_the_minimum_in_sync_that_a_cluster_gets_is_that_of_the_file_not_one_of_this_node_alone() -> None:
    broker = config(min_insync_replicas="2")
    broker.apply_dynamic({}, {"min.insync.replicas": "3"})
    assert broker.min_insync_replicas == 3
    assert component_settings.controller_settings(broker).min_insync_replicas == 2


def test_log_dirs_win_over_log_dir() -> None:
    assert component_settings.log_dirs(config(log_dir="/a")) == ("/a",)
    assert component_settings.log_dirs(config(log_dir="/a", log_dirs="/b,/c")) == ("/b", "/c")


def test_sockets_get_the_buffers_that_were_set_and_larger_ones_than_kafkas_otherwise() -> None:
    unset = component_settings.limits(config())
    assert (unset.send_buffer_bytes, unset.receive_buffer_bytes) == (524288, 524288)
    kafkas = config(socket_send_buffer_bytes="102400", socket_receive_buffer_bytes="-1")
    assert component_settings.limits(kafkas).send_buffer_bytes == 102400
    assert component_settings.limits(kafkas).receive_buffer_bytes == -1
