"""Brokers, topics and partitions as a cluster describes them, and the offsets of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidelog.client.calls import Ask, Call, Each, Node
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import NO_BROKER
from tidelog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tidelog.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)

Partition = tuple[str, int]
"""Topic and partition."""


def check(code: int, message: str | None = None) -> None:
    """KafkaError for an error code of a response, with the broker's words or ours."""
    if code != ErrorCode.NONE:
        known = ErrorCode(code)
        raise KafkaError(known, message or known.text)


def metadata(topics: Iterable[str] | None) -> Call[MetadataResponse]:
    """The brokers, and these topics or all of them (None). No topic is created. KafkaError when the whole request failed."""
    asked = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
    response: MetadataResponse = yield Ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False))
    check(response.error_code)
    return response


def brokers() -> Call[dict[int, MetadataResponseBroker]]:
    """The brokers that are there, by id."""
    response = yield from metadata([])
    return {broker.node_id: broker for broker in sorted(response.brokers, key=lambda each: each.node_id)}


def topics(names: Iterable[str] | None) -> Call[list[MetadataResponseTopic]]:
    """These topics, or all of them, by name; those that are not there have an error code."""
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
    """The answer for each partition, by a timestamp in ms or one of the special ones; each leader is asked once.

    Partitions without a leader are missing. ``timeout_ms``: how long a broker may look for offsets in remote storage (KIP-1075).
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
