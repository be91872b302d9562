"""What a client knows of a cluster: brokers, topics with their ids, and partition leaders.

Answers come from any broker and in any order, so the leader epoch decides which is newer (KIP-320): while the topic id is
unchanged, a leader with a lower epoch than the known one is ignored. A new topic id is a new topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_BROKER, NO_EPOCH, ZERO_UUID
from tidelog.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of a partition. ``broker`` -1: no leader at the moment; ``epoch`` -1: the broker is too old to report it."""

    broker: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as brokers describe it. If ``error`` is set, the rest is unknown."""

    name: str
    topic_id: bytes
    error: ErrorCode
    internal: bool
    leaders: dict[int, Leader]


class ClusterMetadata:
    """Accumulates answers. Not thread-safe: use one per thread."""

    def __init__(self) -> None:
        self.brokers: dict[int, tuple[str, int]] = {}
        self.topics: dict[str, Topic] = {}
        self.cluster_id: str | None = None

    def update(self, response: MetadataResponse, *, all_topics: bool = False) -> None:
        """Merge an answer; ``all_topics``: it lists every existing topic."""
        self.brokers = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
        self.cluster_id = response.cluster_id
        found = {topic.name: self._merged(topic.name, topic) for topic in response.topics if topic.name is not None}
        self.topics = found if all_topics else self.topics | found

    def leader(self, topic: str, partition: int) -> Leader | None:
        """The leader; None if the partition is unknown or has no leader."""
        known = self.topics.get(topic)
        found = known.leaders.get(partition) if known else None
        return None if found is None or found.broker == NO_BROKER else found

    def moved(self, topic: str, partition: int, leader: Leader, endpoints: Iterable[tuple[int, str, int]] = ()) -> bool:
        """A broker reported a new leader (KIP-951). Returns whether that was news; ``endpoints`` are (node, host, port)."""
        self.brokers |= {node: (host, port) for node, host, port in endpoints}
        known = self.topics.get(topic)
        before = known.leaders.get(partition) if known else None
        if known is None or before is None or leader.epoch <= before.epoch or leader.broker not in self.brokers:
            return False
        self.topics[topic] = replace(known, leaders=known.leaders | {partition: leader})
        return True

    def _merged(self, name: str, said: MetadataResponseTopic) -> Topic:
        before = self.topics.get(name)
        same = before is not None and before.topic_id == said.topic_id
        leaders = {}
        for partition in said.partitions:
            now = Leader(partition.leader_id, partition.leader_epoch)
            then = before.leaders.get(partition.partition_index) if before is not None and same else None
            stale = then is not None and now.epoch != NO_EPOCH and now.epoch < then.epoch
            leaders[partition.partition_index] = then if stale and then is not None else now
        error = ErrorCode(said.error_code)
        topic_id = bytes(said.topic_id) if said.topic_id is not None else ZERO_UUID
        return Topic(name, topic_id, error, said.is_internal, dict(sorted(leaders.items())))
