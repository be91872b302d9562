"""The cluster at one instant: brokers, and topics with their partitions, from one Metadata answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tidelog.client.admin.results import PartitionDescription
from tidelog.client.admin.topics import metadata, partitions_of
from tidelog.client.calls import Call, Partition
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import ZERO_UUID
from tidelog.protocol.messages.metadata import MetadataResponseTopic

_ABSENT: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION})


def is_clean(part: PartitionDescription) -> bool:
    """Whether it has a leader, and every replica is in sync."""
    return part.leader is not None and len(part.in_sync) >= len(part.replicas)


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic. ``error``: why its partitions are not known. ``unclean``: partitions without a leader, or with a replica out of
    sync."""

    name: str
    topic_id: bytes
    internal: bool
    partitions: tuple[PartitionDescription, ...]
    error: str | None = None
    unclean: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "unclean", sum(not is_clean(part) for part in self.partitions))

    @property
    def replication(self) -> int:
        """Replicas of the first partition."""
        return len(self.partitions[0].replicas) if self.partitions else 0


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    node_id: int
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True)
class Overview:
    """``topics`` are in the order of their names."""

    cluster_id: str | None
    brokers: Mapping[int, BrokerAddress]
    topics: Mapping[str, TopicState]

    def topic(self, name: str) -> TopicState:
        """KafkaError (UNKNOWN_TOPIC_OR_PARTITION) for one that does not exist, or that may not be described."""
        found = self.topics.get(name)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name}, or the console may not see it.")
        return found

    def each_partition(self) -> Iterator[tuple[Partition, PartitionDescription]]:
        for topic in self.topics.values():
            for part in topic.partitions:
                yield (topic.name, part.index), part

    def missing_brokers(self) -> dict[int, int]:
        """Brokers that hold replicas and are not there: how many replicas each."""
        found: dict[int, int] = {}
        for _, part in self.each_partition():
            for broker in part.replicas:
                if broker not in self.brokers:
                    found[broker] = found.get(broker, 0) + 1
        return dict(sorted(found.items()))

    @property
    def partition_count(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics.values())


def overview(names: Iterable[str] | None = None) -> Call[Overview]:
    """One Metadata request, for all topics or those of these names that there are. KafkaError."""
    answer = yield from metadata(names)
    there = (each for each in answer.topics if each.error_code not in _ABSENT)
    topics = sorted((_topic(each) for each in there), key=lambda topic: topic.name)
    brokers = sorted(answer.brokers, key=lambda each: each.node_id)
    return Overview(
        answer.cluster_id,
        {each.node_id: BrokerAddress(each.node_id, each.host, each.port, each.rack) for each in brokers},
        {topic.name: topic for topic in topics},
    )


def _topic(found: MetadataResponseTopic) -> TopicState:
    error = None if found.error_code == ErrorCode.NONE else ErrorCode(found.error_code).name
    return TopicState(found.name or "", bytes(found.topic_id or ZERO_UUID), found.is_internal, partitions_of(found), error)
