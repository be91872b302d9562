"""Settings of topics, brokers, loggers, groups and client metrics: described and altered (KIP-226, KIP-339)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.client.admin.results import ConfigEntry, ResourceType
from tidelog.client.admin.topics import check
from tidelog.client.calls import Ask, Call, Node, To
from tidelog.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tidelog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

SET, DELETE = 0, 1


def describe(kind: ResourceType, name: str, keys: Iterable[str] | None = None) -> Call[dict[str, ConfigEntry]]:
    """The settings by name, all or those in ``keys``. An empty name: the defaults of all brokers. KafkaError."""
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None if keys is None else list(keys)
    )
    response = yield Ask(DescribeConfigsRequest(resources=[resource]), _of(kind, name))
    (result,) = response.results
    check(result.error_code, result.error_message)
    return {
        row.name: ConfigEntry(row.name, row.value, row.config_source, row.read_only, row.is_sensitive) for row in result.configs
    }


def alter(
    kind: ResourceType,
    name: str,
    change: Mapping[str, str] | None = None,
    remove: Iterable[str] = (),
    *,
    validate_only: bool = False,
) -> Call[None]:
    """Set some settings and remove others in one step; the rest is unchanged. KafkaError, such as INVALID_CONFIG."""
    configs = [AlterableConfig(name=key, config_operation=SET, value=value) for key, value in (change or {}).items()]
    configs += [AlterableConfig(name=key, config_operation=DELETE, value=None) for key in remove]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (result,) = (yield Ask(request, _of(kind, name))).responses
    check(result.error_code, result.error_message)


def _of(kind: ResourceType, name: str) -> To:
    """A broker's settings are requested from that broker, any others from any broker."""
    own = kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and name.isdecimal()
    return Node(int(name)) if own else None
