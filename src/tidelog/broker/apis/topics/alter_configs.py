"""AlterConfigs, IncrementalAlterConfigs and ListConfigResources.

Changes that the controller decides are sent to it in one request. What only this broker can decide (its loggers, whether the
request names this broker) is decided here. Each resource has its own result, in the order of the request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from tidelog.broker import loggers
from tidelog.broker.authorization import DENIED, allows, allows_changes, config_resource, require_on_cluster
from tidelog.broker.forwarding import by_controller
from tidelog.broker.loggers import LevelChange
from tidelog.broker.node import BrokerContext, ControllerSide
from tidelog.broker.ports import ControllerHandler
from tidelog.broker.request import Context
from tidelog.config.dynamic_changes import REPORTERS, check_change
from tidelog.controller.config_validation import OptionRules
from tidelog.controller.dynamic_configs import AlterConfigOp
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import ControllerResult
from tidelog.metadata.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ClusterImage,
)
from tidelog.model.acl import AclOperation
from tidelog.model.errors import ConfigError, ErrorCode, KafkaError
from tidelog.protocol.messages import alter_configs as legacy
from tidelog.protocol.messages import incremental_alter_configs as incremental
from tidelog.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_LISTED = (GROUP_RESOURCE, CLIENT_METRICS_RESOURCE, BROKER_LOGGER_RESOURCE, BROKER_RESOURCE, TOPIC_RESOURCE)


async def incremental_alter_configs(
    ctx: Context, request: incremental.IncrementalAlterConfigsRequest
) -> incremental.IncrementalAlterConfigsResponse:
    """Sent by admin clients and consoles (KIP-339): sets, deletes, appends to and subtracts from single settings.

    Logger levels of this broker change at once and are not persisted. Errors per resource: INVALID_REQUEST (named twice, another
    broker), INVALID_CONFIG, UNKNOWN_TOPIC_OR_PARTITION, CLUSTER_AUTHORIZATION_FAILED (brokers, loggers, client metrics),
    TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED; see ``controller.dynamic_configs``.
    """
    answers: list[incremental.AlterConfigsResourceResponse | None] = []
    forwarded: list[incremental.AlterConfigsResource] = []
    loggers_named = Counter(each.resource_name for each in request.resources if each.resource_type == BROKER_LOGGER_RESOURCE)
    for resource in request.resources:
        try:
            if resource.resource_type != BROKER_LOGGER_RESOURCE:
                _check_is_this_broker(ctx, resource.resource_type, resource.resource_name)
                await _check_change(ctx, resource.resource_type, resource.resource_name, _after_changes(ctx, resource))
                forwarded.append(resource)
                answers.append(None)
                continue
            _check_may_change_levels(ctx)
            if loggers_named[resource.resource_name] > 1:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"Logger resource '{resource.resource_name}' is in the request twice: merge its changes into one entry.",
                )
            _change_levels(ctx, resource, validate_only=request.validate_only)
            answers.append(_incremental_answer(resource, ErrorCode.NONE, None))
        except KafkaError as error:
            answers.append(_incremental_answer(resource, error.code, error.detail or None))
    if forwarded:
        wanted = incremental.IncrementalAlterConfigsRequest(resources=forwarded, validate_only=request.validate_only)
        response = await by_controller(ctx, wanted, _decide_incremental)
        decided = iter(response.responses)
        answers = [answer or next(decided) for answer in answers]
    return incremental.IncrementalAlterConfigsResponse(responses=[answer for answer in answers if answer is not None])


async def alter_configs(ctx: Context, request: legacy.AlterConfigsRequest) -> legacy.AlterConfigsResponse:
    """Sent by old admin clients: replaces all settings of a resource. Errors as for IncrementalAlterConfigs; no loggers."""
    answers: list[legacy.AlterConfigsResourceResponse | None] = []
    forwarded: list[legacy.AlterConfigsResource] = []
    for resource in request.resources:
        try:
            _check_is_this_broker(ctx, resource.resource_type, resource.resource_name)
            after = {each.name: each.value for each in resource.configs if each.value is not None}
            await _check_change(ctx, resource.resource_type, resource.resource_name, after)
            forwarded.append(resource)
            answers.append(None)
        except KafkaError as error:
            answers.append(_legacy_answer(resource, error.code, error.detail or None))
    if forwarded:
        wanted = legacy.AlterConfigsRequest(resources=forwarded, validate_only=request.validate_only)
        response = await by_controller(ctx, wanted, _decide_legacy)
        decided = iter(response.responses)
        answers = [answer or next(decided) for answer in answers]
    return legacy.AlterConfigsResponse(responses=[answer for answer in answers if answer is not None])


async def _decide_incremental(ctx: Context, request: incremental.IncrementalAlterConfigsRequest) -> Any:
    handler = _permitted(ctx, QuorumController.incremental_alter_configs, _incremental_answer)
    return await ctx.submit(handler, request)


async def _decide_legacy(ctx: Context, request: legacy.AlterConfigsRequest) -> Any:
    return await ctx.submit(_permitted(ctx, QuorumController.alter_configs, _legacy_answer), request)


def _permitted(ctx: Context, handler: ControllerHandler, refusal: Callable[[Any, ErrorCode, None], Any]) -> ControllerHandler:
    """Changes the resources for which the client has ALTER_CONFIGS. Others are refused before their changes are looked at."""
    if ctx.node.access is None:
        return handler

    def decide(controller: QuorumController, request: Any, now_ms: int) -> ControllerResult:
        refused = [_refusal(ctx, resource, refusal) for resource in request.resources]
        permitted = [resource for resource, answer in zip(request.resources, refused, strict=True) if answer is None]
        result = handler(controller, type(request)(resources=permitted, validate_only=request.validate_only), now_ms)
        decided = iter(result.response.responses)
        result.response.responses = [answer or next(decided) for answer in refused]
        return result

    return decide


def _refusal(ctx: Context, resource: Any, refusal: Callable[[Any, ErrorCode, None], Any]) -> Any:
    kind, name = config_resource(resource.resource_type, resource.resource_name)
    changes = (config.name for config in resource.configs)
    may = allows_changes(ctx, AclOperation.ALTER_CONFIGS, kind, name, changes)
    return None if may else refusal(resource, DENIED[kind], None)


def _check_may_change_levels(ctx: Context) -> None:
    """KafkaError CLUSTER_AUTHORIZATION_FAILED. A controller's loggers need CLUSTER_ACTION, as in Apache Kafka."""
    on_controller = isinstance(ctx.node, ControllerSide)
    require_on_cluster(ctx, AclOperation.CLUSTER_ACTION if on_controller else AclOperation.ALTER_CONFIGS)


def _incremental_answer(
    resource: incremental.AlterConfigsResource, code: ErrorCode, message: str | None
) -> incremental.AlterConfigsResourceResponse:
    return incremental.AlterConfigsResourceResponse(code, message, resource.resource_type, resource.resource_name)


def _legacy_answer(
    resource: legacy.AlterConfigsResource, code: ErrorCode, message: str | None
) -> legacy.AlterConfigsResourceResponse:
    return legacy.AlterConfigsResourceResponse(code, message, resource.resource_type, resource.resource_name)


def list_config_resources(ctx: Context, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    """Sent by kafka-configs and admin clients: the resources whose settings can be described.

    v0 (then called ListClientMetricsResources) lists client metrics only; v1 names the types wanted, none for all. Error:
    UNSUPPORTED_VERSION for an unknown type.
    """
    wanted = _LISTED if not request.resource_types else tuple(dict.fromkeys(request.resource_types))
    if ctx.api_version == 0:
        wanted = (CLIENT_METRICS_RESOURCE,)
    if not set(wanted) <= set(_LISTED):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    resources = [ConfigResource(resource_name=name, resource_type=kind) for kind in wanted for name in _names(ctx.image, kind)]
    return ListConfigResourcesResponse(config_resources=resources)


def _names(image: ClusterImage, kind: int) -> Sequence[str]:
    if kind == TOPIC_RESOURCE:
        return list(image.topics.by_name)
    if kind in (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE):
        return [str(broker.id) for broker in image.brokers.values() if not broker.fenced]
    return [name for resource_type, name in image.configs if resource_type == kind]


def _check_is_this_broker(ctx: Context, resource_type: int, name: str) -> None:
    """Only the broker itself knows which settings it accepts, so the request must be sent to it. A controller accepts it from
    any broker. A client without the permission learns only that."""
    if isinstance(ctx.node, ControllerSide):
        return
    if resource_type != BROKER_RESOURCE or not name or (name.isdecimal() and int(name) == ctx.node.node_id):
        return
    require_on_cluster(ctx, AclOperation.ALTER_CONFIGS)
    if not name.isdecimal():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"'{name}' is not a node id: name the broker by its number")
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"This is broker {ctx.node.node_id}: send the change to broker {name}")


def _after_changes(ctx: Context, resource: incremental.AlterConfigsResource) -> dict[str, str]:
    """The dynamic settings of this broker, or of all brokers, with what is set and deleted."""
    if resource.resource_type != BROKER_RESOURCE:
        return {}
    after = dict(ctx.image.configs.get((BROKER_RESOURCE, resource.resource_name), {}))
    for change in resource.configs:
        if change.config_operation == AlterConfigOp.SET and change.value is not None:
            after[change.name] = change.value
        elif change.config_operation == AlterConfigOp.DELETE:
            after.pop(change.name, None)
        elif change.config_operation == AlterConfigOp.APPEND and change.name == REPORTERS:
            after[change.name] = change.value or ""  # of classes none can be loaded, whatever they are appended to
    return after


async def _check_change(ctx: Context, resource_type: int, name: str, after: Mapping[str, str]) -> None:
    """KafkaError INVALID_REQUEST for settings that this broker could not have while it runs: only the broker knows its file and
    its stores. The controller decides the rest, also whether the client may change anything."""
    if resource_type != BROKER_RESOURCE or isinstance(ctx.node, ControllerSide):
        return
    node = cast(BrokerContext, ctx).node
    kind, known = config_resource(resource_type, name)
    if not allows(ctx, AclOperation.ALTER_CONFIGS, kind, known, quiet=True):
        return
    before = ctx.image.configs.get((BROKER_RESOURCE, name), {})
    try:
        if (refused := OptionRules(node.config).problem(resource_type, name, after)) is not None:
            raise KafkaError(*refused)
        check_change(node.config, after, before, cluster_wide=not name)
        if name and node.tls is not None and any(each.startswith("listener.name.") for each in after):
            tls = node.tls
            await node.runtime.run_blocking(lambda: tls.check(after))
    except ConfigError as problem:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(problem)) from None


def _change_levels(ctx: Context, resource: incremental.AlterConfigsResource, *, validate_only: bool) -> None:
    name = resource.resource_name
    if not name.isdecimal():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"'{name}' is not a node id: name the node by its number")
    if int(name) != ctx.node.node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"This is node {ctx.node.node_id}: send the change to node {name}")
    changes = [_level_change(each) for each in resource.configs]
    if len({each.logger for each in changes}) < len(changes):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    loggers.check(changes)
    if not validate_only:
        loggers.change(changes)


def _level_change(config: incremental.AlterableConfig) -> LevelChange:
    if config.config_operation == AlterConfigOp.DELETE:
        return LevelChange(config.name, None)
    if config.config_operation != AlterConfigOp.SET:
        known = {each.value: each.name for each in AlterConfigOp}
        operation = known.get(config.config_operation, f"Unknown ({config.config_operation})")
        message = f"{operation} operation is not allowed for the BROKER_LOGGER resource"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    if config.value is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {config.name}")
    return LevelChange(config.name, config.value)
