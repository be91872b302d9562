"""Converts ``BrokerConfig`` to the settings of a node's components; makes no decisions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING

from tidelog.broker.quotas.rates import Windows
from tidelog.config.listener_connections import own_bounds
from tidelog.config.resolve import BrokerConfig
from tidelog.config.topic_config import TopicConfig
from tidelog.controller.result import ControllerSettings
from tidelog.model.errors import ConfigError
from tidelog.raft.metadata_log import MetadataLogConfig
from tidelog.server.serving.listener import ConnectionCount, Limits
from tidelog.storage.log_config import LogConfig

if TYPE_CHECKING:
    from tidelog.security.delegation_tokens import TokenRules

_LOG_FIELDS = tuple(field.name for field in fields(LogConfig))


SOCKET_BUFFER_BYTES = 512 * 1024
"""Asked for where the user did not set a size. With Kafka's 100 KiB a producer of 128 KiB batches stops for each; more than this
makes fetches of many partitions dearer, because less of what is sent stays in the processor's caches."""


def _socket_buffer(config: BrokerConfig, name: str, value: int) -> int:
    return value if name in config.static else SOCKET_BUFFER_BYTES


@lru_cache(maxsize=1024)
def log_config(topic: TopicConfig) -> LogConfig:
    """The settings of a topic's log."""
    values = {name: getattr(topic, name) for name in _LOG_FIELDS}
    if topic.internal_segment_bytes is not None:
        values["segment_bytes"] = topic.internal_segment_bytes
    return LogConfig(**values)


def limits(config: BrokerConfig, listener: str = "") -> Limits:
    """The limits of a listener; without a name those of any."""
    own = own_bounds(listener, (config.dynamic_broker, config.dynamic_default, config.static))
    return Limits(
        max_request_bytes=config.socket_request_max_bytes,
        max_connections=config.max_connections,
        max_connections_per_ip=config.max_connections_per_ip,
        per_ip_overrides=_per_ip(config.max_connections_per_ip_overrides),
        max_idle_ms=config.connections_max_idle_ms,
        send_buffer_bytes=_socket_buffer(config, "socket.send.buffer.bytes", config.socket_send_buffer_bytes),
        receive_buffer_bytes=_socket_buffer(config, "socket.receive.buffer.bytes", config.socket_receive_buffer_bytes),
        backlog=config.socket_listen_backlog_size,
        max_creation_rate=config.max_connection_creation_rate,
        exempt=config.inter_broker_listener if len(config.broker_endpoints) > 1 else "",
        max_unauthenticated=config.tidelog_max_unauthenticated_connections,
        max_unauthenticated_per_ip=config.tidelog_max_unauthenticated_connections_per_ip,
        slow_request_ms=config.tidelog_slow_request_log_ms,
        own_connections=own.connections,
        own_creation_rate=own.creation_rate,
    )


def connection_count(config: BrokerConfig) -> ConnectionCount:
    """What the listeners of a node count together."""
    return ConnectionCount(Windows(config.quota_window_num, config.quota_window_size_seconds * 1000))


def controller_settings(config: BrokerConfig) -> ControllerSettings:
    """Settings that the controller's decisions depend on.

    ``min.insync.replicas`` is the static value: dynamic values are in the controller's image already, and a dynamic value of this
    node alone must not become the cluster's value when eligible leader replicas are enabled (KIP-966). Apache Kafka 4.3.1 does
    the same.
    """
    return ControllerSettings(
        num_partitions=config.num_partitions,
        default_replication_factor=config.default_replication_factor,
        delete_topic_enable=config.delete_topic_enable,
        unclean_leader_election_enable=config.unclean_leader_election_enable,
        min_insync_replicas=BrokerConfig(config.static).min_insync_replicas,
        broker_session_timeout_ms=config.broker_session_timeout_ms,
        auto_leader_rebalance_enable=config.auto_leader_rebalance_enable,
        leader_imbalance_check_interval_ms=config.leader_imbalance_check_interval_seconds * 1_000,
        unclean_leader_election_interval_ms=config.unclean_leader_election_interval_ms,
        tokens=token_rules(config),
    )


def token_rules(config: BrokerConfig) -> TokenRules | None:
    """What the controller decides about delegation tokens by; None where they are off."""
    if config.delegation_token_secret_key is None:
        return None
    from tidelog.security.delegation_tokens import TokenRules, secrets_of  # Only for a node with tokens.

    secrets = secrets_of(config.delegation_token_secret_key)
    if secrets is None:
        return None
    return TokenRules(
        secrets=secrets,
        max_lifetime_ms=config.delegation_token_max_lifetime_ms,
        expiry_ms=config.delegation_token_expiry_time_ms,
        check_interval_ms=config.delegation_token_expiry_check_interval_ms,
    )


def metadata_log_config(config: BrokerConfig) -> MetadataLogConfig:
    return MetadataLogConfig(
        segment_bytes=config.internal_metadata_log_segment_bytes or config.metadata_log_segment_bytes,
        segment_ms=config.metadata_log_segment_ms,
        max_record_bytes_between_snapshots=config.metadata_log_max_record_bytes_between_snapshots,
        max_snapshot_interval_ms=config.metadata_log_max_snapshot_interval_ms,
        retention_bytes=config.metadata_max_retention_bytes,
        retention_ms=config.metadata_max_retention_ms,
    )


def log_dirs(config: BrokerConfig) -> tuple[str, ...]:
    """``log.dirs``, or ``log.dir``; ConfigError when there is none or one is empty."""
    dirs = tuple(config.log_dirs or ()) or config.log_dir
    if not dirs or not all(dirs):
        raise ConfigError("log.dirs holds an empty path. Name the directories in which the node keeps its data.")
    return dirs


def _per_ip(overrides: str | Iterable[str]) -> dict[str, int]:
    """Connection limits by host, from ``host:count`` pairs."""
    items = overrides.split(",") if isinstance(overrides, str) else overrides
    result: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in items)):
        host, colon, count = item.rpartition(":")
        if not colon or not count.isdecimal():
            raise ConfigError(f"max.connections.per.ip.overrides holds {item!r}, but must hold host:number, separated by commas.")
        result[host] = int(count)
    return result
