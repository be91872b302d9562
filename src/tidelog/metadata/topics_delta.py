"""Applies records to the topics: tracks created, changed and deleted topics, and the changed partitions of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tidelog.metadata.image import PartitionImage, TopicImage, TopicsImage
from tidelog.metadata.records import MetadataLogError
from tidelog.model.ids import ZERO_UUID, Uuid, uuid_to_text

if TYPE_CHECKING:
    from tidelog.protocol.messages.clear_elr_record import ClearElrRecord
    from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord
    from tidelog.protocol.messages.partition_record import PartitionRecord
    from tidelog.protocol.messages.remove_topic_record import RemoveTopicRecord
    from tidelog.protocol.messages.topic_record import TopicRecord

NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1


@dataclass(slots=True)
class TopicDelta:
    """One changed topic: all its partitions after the change, and the numbers of those that changed."""

    id: Uuid
    name: str
    created: bool
    partitions: dict[int, PartitionImage] = field(default_factory=dict)
    changed: set[int] = field(default_factory=set)

    def image(self) -> TopicImage:
        """MetadataLogError unless the partitions are numbered 0 to n-1."""
        numbers = list(self.partitions)
        if numbers != list(range(len(numbers))):
            # Rare: partitions are mostly added in order and changed in place.
            numbers.sort()
            if numbers != list(range(len(numbers))):
                raise MetadataLogError(f"topic {self.name} has partitions {numbers}; they have to run from 0 without a gap")
            return TopicImage(self.id, self.name, tuple(self.partitions[number] for number in numbers))
        return TopicImage(self.id, self.name, tuple(self.partitions.values()))


@dataclass(slots=True)
class TopicsDelta:
    """Built by applying topic and partition records to ``base``."""

    base: TopicsImage
    changed: dict[Uuid, TopicDelta] = field(default_factory=dict)
    deleted: dict[Uuid, TopicImage] = field(default_factory=dict)
    """Deleted topics of ``base``. A topic created and deleted within the delta is in neither set."""
    _names: dict[str, Uuid | None] = field(default_factory=dict)

    def id_of(self, name: str) -> Uuid | None:
        """The id of a topic, including replayed changes."""
        if name in self._names:
            return self._names[name]
        topic = self.base.by_name.get(name)
        return None if topic is None else topic.id

    def create(self, record: TopicRecord) -> None:
        topic_id = Uuid(record.topic_id)
        if self.id_of(record.name) is not None:
            raise MetadataLogError(f"TopicRecord for {record.name}, which exists already")
        if topic_id in self.changed or (topic_id in self.base.by_id and topic_id not in self.deleted):
            raise MetadataLogError(
                f"TopicRecord for {record.name} with topic id {uuid_to_text(topic_id)}, which another topic has"
            )
        self.changed[topic_id] = TopicDelta(topic_id, record.name, created=True)
        self._names[record.name] = topic_id

    def remove(self, record: RemoveTopicRecord) -> str:
        """Deletes a topic and returns its name."""
        topic_id = Uuid(record.topic_id)
        changed = self.changed.pop(topic_id, None)
        image = None if topic_id in self.deleted else self.base.by_id.get(topic_id)
        if changed is None and image is None:
            raise MetadataLogError(f"RemoveTopicRecord for topic id {uuid_to_text(topic_id)}, which does not exist")
        if image is not None:
            self.deleted[topic_id] = image
        name = changed.name if changed is not None else image.name  # type: ignore[union-attr]
        self._names[name] = None
        return name

    def set_partition(self, record: PartitionRecord) -> None:
        topic = self._open(Uuid(record.topic_id), "PartitionRecord")
        replicas = tuple(record.replicas)
        topic.partitions[record.partition_id] = PartitionImage(
            replicas=replicas,
            isr=tuple(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            leader_recovery_state=record.leader_recovery_state,
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            elr=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
            directories=_directories(record.directories, len(replicas)),
        )
        topic.changed.add(record.partition_id)

    def change_partition(self, record: PartitionChangeRecord) -> None:
        topic = self._open(Uuid(record.topic_id), "PartitionChangeRecord")
        before = topic.partitions.get(record.partition_id)
        if before is None:
            raise MetadataLogError(f"PartitionChangeRecord for {topic.name}-{record.partition_id}, which does not exist")
        topic.partitions[record.partition_id] = merge(before, record)
        topic.changed.add(record.partition_id)

    def clear_elr(self, record: ClearElrRecord) -> None:
        """Clears the eligible leader replicas of one topic, or of all topics when the name is empty. Epochs stay, because no
        decision here depends on them."""
        if record.topic_name:
            topic_id = self.id_of(record.topic_name)
            if topic_id is None:
                raise MetadataLogError(f"ClearElrRecord for topic {record.topic_name}, which does not exist")
            topic_ids = [topic_id]
        else:
            topic_ids = [*self.changed, *(known for known in self.base.by_id if known not in self.deleted)]
        for topic_id in topic_ids:
            present = self.changed.get(topic_id)
            numbered = enumerate(self.base.by_id[topic_id].partitions) if present is None else list(present.partitions.items())
            for number, partition in numbered:
                if partition.elr or partition.last_known_elr:
                    topic = self._open(topic_id, "ClearElrRecord")
                    topic.partitions[number] = replace(partition, elr=(), last_known_elr=())
                    topic.changed.add(number)

    def partition(self, topic_id: Uuid, number: int) -> PartitionImage | None:
        """The partition, including replayed changes."""
        changed = self.changed.get(topic_id)
        if changed is not None:
            return changed.partitions.get(number)
        topic = None if topic_id in self.deleted else self.base.by_id.get(topic_id)
        return topic.partitions[number] if topic is not None and 0 <= number < len(topic.partitions) else None

    def apply(self) -> TopicsImage:
        if not self.changed and not self.deleted:
            return self.base
        by_id = dict(self.base.by_id)
        by_name = dict(self.base.by_name)
        for topic_id, gone in self.deleted.items():
            del by_id[topic_id]
            del by_name[gone.name]
        for topic_id, delta in self.changed.items():
            image = delta.image()
            by_id[topic_id] = image
            by_name[image.name] = image
        return TopicsImage(by_id, by_name)

    def _open(self, topic_id: Uuid, what: str) -> TopicDelta:
        topic = self.changed.get(topic_id)
        if topic is not None:
            return topic
        image = None if topic_id in self.deleted else self.base.by_id.get(topic_id)
        if image is None:
            raise MetadataLogError(f"{what} for topic id {uuid_to_text(topic_id)}, which does not exist")
        topic = TopicDelta(topic_id, image.name, created=False, partitions=dict(enumerate(image.partitions)))
        self.changed[topic_id] = topic
        return topic


def _directories(directories: Sequence[bytes] | None, count: int) -> tuple[Uuid, ...]:
    """One directory per replica; records from before metadata.version 17 have none, which means MIGRATING for all."""
    if not directories:
        return (ZERO_UUID,) * count
    if len(directories) != count:
        raise MetadataLogError(f"a partition with {count} replicas names {len(directories)} directories")
    return tuple(Uuid(directory) for directory in directories)


def merge(before: PartitionImage, record: PartitionChangeRecord) -> PartitionImage:
    """The partition after the change. A leader in the record raises the leader epoch even when the leader stays the same."""
    replicas = before.replicas if record.replicas is None else tuple(record.replicas)
    if record.directories is not None:
        directories = _directories(record.directories, len(replicas))
    elif len(replicas) == len(before.directories):
        directories = before.directories
    else:
        directories = _directories(None, len(replicas))
    new_leader = record.leader != NO_LEADER_CHANGE
    recovery = record.leader_recovery_state
    return PartitionImage(
        replicas=replicas,
        isr=before.isr if record.isr is None else tuple(record.isr),
        leader=record.leader if new_leader else before.leader,
        leader_epoch=before.leader_epoch + 1 if new_leader else before.leader_epoch,
        partition_epoch=before.partition_epoch + 1,
        leader_recovery_state=before.leader_recovery_state if recovery == NO_RECOVERY_CHANGE else recovery,
        removing_replicas=before.removing_replicas if record.removing_replicas is None else tuple(record.removing_replicas),
        adding_replicas=before.adding_replicas if record.adding_replicas is None else tuple(record.adding_replicas),
        elr=before.elr if record.eligible_leader_replicas is None else tuple(record.eligible_leader_replicas),
        last_known_elr=before.last_known_elr if record.last_known_elr is None else tuple(record.last_known_elr),
        directories=directories,
    )
