"""Dynamic configs of topics, brokers and the cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum

from tidelog.controller.result import ControllerResult, Decision
from tidelog.controller.topic_names import name_problem
from tidelog.controller.topics import Refused
from tidelog.metadata.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ClusterImage,
    ConfigResource,
)
from tidelog.metadata.records import MetadataRecord
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages import alter_configs as legacy
from tidelog.protocol.messages import incremental_alter_configs as incremental
from tidelog.protocol.messages.clear_elr_record import ClearElrRecord
from tidelog.protocol.messages.config_record import ConfigRecord
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord

MIN_IN_SYNC = "min.insync.replicas"
LONGEST_VALUE = 32_767
"""Bytes of a string in Kafka's protocol and records."""
KNOWN_RESOURCES = frozenset({TOPIC_RESOURCE, BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE})


class AlterConfigOp(IntEnum):
    """The operation on one config in IncrementalAlterConfigs (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def incremental_alter_configs(decision: Decision, request: incremental.IncrementalAlterConfigsRequest) -> ControllerResult:
    """Applies each resource by itself, all of its changes or none.

    Errors per resource: UNKNOWN_TOPIC_OR_PARTITION, INVALID_CONFIG (a name or value that the option table refuses, APPEND on an
    option that is not a list), INVALID_REQUEST (unknown type or operation, a config twice, a broker id that is not a number).
    """
    responses: list[incremental.AlterConfigsResourceResponse] = []
    records: list[MetadataRecord] = []
    named = Counter((each.resource_type, each.resource_name) for each in request.resources)
    for resource in request.resources:
        code, message = ErrorCode.NONE, None
        try:
            _check_once(named, resource.resource_type, resource.resource_name)
            records += _incremental(decision, resource)
        except Refused as refused:
            code, message = refused.code, refused.message
        responses.append(
            incremental.AlterConfigsResourceResponse(
                error_code=code, error_message=message, resource_type=resource.resource_type, resource_name=resource.resource_name
            )
        )
    records += _forgotten_eligibility(decision, records)
    response = incremental.IncrementalAlterConfigsResponse(responses=responses)
    return ControllerResult(response) if request.validate_only else ControllerResult.of(response, records)


def alter_configs(decision: Decision, request: legacy.AlterConfigsRequest) -> ControllerResult:
    """AlterConfigs, the old form: settings that the request does not name return to their defaults. Errors as in
    ``incremental_alter_configs``."""
    responses: list[legacy.AlterConfigsResourceResponse] = []
    records: list[MetadataRecord] = []
    named = Counter((each.resource_type, each.resource_name) for each in request.resources)
    for resource in request.resources:
        code, message = ErrorCode.NONE, None
        try:
            _check_once(named, resource.resource_type, resource.resource_name)
            records += _replacing(decision, resource)
        except Refused as refused:
            code, message = refused.code, refused.message
        responses.append(
            legacy.AlterConfigsResourceResponse(
                error_code=code, error_message=message, resource_type=resource.resource_type, resource_name=resource.resource_name
            )
        )
    records += _forgotten_eligibility(decision, records)
    response = legacy.AlterConfigsResponse(responses=responses)
    return ControllerResult(response) if request.validate_only else ControllerResult.of(response, records)


def _check_once(named: Counter[ConfigResource], resource_type: int, resource_name: str) -> None:
    if named[resource_type, resource_name] > 1:
        raise Refused(
            ErrorCode.INVALID_REQUEST, f"Resource '{resource_name}' is in the request twice: merge its changes into one entry."
        )


def _incremental(decision: Decision, request: incremental.AlterConfigsResource) -> list[ConfigRecord]:
    resource = (request.resource_type, request.resource_name)
    check_resource(decision.image, resource)
    before = decision.image.configs.get(resource, {})
    after = dict(before)
    named: list[str] = []
    for change in request.configs:
        if change.name in named:
            raise Refused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        named.append(change.name)
        _apply(decision, request.resource_type, after, change)
    _check_settings(decision, resource, after)
    return _checked_records(decision, _records(resource, before, after, named))


def _apply(decision: Decision, resource_type: int, settings: dict[str, str], change: incremental.AlterableConfig) -> None:
    try:
        operation = AlterConfigOp(change.config_operation)
    except ValueError as error:
        message = f"Unknown operation type {change.config_operation} for config {change.name}"
        raise Refused(ErrorCode.INVALID_REQUEST, message) from error
    if operation is AlterConfigOp.DELETE:
        settings.pop(change.name, None)
        return
    if change.value is None:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {change.name}")
    if operation is AlterConfigOp.SET:
        settings[change.name] = change.value
        return
    if not decision.rules.is_list(resource_type, change.name):
        message = f"Can't {operation.name} to key {change.name} because its type is not LIST."
        raise Refused(ErrorCode.INVALID_CONFIG, message)
    present = settings[change.name] if change.name in settings else decision.rules.default(resource_type, change.name)
    items = [item for item in present.split(",") if item]
    wanted = change.value.split(",")
    if operation is AlterConfigOp.APPEND:
        items += [item for item in wanted if item not in items]
    else:
        items = [item for item in items if item not in wanted]
    settings[change.name] = ",".join(items)


def _replacing(decision: Decision, request: legacy.AlterConfigsResource) -> list[ConfigRecord]:
    resource = (request.resource_type, request.resource_name)
    check_resource(decision.image, resource)
    before = decision.image.configs.get(resource, {})
    after: dict[str, str] = {}
    for config in request.configs:
        if config.name in after:
            raise Refused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        if config.value is None:
            raise Refused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {config.name}")
        after[config.name] = config.value
    _check_settings(decision, resource, after)
    return _checked_records(decision, _records(resource, before, after, list(after)))


def check_resource(image: ClusterImage, resource: ConfigResource) -> None:
    """Refused unless the resource exists and can have settings."""
    resource_type, name = resource
    if resource_type not in KNOWN_RESOURCES:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")
    if resource_type == TOPIC_RESOURCE:
        if not name:
            raise Refused(
                ErrorCode.INVALID_REQUEST, "Topics have no default resource: name a topic, or set the broker's default."
            )
        if (problem := name_problem(name)) is not None:
            raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        if name not in image.topics.by_name:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    elif resource_type == BROKER_RESOURCE:
        if name and not name.isdecimal():
            raise Refused(ErrorCode.INVALID_REQUEST, f"'{name}' is not a node id: name the broker by its number")
    elif not name:
        is_group = resource_type == GROUP_RESOURCE
        message = (
            "Groups have no default resource: name a group, or set the broker's default."
            if is_group
            else "Subscription name can't be empty"
        )
        raise Refused(ErrorCode.INVALID_REQUEST, message)


def _checked_records(decision: Decision, records: list[ConfigRecord]) -> list[ConfigRecord]:
    """Checks changes that affect leader eligibility: with ELR (KIP-966) ``min.insync.replicas`` must be the same for all
    brokers."""
    for record in records:
        if not decision.elr_enabled or record.name != MIN_IN_SYNC or record.resource_type != BROKER_RESOURCE:
            continue
        if record.resource_name:
            message = f"Broker-level {MIN_IN_SYNC} cannot be altered while ELR is enabled."
            raise Refused(ErrorCode.INVALID_CONFIG, message)
        if record.value is None:
            message = f"Cluster-level {MIN_IN_SYNC} cannot be removed while ELR is enabled."
            raise Refused(ErrorCode.INVALID_CONFIG, message)
    return records


def _forgotten_eligibility(decision: Decision, records: Sequence[MetadataRecord]) -> list[MetadataRecord]:
    """Clears eligible replicas after ``min.insync.replicas`` changed: they may lack records that are acknowledged from now on.

    Partitions without a leader keep theirs: nothing is acknowledged there, and without eligible replicas only an unclean election
    could help. Kafka clears those as well; here they are written again. With a minimum of 1 only one of them is kept: it will
    acknowledge alone, and then no other replica may be eligible.
    """
    changed = [each for each in records if isinstance(each, ConfigRecord) and each.name == MIN_IN_SYNC]
    if not decision.elr_enabled or not changed:
        return []
    names = ["" if each.resource_type == BROKER_RESOURCE else each.resource_name for each in changed]
    return _cleared(decision, names, keep_all=all(each.value is not None and int(each.value) > 1 for each in changed))


def eligibility_anew(decision: Decision) -> list[MetadataRecord]:
    """Clears eligibility when ELR is switched on or off. Without ELR, eligible replicas of a partition with a leader may miss
    records that the leader acknowledges alone; if they were kept, they would count again when ELR is switched on."""
    return _cleared(decision, [""], keep_all=True) if decision.partitions.any_eligible else []


def _cleared(decision: Decision, names: Sequence[str], *, keep_all: bool) -> list[MetadataRecord]:
    """Clears the eligible replicas of these topics ("" for all), except for partitions without a leader."""
    written: list[MetadataRecord] = [ClearElrRecord(topic_name=name) for name in names]
    for topic_id, number in decision.partitions.without_leader:
        topic = decision.image.topics.by_id[topic_id]
        partition = topic.partitions[number]
        if ("" in names or topic.name in names) and (partition.elr or partition.last_known_elr):
            one = [each for each in partition.last_known_elr if each in partition.elr] or list(partition.elr)
            written.append(
                PartitionChangeRecord(
                    partition_id=number,
                    topic_id=topic_id,
                    eligible_leader_replicas=list(partition.elr) if keep_all else one[:1],
                    last_known_elr=list(partition.last_known_elr),
                )
            )
    return written


def min_in_sync_for_all(image: ClusterImage, static: int) -> list[MetadataRecord]:
    """What ELR requires before it may be enabled: one ``min.insync.replicas`` for the cluster and none for single brokers."""
    records: list[MetadataRecord] = []
    if MIN_IN_SYNC not in image.cluster_configs:
        records.append(ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name=MIN_IN_SYNC, value=str(static)))
    for (resource_type, name), settings in image.configs.items():
        if resource_type == BROKER_RESOURCE and name and MIN_IN_SYNC in settings:
            records.append(ConfigRecord(resource_type=resource_type, resource_name=name, name=MIN_IN_SYNC, value=None))
    return records


def _check_settings(decision: Decision, resource: ConfigResource, settings: Mapping[str, str]) -> None:
    problem = decision.rules.problem(resource[0], resource[1], settings)
    if problem is not None:
        raise Refused(*problem)
    for name, value in settings.items():
        if len(value.encode()) > LONGEST_VALUE:  # APPEND can make a list that no record can hold
            message = f"The value of {name} would have {len(value.encode())} bytes; {LONGEST_VALUE} are the most there can be."
            raise Refused(ErrorCode.INVALID_CONFIG, message)


def _records(
    resource: ConfigResource, before: Mapping[str, str], after: Mapping[str, str], named: Sequence[str]
) -> list[ConfigRecord]:
    """Records of changed settings, then of removed ones. A broker's settings are written even if unchanged, which makes it
    reload them."""
    resource_type, resource_name = resource
    records: list[ConfigRecord] = []
    for name in named:
        value = after.get(name)
        if value is not None and (before.get(name) != value or resource_type == BROKER_RESOURCE):
            records.append(ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value))
    for name in before:
        if name not in after:
            records.append(ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=None))
    return records
