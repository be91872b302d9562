"""Brokers, topics and partitions from the cluster's metadata, and partition offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidelog.client.calls import Ask, Call, Each, Node, Partition, VersionOf
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import NO_BROKER, ZERO_UUID
from tidelog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tidelog.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from tidelog.client.admin.results import PartitionDescription, TopicDescription

TOPICS_AS_STRUCTURES_FROM = 6
"""From this version on DeleteTopics takes structures instead of names."""


def check(code: int, message: str | None = None) -> None:
    """KafkaError for a response's error code, with the broker's message or our own."""
    if code != ErrorCode.NONE:
        known = ErrorCode(code)
        raise KafkaError(known, message or known.text)


def metadata(topics: Iterable[str] | None) -> Call[MetadataResponse]:
    """The brokers, and these topics or all of them (None). No topic is created. KafkaError if the whole request failed."""
    asked = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
    response: MetadataResponse = yield Ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False))
    check(response.error_code)
    return response


def brokers() -> Call[dict[int, MetadataResponseBroker]]:
    """The live brokers, by id."""
    response = yield from metadata([])
    return {broker.node_id: broker for broker in sorted(response.brokers, key=lambda each: each.node_id)}


def topics(names: Iterable[str] | None) -> Call[list[MetadataResponseTopic]]:
    """These topics, or all of them, by name; unknown ones have an error code."""
    response = yield from metadata(names)
    return sorted(response.topics, key=lambda topic: topic.name or "")


def leaders(names: Iterable[str]) -> Call[dict[Partition, int]]:
    """The leader of each partition that has one."""
    found = yield from topics(sorted(set(names)))
    return {
        (topic.name or "", partition.partition_index): partition.leader_id
        for topic in found
        for partition in topic.partitions
        if partition.leader_id != NO_BROKER
    }


def list_offsets(
    wanted: Mapping[Partition, int], isolation_level: int = 0, timeout_ms: int = 60_000
) -> Call[dict[Partition, Any]]:
    """The answer for each partition, for a timestamp in ms or a special one; each leader gets one request.

    Partitions without a leader are omitted. ``timeout_ms``: how long a broker may look for offsets in remote storage (KIP-1075).
    """
    by_partition = yield from leaders(topic for topic, _ in wanted)
    by_leader: dict[int, dict[str, list[ListOffsetsPartition]]] = {}
    for (topic, index), timestamp in wanted.items():
        leader = by_partition.get((topic, index))
        if leader is not None:
            part = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
            by_leader.setdefault(leader, {}).setdefault(topic, []).append(part)
    answers = yield Each([_offsets_at(leader, parts, isolation_level, timeout_ms) for leader, parts in by_leader.items()])
    return {
        (topic.name, part.partition_index): part for answer in answers for topic in answer.topics for part in topic.partitions
    }


def _offsets_at(leader: int, parts: Mapping[str, list[ListOffsetsPartition]], isolation_level: int, timeout_ms: int) -> Call[Any]:
    rows = [ListOffsetsTopic(name=name, partitions=found) for name, found in parts.items()]
    request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=rows, timeout_ms=timeout_ms)
    return (yield Ask(request, Node(leader)))


def describe(names: Iterable[str] | None) -> Call[list[TopicDescription]]:
    """These topics, or all of them (None), by name. KafkaError (UNKNOWN_TOPIC_OR_PARTITION) if one of them does not exist."""
    from tidelog.client.admin.results import TopicDescription

    found = yield from topics(names)
    for topic in found:
        check(topic.error_code, f"Topic {topic.name}: {ErrorCode(topic.error_code).text}")
    return [
        TopicDescription(
            topic.name or "",
            bytes(topic.topic_id or ZERO_UUID),
            topic.is_internal,
            partitions_of(topic),
        )
        for topic in found
    ]


def partitions_of(topic: MetadataResponseTopic) -> tuple[PartitionDescription, ...]:
    """The partitions of a topic in an answer, by number."""
    from tidelog.client.admin.results import PartitionDescription

    return tuple(
        PartitionDescription(
            part.partition_index,
            None if part.leader_id == NO_BROKER else part.leader_id,
            part.leader_epoch,
            tuple(part.replica_nodes),
            tuple(part.isr_nodes),
            tuple(part.offline_replicas),
        )
        for part in sorted(topic.partitions, key=lambda each: each.partition_index)
    )


def create(
    name: str,
    partitions: int = -1,
    replication_factor: int = -1,
    configs: Mapping[str, str] | None = None,
    *,
    assignment: Sequence[Sequence[int]] | None = None,
    validate_only: bool = False,
    timeout_ms: int = 60_000,
) -> Call[bytes]:
    """Create a topic and return its id. -1: the cluster's default. KafkaError, such as TOPIC_ALREADY_EXISTS."""
    from tidelog.protocol.messages.create_topics import (
        CreatableReplicaAssignment,
        CreatableTopic,
        CreatableTopicConfig,
        CreateTopicsRequest,
    )

    topic = CreatableTopic(
        name=name,
        num_partitions=partitions if assignment is None else -1,
        replication_factor=replication_factor if assignment is None else -1,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in enumerate(assignment or ())
        ],
    )
    response = yield Ask(CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms, validate_only=validate_only))
    (result,) = response.topics
    check(result.error_code, result.error_message)
    return bytes(result.topic_id or ZERO_UUID)


def delete(name: str, *, timeout_ms: int = 60_000) -> Call[None]:
    """Delete a topic with its records. KafkaError, such as UNKNOWN_TOPIC_OR_PARTITION or TOPIC_DELETION_DISABLED."""
    from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

    if (yield VersionOf(DeleteTopicsRequest.API_KEY)) >= TOPICS_AS_STRUCTURES_FROM:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=timeout_ms)
    else:
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=timeout_ms)
    (result,) = (yield Ask(request)).responses
    check(result.error_code, result.error_message)


def create_partitions(
    name: str, count: int, *, assignment: Sequence[Sequence[int]] | None = None, timeout_ms: int = 60_000
) -> Call[None]:
    """Raise a topic to ``count`` partitions in total; ``assignment``: the replicas of the new ones. KafkaError
    (INVALID_PARTITIONS)."""
    from tidelog.protocol.messages.create_partitions import (
        CreatePartitionsAssignment,
        CreatePartitionsRequest,
        CreatePartitionsTopic,
    )

    placed = None if assignment is None else [CreatePartitionsAssignment(broker_ids=list(each)) for each in assignment]
    topic = CreatePartitionsTopic(name=name, count=count, assignments=placed)
    (result,) = (yield Ask(CreatePartitionsRequest(topics=[topic], timeout_ms=timeout_ms))).results
    check(result.error_code, result.error_message)
