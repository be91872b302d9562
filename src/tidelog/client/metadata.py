"""What a client knows of a cluster: brokers, topics with their ids, and who leads each partition.

Answers come from any broker and in any order, so the leader epoch says which is older (KIP-320): for a topic that is still
the same (same id), a leader with a lower epoch than the one known is not believed. A new topic id is a new topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_BROKER, NO_EPOCH, ZERO_UUID
from tidelog.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of a partition. ``broker`` -1: none at the moment; ``epoch`` -1: the broker is too old to say."""

    broker: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as brokers describe it. ``error`` is why there is nothing more to know."""

    name: str
    topic_id: bytes
    error: ErrorCode
    internal: bool
    leaders: dict[int, Leader]


class ClusterMetadata:
    """Grows by answers. Not thread-safe: one per thread that asks."""

    def __init__(self) -> None:
        self.brokers: dict[int, tuple[str, int]] = {}
        self.topics: dict[str, Topic] = {}
        self.cluster_id: str | None = None

    def update(self, response: MetadataResponse, *, all_topics: bool = False) -> None:
        """Take in an answer; ``all_topics`` says that it lists every topic there is."""
        self.brokers = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
        self.cluster_id = response.cluster_id
        found = {topic.name: self._merged(topic.name, topic) for topic in response.topics if topic.name is not None}
        self.topics = found if all_topics else self.topics | found

    def leader(self, topic: str, partition: int) -> Leader | None:
        """The leader, None when the partition is not known or has none."""
        known = self.topics.get(topic)
        found = known.leaders.get(partition) if known else None
        return None if found is None or found.broker == NO_BROKER else found

    def moved(self, topic: str, partition: int, leader: Leader, endpoints: Iterable[tuple[int, str, int]] = ()) -> bool:
        """A broker names a new leader (KIP-951). Whether that was news; ``endpoints`` are (node, host, port)."""
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
