"""DescribeConfigs: the value and source of every setting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tidelog.broker import loggers
from tidelog.broker.authorization import config_resource, require
from tidelog.broker.request import Context
from tidelog.config import describe
from tidelog.config.describe import ConfigRow, Source
from tidelog.config.listing_order import hash_map_order
from tidelog.config.options import Type
from tidelog.controller.topic_names import name_problem
from tidelog.metadata.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from tidelog.model.acl import AclOperation
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


def describe_configs(ctx: Context, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Sent by admin clients, Connect, Streams and consoles. v1 added sources and synonyms, v3 types and documentation.

    A null list of names means all settings. A controller answers for itself and for what all nodes know. Errors per resource:
    UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, INVALID_REQUEST for another node or a type of resource without settings;
    CLUSTER_AUTHORIZATION_FAILED (brokers, loggers, client metrics), TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED.
    """
    return DescribeConfigsResponse(results=[_result(ctx, request, resource) for resource in request.resources])


def _result(ctx: Context, request: DescribeConfigsRequest, resource: DescribeConfigsResource) -> DescribeConfigsResult:
    try:
        rows = _rows(ctx, resource)
    except KafkaError as error:
        return DescribeConfigsResult(
            error_code=error.code,
            error_message=error.detail or None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
    return DescribeConfigsResult(
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[_encoded(row, request) for row in rows],
    )


def _rows(ctx: Context, resource: DescribeConfigsResource) -> Sequence[ConfigRow]:
    name, keys = resource.resource_name, resource.configuration_keys
    describers: dict[int, Callable[[Context, str, Iterable[str] | None], Sequence[ConfigRow]]] = {
        TOPIC_RESOURCE: _topic,
        BROKER_RESOURCE: _broker,
        BROKER_LOGGER_RESOURCE: _broker_loggers,
        GROUP_RESOURCE: _group,
        CLIENT_METRICS_RESOURCE: _client_metrics,
    }
    describer = describers.get(resource.resource_type)
    if describer is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Resource type {resource.resource_type} is not known.")
    kind, guarded = config_resource(resource.resource_type, name)
    require(ctx, AclOperation.DESCRIBE_CONFIGS, kind, guarded)
    return describer(ctx, name, keys)


def _topic(ctx: Context, name: str, keys: Iterable[str] | None) -> Sequence[ConfigRow]:
    problem = name_problem(name)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if name not in ctx.image.topics.by_name:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic {name} does not exist.")
    return describe.describe_topic(ctx.config, ctx.image.topic_configs(name), keys)


def _broker(ctx: Context, name: str, keys: Iterable[str] | None) -> Sequence[ConfigRow]:
    if not name:
        return describe.describe_broker_default(ctx.config, keys)
    _check_is_this_node(ctx, name)
    return describe.describe_broker(ctx.config, keys)


def _broker_loggers(ctx: Context, name: str, keys: Iterable[str] | None) -> Sequence[ConfigRow]:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A logger belongs to one node: name it by its id")
    _check_is_this_node(ctx, name)
    wanted = set(keys or ())
    return [
        ConfigRow(logger, level, Source.BROKER_LOGGER, False, False, (), Type.UNKNOWN, "")
        for logger, level in _in_order(loggers.levels())
        if not wanted or logger in wanted
    ]


def _in_order(levels: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name, levels[name]) for name in hash_map_order(levels)]


def _check_is_this_node(ctx: Context, name: str) -> None:
    """Only the node itself knows its static settings."""
    if not name.isdecimal():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"'{name}' is not a node id: name the node by its number")
    if int(name) != ctx.node.node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"This is node {ctx.node.node_id}: ask node {name} for its settings")


def _group(ctx: Context, name: str, keys: Iterable[str] | None) -> Sequence[ConfigRow]:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Groups have no default settings: name the group")
    return describe.describe_group(ctx.config, ctx.image.configs.get((GROUP_RESOURCE, name), {}), keys)


def _client_metrics(ctx: Context, name: str, keys: Iterable[str] | None) -> Sequence[ConfigRow]:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Name the client metrics subscription to describe")
    return describe.describe_client_metrics(ctx.image.configs.get((CLIENT_METRICS_RESOURCE, name), {}), keys)


def _encoded(row: ConfigRow, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = row.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=row.name,
        value=row.value,
        read_only=row.read_only,
        config_source=row.source,
        is_sensitive=row.is_sensitive,
        synonyms=[DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source) for each in synonyms],
        config_type=Type(row.type),
        documentation=row.doc if request.include_documentation else None,
    )
