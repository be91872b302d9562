"""Hosted partitions: which partitions this broker has, under which topic id and name, and the errors of a request that names
another (3, 6, 100, 103).

Invariant: both indexes hold the same topics. Elsewhere: when a partition comes
and goes (``replica_manager``).
"""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.metadata.image import ClusterImage, TopicImage
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ZERO_UUID, Uuid
from tidelog.replication.fetch_partition import FetchPartition
from tidelog.replication.partition import Partition
from tidelog.replication.topic_stats import TopicStats


class HostedTopic:
    """A topic that has replicas on this broker."""

    __slots__ = ("id", "name", "partitions", "stats")

    def __init__(self, name: str, topic_id: Uuid) -> None:
        self.name = name
        self.id = topic_id
        self.partitions: dict[int, Partition] = {}
        self.stats = TopicStats()


class HostedPartitions:
    """The topics and partitions of one broker, and the image that tells what other brokers have."""

    __slots__ = ("_by_id", "_by_name", "_deleted_stats", "_image")

    def __init__(self) -> None:
        self._by_id: dict[bytes, HostedTopic] = {}
        self._by_name: dict[str, HostedTopic] = {}
        self._deleted_stats = TopicStats()
        self._image = ClusterImage()

    def follow(self, image: ClusterImage) -> None:
        """Look up what is not here in ``image`` from now on."""
        self._image = image

    def __iter__(self) -> Iterator[Partition]:
        """All partitions here, topic by topic."""
        for topic in self._by_name.values():
            yield from topic.partitions.values()

    # -- coming and going -----------------------------------------------------------------------------------------------

    def topic(self, topic_id: bytes) -> HostedTopic | None:
        """The topic, if a replica of it is here."""
        return self._by_id.get(topic_id)

    def topic_named(self, name: str) -> HostedTopic | None:
        """The newest topic of this name, if a replica of it is here."""
        return self._by_name.get(name)

    def names(self) -> list[str]:
        return list(self._by_name)

    def add(self, image: TopicImage) -> HostedTopic:
        """A first replica of the topic comes here."""
        topic = self._by_id[image.id] = self._by_name[image.name] = HostedTopic(image.name, image.id)
        return topic

    def remove(self, topic_id: Uuid) -> list[Partition]:
        """The topic was deleted; returns the partitions that were here. Its counters stay in the totals."""
        topic = self._by_id.pop(topic_id, None)
        if topic is None:
            return []
        if self._by_name.get(topic.name) is topic:
            del self._by_name[topic.name]
        self._deleted_stats.add(topic.stats)
        return list(topic.partitions.values())

    def not_in(self, image: ClusterImage) -> list[Uuid]:
        """The topics here that ``image`` does not have."""
        return [Uuid(topic_id) for topic_id in self._by_id if topic_id not in image.topics.by_id]

    # -- finding them ---------------------------------------------------------------------------------------------------

    def by_name(self, name: str, index: int) -> Partition | ErrorCode:
        """The partition, UNKNOWN_TOPIC_OR_PARTITION, or NOT_LEADER_OR_FOLLOWER when only other brokers host it."""
        topic = self._by_name.get(name)
        if topic is not None and (partition := topic.partitions.get(index)) is not None:
            return partition
        if self._image.topics.partition(name, index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def by_id(self, topic_id: bytes, index: int) -> Partition | ErrorCode:
        """Like ``by_name``, by topic id; UNKNOWN_TOPIC_ID when no topic has this id."""
        topic = self._by_id.get(topic_id)
        if topic is not None and (partition := topic.partitions.get(index)) is not None:
            return partition
        image = self._image.topics.by_id.get(Uuid(topic_id))
        if image is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if 0 <= index < len(image.partitions) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def locate(self, wanted: FetchPartition) -> Partition | ErrorCode:
        """The partition that a fetch names. A topic id that was known when its session began stays bound to that topic's name.

        So an old session gets INCONSISTENT_TOPIC_ID for a topic that was created again; an unknown id is looked up each time.
        """
        topic_id = wanted.topic_id
        if topic_id == ZERO_UUID:
            # Named by id, with the zero id: no topic has it.
            return ErrorCode.UNKNOWN_TOPIC_ID if wanted.topic is None else self.by_name(wanted.topic, wanted.index)
        topic = self._by_id.get(topic_id)
        if topic is not None and (partition := topic.partitions.get(wanted.index)) is not None:
            wanted.topic = topic.name
            return partition
        if wanted.topic is None:
            image = self._image.topics.by_id.get(topic_id)
            if image is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
            wanted.topic = image.name
        else:
            current = self._image.topics.by_name.get(wanted.topic)
            if current is None:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if current.id != topic_id:
                return ErrorCode.INCONSISTENT_TOPIC_ID
        return self.by_id(topic_id, wanted.index)

    # -- gauges ---------------------------------------------------------------------------------------------------------

    def totals(self) -> TopicStats:
        """The counters of all topics since the start, including deleted ones."""
        totals = TopicStats()
        totals.add(self._deleted_stats)
        for topic in self._by_name.values():
            totals.add(topic.stats)
        return totals

    def topic_stats(self) -> dict[str, TopicStats]:
        return {name: topic.stats for name, topic in self._by_name.items()}

    def gauges(self) -> dict[str, int]:
        """Kafka's gauges of ReplicaManager, under their Prometheus names."""
        leaders = offline = under_replicated = under_min = at_min = count = 0
        for partition in self:
            count += 1
            offline += partition.log is None
            if not partition.is_leader:
                continue
            leaders += 1
            under_replicated += len(partition.isr) < len(partition.replicas)
            under_min += partition.spare_in_sync < 0
            at_min += partition.spare_in_sync == 0
        return {
            "kafka_server_replicamanager_partitioncount": count,
            "kafka_server_replicamanager_leadercount": leaders,
            "kafka_server_replicamanager_offlinereplicacount": offline,
            "kafka_server_replicamanager_underreplicatedpartitions": under_replicated,
            "kafka_server_replicamanager_underminisrpartitioncount": under_min,
            "kafka_server_replicamanager_atminisrpartitioncount": at_min,
        }
