"""Validation of settings for the controller, answered from the option tables."""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.describe import broker_option, describe_topic
from tidelog.config.group_options import CLIENT_METRICS_OPTIONS, GROUP_OPTIONS
from tidelog.config.listener_connections import bounds_problems
from tidelog.config.options import Dynamic, Option, Type, value_text
from tidelog.config.resolve import BrokerConfig
from tidelog.config.resource_validation import (
    check_broker_change,
    check_client_metrics,
    check_group,
    check_stores_have_a_listener,
    interval_problem,
)
from tidelog.config.topic_options import TOPIC_OPTIONS
from tidelog.config.topic_validation import validate_topic_configs
from tidelog.metadata.image import BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE, ClusterImage
from tidelog.model.errors import ConfigError, ErrorCode
from tidelog.protocol.messages.create_topics import CreatableTopicConfigs

_TABLES: Mapping[int, Mapping[str, Option]] = {
    TOPIC_RESOURCE: TOPIC_OPTIONS,
    BROKER_RESOURCE: BROKER_OPTIONS,
    CLIENT_METRICS_RESOURCE: CLIENT_METRICS_OPTIONS,
    GROUP_RESOURCE: GROUP_OPTIONS,
}


class OptionRules:
    """``controller.result.ConfigRules`` over this node's settings."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config

    def problem(self, resource_type: int, resource_name: str, settings: Mapping[str, str]) -> tuple[ErrorCode, str] | None:
        """Topics, groups and subscriptions: INVALID_CONFIG. Brokers: INVALID_REQUEST, as in Kafka (KAFKA-13609)."""
        try:
            if resource_type == TOPIC_RESOURCE:
                validate_topic_configs(settings)
            elif resource_type == BROKER_RESOURCE:
                self._check_broker(resource_name, settings)
            else:
                kind = "group config name" if resource_type == GROUP_RESOURCE else "client metrics configuration"
                unknown = [name for name in settings if name not in _TABLES[resource_type]]
                if unknown:
                    code = ErrorCode.INVALID_CONFIG if resource_type == GROUP_RESOURCE else ErrorCode.INVALID_REQUEST
                    return code, f"Unknown {kind}: {unknown[0]}"
                if resource_type == GROUP_RESOURCE:
                    check_group(self._config, settings)
                else:
                    check_client_metrics(settings)
                    problem = interval_problem(settings)
                    return (ErrorCode.INVALID_REQUEST, problem) if problem is not None else None
        except ConfigError as error:
            code = ErrorCode.INVALID_REQUEST if resource_type == BROKER_RESOURCE else ErrorCode.INVALID_CONFIG
            return code, str(error)
        return None

    def _check_broker(self, name: str, settings: Mapping[str, str]) -> None:
        """Checks the values alone and together with the other settings of this node, which has to be able to apply them."""
        _check_broker(settings, cluster_wide=not name)
        config = self._config
        if not name or name == str(config.node_id):
            # The other broker's own settings, its log dirs and threads, are unknown to this node.
            check_broker_change(config, settings, config.dynamic_broker if name else config.dynamic_default)
        if not name:
            config.plan_dynamic(settings, config.dynamic_broker)
        elif name == str(config.node_id):
            config.plan_dynamic(config.dynamic_default, settings)

    def is_list(self, resource_type: int, name: str) -> bool:
        # A subscription's metrics are a list in its table, and Kafka appends to no setting of a subscription.
        option = _TABLES[resource_type].get(name)
        return option is not None and option.type is Type.LIST and resource_type != CLIENT_METRICS_RESOURCE

    def default(self, resource_type: int, name: str) -> str:
        option = _TABLES[resource_type].get(name)
        return (value_text(option.default) if option is not None else None) or ""

    def topic_rows(self, overrides: Mapping[str, str], image: ClusterImage) -> list[CreatableTopicConfigs]:
        """The rows that DescribeConfigs would return for the new topic."""
        return [
            CreatableTopicConfigs(
                name=row.name,
                value=row.value,
                read_only=row.read_only,
                config_source=row.source,
                is_sensitive=row.is_sensitive,
            )
            for row in describe_topic(self._config, overrides)
        ]


def _check_broker(settings: Mapping[str, str], *, cluster_wide: bool) -> None:
    """Names outside the table are kept, as Kafka keeps them for plugins; they have no effect here."""
    fixed = [name for name in settings if name in BROKER_OPTIONS and BROKER_OPTIONS[name].dynamic is Dynamic.READ_ONLY]
    if fixed:
        raise ConfigError(
            f"Cannot update these configs dynamically: [{', '.join(sorted(fixed))}]. Set them in server.properties."
        )
    behind = {name: broker_option(name) for name in settings}
    own = [name for name, option in behind.items() if option is not None and option.dynamic is Dynamic.PER_BROKER]
    if cluster_wide and own:
        raise ConfigError(
            f"These belong to one broker and have no cluster-wide default; name the broker: {', '.join(sorted(own))}"
        )
    check_stores_have_a_listener(settings)
    if problems := "\n".join(bounds_problems(settings)):
        raise ConfigError(problems)
    _check_values(BROKER_OPTIONS, settings)


def _check_values(table: Mapping[str, Option], settings: Mapping[str, str]) -> None:
    for name, text in settings.items():
        if name in table:
            table[name].parse(text)
