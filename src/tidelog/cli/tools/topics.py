"""``tidelog topics``, also installed as ``kafka-topics``: the flags, words and columns of Kafka's tool of that name."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import click

from tidelog.cli import columns, entry, refusal
from tidelog.cli.broker_connection import BrokerConnection
from tidelog.cli.connection_options import bootstrap_option, command_config_option
from tidelog.cli.refusal import CannotConnect, required
from tidelog.cli.tools import topic_choice
from tidelog.cli.tools.eligible_leaders import PAGE_PARTITIONS, eligible_leaders
from tidelog.cli.tools.eligible_leaders import columns as eligible_columns
from tidelog.client.connection import UnsupportedByBroker
from tidelog.config.describe import Source
from tidelog.config.topic_warnings import warnings
from tidelog.metadata.image import TOPIC_RESOURCE
from tidelog.model.errors import ConfigError, ErrorCode, ProtocolViolation
from tidelog.model.ids import INTERNAL_TOPICS, NO_BROKER, uuid_from_text, uuid_to_text
from tidelog.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tidelog.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tidelog.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

COLLISION_WARNING = (
    "WARNING: Metrics write '.' in a topic's name as '_', so two topics that differ only there share their metrics. "
    "Use one of the two characters in all names."
)
ONLY_WITH = {
    "partitions": {"create", "alter"},
    "replica_assignment": {"create", "alter"},
    "replication_factor": {"create"},
    "config": {"create"},
    "if_not_exists": {"create"},
    "if_exists": {"alter", "delete", "describe"},
    "topic_id": {"describe"},
    "yes": {"alter", "delete"},
    "partition_size_limit_per_response": {"describe"},
}
"""The actions that accept each flag."""
_BY_ID_FROM = 6
"""From this version on DeleteTopics takes structures instead of names."""


class Failed(Exception):
    """The command cannot be executed; the text follows the prefix of Kafka's tool."""


@dataclass(frozen=True, slots=True)
class Options:
    """The flags of one call."""

    topic: str | None
    topic_id: str | None
    partitions: int | None
    replication_factor: int | None
    replica_assignment: str | None
    config: tuple[str, ...]
    if_not_exists: bool
    if_exists: bool
    exclude_internal: bool
    topics_with_overrides: bool
    under_replicated: bool
    unavailable: bool
    under_min_isr: bool
    at_min_isr: bool
    yes: bool = False
    output: str = "table"
    partition_size_limit_per_response: int | None = None


def _no_delete_config(ctx: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        refusal.usage(
            f"--delete-config ended with Apache Kafka 4.0. Use kafka-configs --alter --topic NAME --delete-config {value}"
        )


@click.command("topics", context_settings={"help_option_names": ["-h", "--help"]})
@refusal.zookeeper_option
@bootstrap_option
@command_config_option
@click.option("--create", is_flag=True, help="Create a topic.")
@click.option("--list", is_flag=True, help="List the names of all topics.")
@click.option("--describe", is_flag=True, help="Show topics and their partitions.")
@click.option("--delete", is_flag=True, help="Delete topics.")
@click.option("--alter", is_flag=True, help="Give a topic more partitions.")
@click.option("--topic", help="The topic; except with --create, a regular expression unless it is a topic's name.")
@click.option("--topic-id", help="With --describe: the topic by its id.")
@click.option("--partitions", type=click.IntRange(min=1), help="How many partitions; without it, as the cluster is set.")
@click.option("--replication-factor", type=click.IntRange(1, 32767), help="How many replicas; without it, as the cluster is set.")
@click.option("--replica-assignment", metavar="B:B,B:B", help="Brokers by hand: replicas joined by colons, partitions by commas.")
@click.option("--config", multiple=True, metavar="NAME=VALUE", help="With --create: a setting of the topic.")
@click.option("--if-not-exists", is_flag=True, help="With --create: no error when the topic is there.")
@click.option("--if-exists", is_flag=True, help="With --alter, --delete, --describe: no error when the topic is not there.")
@click.option("--exclude-internal", is_flag=True, help="Leave Kafka's internal topics out.")
@click.option("--topics-with-overrides", is_flag=True, help="Only topics with settings of their own.")
@click.option(
    "--under-replicated-partitions", "under_replicated", is_flag=True, help="Only partitions that lack replicas in sync."
)
@click.option("--unavailable-partitions", "unavailable", is_flag=True, help="Only partitions without an available leader.")
@click.option("--under-min-isr-partitions", "under_min_isr", is_flag=True, help="Only partitions below min.insync.replicas.")
@click.option("--at-min-isr-partitions", "at_min_isr", is_flag=True, help="Only partitions at min.insync.replicas.")
@click.option(
    "--partition-size-limit-per-response",
    type=click.IntRange(min=1),
    help=f"With --describe: partitions in one response of DescribeTopicPartitions. [{PAGE_PARTITIONS}]",
)
@click.option("--delete-config", hidden=True, expose_value=False, callback=_no_delete_config)
@topic_choice.yes_option
@columns.output_option
def command(bootstrap_server: str | None, command_config: str | None, **flags: object) -> None:
    """Create, list, describe and delete topics."""
    chosen = [action for action in ACTIONS if flags.pop(action)]
    if len(chosen) != 1:
        raise click.UsageError("Give one action: --create, --alter, --delete, --describe or --list")
    (action,) = chosen
    options = Options(**flags)  # type: ignore[arg-type]
    if action in {"create", "alter", "delete"} and options.topic is None:
        raise click.UsageError(f'Missing required argument "[topic]" for --{action}')
    _check_flags(action, flags)
    try:
        with BrokerConnection(required(bootstrap_server), command_config) as broker:
            ACTIONS[action](broker, options)
    except (Failed, CannotConnect, ConfigError, UnsupportedByBroker, ProtocolViolation) as error:
        print(f"Error while executing topic command : {error}", file=sys.stderr)
        sys.exit(1)


def _check_flags(action: str, flags: dict[str, object]) -> None:
    """Refuses flags that the action, or another flag, makes meaningless."""
    for flag, actions in ONLY_WITH.items():
        if flags[flag] and action not in actions:
            raise click.UsageError(f"--{flag.replace('_', '-')} does not belong to --{action}: leave it out")
    if action == "create" and flags["replica_assignment"] is not None:
        for flag in ("partitions", "replication_factor"):
            if flags[flag] is not None:
                raise click.UsageError(f"--replica-assignment says it all: leave out --{flag.replace('_', '-')}")


def create(broker: BrokerConnection, options: Options) -> None:
    assert options.topic is not None
    if "." in options.topic or "_" in options.topic:
        print(COLLISION_WARNING)
    topic = CreatableTopic(
        name=options.topic,
        num_partitions=options.partitions or -1,
        replication_factor=options.replication_factor or -1,
        configs=[_setting(text) for text in options.config],
    )
    if options.replica_assignment is not None:
        topic.num_partitions = topic.replication_factor = -1
        topic.assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in enumerate(_assignment(options.replica_assignment))
        ]
    response = broker.ask(CreateTopicsRequest(topics=[topic], timeout_ms=broker.timeout_ms))
    for result in response.topics:
        if result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and options.if_not_exists:
            return
        _check(result.error_code, result.error_message)
        for text in warnings(result.replication_factor, {each.name: each.value for each in result.configs or []}):
            print(f"WARNING: {text}", file=sys.stderr)
    print(f"Created topic {options.topic}.")


def list_topics(broker: BrokerConnection, options: Options) -> None:
    names = [topic.name or "" for topic in _selected(broker, options)]
    if options.output == "json":
        print(columns.as_json(names))
    else:
        print("".join(f"{name}\n" for name in names), end="")


def describe(broker: BrokerConnection, options: Options) -> None:
    topics = _selected(broker, options)
    _must_exist(topics, options)
    settings = _settings(broker, [topic.name or "" for topic in topics]) if topics else {}
    page = options.partition_size_limit_per_response or PAGE_PARTITIONS
    eligible = eligible_leaders(broker, [topic.name or "" for topic in topics], page) if options.output != "json" else None
    only_partitions = options.under_replicated or options.unavailable or options.under_min_isr or options.at_min_isr
    described = []
    for topic in topics:
        own = settings[topic.name or ""]
        shown = {name: value for name, (value, source) in own.items() if source != Source.DEFAULT}
        if options.topics_with_overrides and not any(source == Source.TOPIC for _, source in own.values()):
            continue
        min_isr = int(own["min.insync.replicas"][0] or 1)
        partitions = [
            partition
            for partition in sorted(topic.partitions, key=lambda each: each.partition_index)
            if not options.topics_with_overrides and (not only_partitions or _matches(partition, options, min_isr))
        ]
        if options.output == "json":
            described.append(_as_values(topic, shown, partitions))
            continue
        if not only_partitions:
            print(
                f"Topic: {topic.name}\tTopicId: {uuid_to_text(topic.topic_id)}\tPartitionCount: {len(topic.partitions)}"
                f"\tReplicationFactor: {len(topic.partitions[0].replica_nodes)}"
                f"\tConfigs: {','.join(f'{name}={value}' for name, value in shown.items())}"
            )
        for partition in partitions:
            line = _partition_line(topic.name or "", partition)
            print(line + eligible_columns(eligible, (topic.name or "", partition.partition_index)))
    if options.output == "json":
        print(columns.as_json(described))


def _as_values(
    topic: MetadataResponseTopic, configs: dict[str, str | None], partitions: list[MetadataResponsePartition]
) -> dict[str, object]:
    """The output of ``--describe`` as values; a partition without a leader has None."""
    return {
        "topic": topic.name,
        "topicId": uuid_to_text(topic.topic_id),
        "partitionCount": len(topic.partitions),
        "replicationFactor": len(topic.partitions[0].replica_nodes),
        "configs": configs,
        "partitions": [
            {
                "partition": partition.partition_index,
                "leader": None if partition.leader_id == NO_BROKER else partition.leader_id,
                "replicas": partition.replica_nodes,
                "isr": partition.isr_nodes,
            }
            for partition in partitions
        ],
    }


def delete(broker: BrokerConnection, options: Options) -> None:
    topics = _selected(broker, options)
    _must_exist(topics, options)
    if not topics:
        return
    names = [topic.name or "" for topic in topics]
    topic_choice.confirm("Delete", options.topic or "", names, yes=options.yes)
    request = DeleteTopicsRequest(timeout_ms=broker.timeout_ms)
    if broker.version_of(DeleteTopicsRequest.API_KEY) >= _BY_ID_FROM:
        request.topics = [DeleteTopicState(name=name) for name in names]
    else:
        request.topic_names = names
    results = broker.ask(request).responses
    _changed("Deleted topic", [(result.name or "", result.error_code, result.error_message) for result in results])


def alter(broker: BrokerConnection, options: Options) -> None:
    if options.partitions is None:
        raise click.UsageError("--alter needs --partitions")
    topics = _selected(broker, options)
    _must_exist(topics, options)
    names = [topic.name or "" for topic in topics]
    topic_choice.confirm(f"Give {options.partitions} partitions to", options.topic or "", names, yes=options.yes)
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(
                name=topic.name or "", count=options.partitions, assignments=_of_new(options, len(topic.partitions))
            )
            for topic in topics
        ],
        timeout_ms=broker.timeout_ms,
    )
    if topics:
        results = broker.ask(request).results
        _changed("Altered topic", [(result.name, result.error_code, result.error_message) for result in results])


def _changed(what: str, results: Sequence[tuple[str, int, str | None]]) -> None:
    """Prints a line for each changed topic; Failed lists the errors of the others."""
    refused = [
        f"{name}: {message or ErrorCode(code).name}" if len(results) > 1 else message or ErrorCode(code).name
        for name, code, message in results
        if code != ErrorCode.NONE
    ]
    print("".join(f"{what} {name}.\n" for name, code, _ in results if code == ErrorCode.NONE), end="")
    if refused:
        sys.stdout.flush()
        raise Failed("\n".join(refused))


ACTIONS = {"create": create, "list": list_topics, "describe": describe, "delete": delete, "alter": alter}


def _selected(broker: BrokerConnection, options: Options) -> list[MetadataResponseTopic]:
    """The topics that the flags select, by name."""
    if options.topic_id is not None:
        try:
            topic_id = uuid_from_text(options.topic_id)
        except ValueError as error:
            raise Failed(f"Topic id {options.topic_id!r} is not valid: {error}") from error
        asked = [MetadataRequestTopic(topic_id=topic_id, name=None)]
        response: MetadataResponse = broker.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False))
        return [topic for topic in response.topics if topic.error_code == ErrorCode.NONE]
    response = broker.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False))
    _check(response.error_code, None)
    wanted = ".*" if options.topic is None else options.topic
    try:
        meant = topic_choice.meant(wanted, [topic.name or "" for topic in response.topics])
    except re.error as error:
        raise Failed(f"The pattern {wanted} cannot be compiled: {error}") from error
    found = [
        topic for topic in response.topics if meant(topic.name or "") and not (options.exclude_internal and topic.is_internal)
    ]
    return sorted(found, key=lambda topic: topic.name or "")


def _must_exist(topics: Sequence[MetadataResponseTopic], options: Options) -> None:
    if topics or options.if_exists:
        return
    if options.topic is not None:
        hint = (
            " Use --exclude-internal only for topics of your own."
            if options.exclude_internal and options.topic in INTERNAL_TOPICS
            else ""
        )
        raise Failed(f"Topic '{options.topic}' does not exist{hint}")
    if options.topic_id is not None:
        raise Failed(f"No topic has the id '{options.topic_id}'")


def _settings(broker: BrokerConnection, names: Iterable[str]) -> dict[str, dict[str, tuple[str | None, int]]]:
    """By topic, then by name: value and source of each setting."""
    resources = [
        DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None) for name in names
    ]
    result: dict[str, dict[str, tuple[str | None, int]]] = {}
    for described in broker.ask(DescribeConfigsRequest(resources=resources)).results:
        _check(described.error_code, described.error_message)
        result[described.resource_name] = {row.name: (row.value, row.config_source) for row in described.configs}
    return result


def _matches(partition: MetadataResponsePartition, options: Options, min_isr: int) -> bool:
    in_sync, replicas = len(partition.isr_nodes), len(partition.replica_nodes)
    effective = min(min_isr, replicas)
    return (
        (options.under_replicated and in_sync < replicas)
        or (options.unavailable and partition.leader_id == NO_BROKER)
        or (options.under_min_isr and in_sync < effective)
        or (options.at_min_isr and in_sync == effective)
    )


def _partition_line(topic: str, partition: MetadataResponsePartition) -> str:
    leader = "none" if partition.leader_id == NO_BROKER else str(partition.leader_id)
    replicas = ",".join(map(str, partition.replica_nodes))
    in_sync = ",".join(map(str, partition.isr_nodes))
    return f"\tTopic: {topic}\tPartition: {partition.partition_index}\tLeader: {leader}\tReplicas: {replicas}\tIsr: {in_sync}"


def _setting(text: str) -> CreatableTopicConfig:
    name, equals, value = text.partition("=")
    if not equals:
        raise Failed(f"--config takes name=value; {text} has no equals sign")
    return CreatableTopicConfig(name=name.strip(), value=value.strip())


def _assignment(text: str) -> list[list[int]]:
    try:
        return [[int(broker) for broker in partition.split(":")] for partition in text.split(",")]
    except ValueError as error:
        raise Failed(f"--replica-assignment {text!r} must be broker ids, joined by colons and commas: 1:2,2:3") from error


def _of_new(options: Options, present: int) -> list[CreatePartitionsAssignment] | None:
    """The brokers of the new partitions; None lets the cluster choose. The flag lists the existing partitions as well."""
    if options.replica_assignment is None:
        return None
    return [CreatePartitionsAssignment(broker_ids=brokers) for brokers in _assignment(options.replica_assignment)[present:]]


def _check(code: int, message: str | None) -> None:
    if code != ErrorCode.NONE:
        raise Failed(message or ErrorCode(code).name)


def main() -> None:
    """``kafka-topics``."""
    entry.run(command, "kafka-topics")


if __name__ == "__main__":
    main()
