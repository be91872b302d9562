"""PartitionIndex: the partitions of each broker, so that no event has to scan all partitions.

It is derived from the image and updated with each delta: partitions by member of the ISR and of the ELR, the number of partitions
a broker leads, and the partitions without a leader, without their preferred leader, and those being reassigned. In a cluster of
100,000 partitions, the failure of a broker costs only that broker's partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidelog.metadata.image import PartitionImage, TopicsImage
from tidelog.metadata.topics_delta import TopicsDelta
from tidelog.model.ids import NO_BROKER, Uuid

PartitionId = tuple[Uuid, int]
"""(topic id, partition number)."""


class PartitionSet:
    """An insertion-ordered set of partitions, grouped by topic."""

    __slots__ = ("_topics",)

    def __init__(self) -> None:
        self._topics: dict[Uuid, dict[int, None]] = {}

    def add(self, topic_id: Uuid, number: int) -> None:
        numbers = self._topics.get(topic_id)
        if numbers is None:
            numbers = self._topics[topic_id] = {}
        numbers[number] = None

    def discard(self, topic_id: Uuid, number: int) -> None:
        numbers = self._topics.get(topic_id)
        if numbers is not None:
            numbers.pop(number, None)
            if not numbers:
                del self._topics[topic_id]

    def __iter__(self) -> Iterator[PartitionId]:
        for topic_id, numbers in self._topics.items():
            for number in numbers:
                yield topic_id, number

    def __bool__(self) -> bool:
        return bool(self._topics)

    def __len__(self) -> int:
        return sum(map(len, self._topics.values()))

    def topics(self) -> Iterator[tuple[Uuid, Iterable[int]]]:
        """The partitions by topic."""
        yield from self._topics.items()


class PartitionIndex:
    def __init__(self, topics: TopicsImage) -> None:
        self.without_leader = PartitionSet()
        self.without_preferred_leader = PartitionSet()
        """Partitions with no leader or one other than their first replica."""
        self.reassigning = PartitionSet()
        self._in_isr: dict[int, PartitionSet] = {}
        self._in_elr: dict[int, PartitionSet] = {}
        self._led: dict[int, int] = {}
        for topic in topics.by_id.values():
            for number, partition in enumerate(topic.partitions):
                self._add(topic.id, number, partition)

    def apply(self, delta: TopicsDelta) -> None:
        """Applies the delta to the index."""
        for topic in delta.deleted.values():
            for number, partition in enumerate(topic.partitions):
                self._remove(topic.id, number, partition)
        for topic_id, changed in delta.changed.items():
            before = () if changed.created else delta.base.by_id[topic_id].partitions
            for number in sorted(changed.changed):
                if number < len(before):
                    self._remove(topic_id, number, before[number])
                self._add(topic_id, number, changed.partitions[number])

    def with_in_isr(self, broker_id: int) -> PartitionSet:
        """The partitions with the broker in the ISR, including those it leads."""
        return self._in_isr.get(broker_id) or PartitionSet()

    def with_in_elr(self, broker_id: int) -> PartitionSet:
        """The partitions that the broker may lead without being in the ISR (KIP-966)."""
        return self._in_elr.get(broker_id) or PartitionSet()

    @property
    def any_eligible(self) -> bool:
        """Whether any broker is eligible to lead a partition without being in its ISR."""
        return bool(self._in_elr)

    def leads(self, broker_id: int) -> int:
        """The number of partitions that the broker leads."""
        return self._led.get(broker_id, 0)

    def _add(self, topic_id: Uuid, number: int, partition: PartitionImage) -> None:
        # A new controller runs this for all partitions before it answers its first request.
        for broker_id in partition.isr:
            found = self._in_isr.get(broker_id)
            if found is None:
                found = self._in_isr[broker_id] = PartitionSet()
            found.add(topic_id, number)
        for broker_id in partition.elr:
            self._in_elr.setdefault(broker_id, PartitionSet()).add(topic_id, number)
        leader = partition.leader
        if leader != NO_BROKER:
            self._led[leader] = self._led.get(leader, 0) + 1
        else:
            self.without_leader.add(topic_id, number)
        if leader != partition.replicas[0]:
            self.without_preferred_leader.add(topic_id, number)
        if partition.adding_replicas or partition.removing_replicas:
            self.reassigning.add(topic_id, number)

    def _remove(self, topic_id: Uuid, number: int, partition: PartitionImage) -> None:
        for members, index in ((partition.isr, self._in_isr), (partition.elr, self._in_elr)):
            for broker_id in members:
                index[broker_id].discard(topic_id, number)
                if not index[broker_id]:
                    del index[broker_id]
        if partition.has_leader:
            left = self._led[partition.leader] - 1
            if left:
                self._led[partition.leader] = left
            else:
                del self._led[partition.leader]
        self.without_leader.discard(topic_id, number)
        self.without_preferred_leader.discard(topic_id, number)
        self.reassigning.discard(topic_id, number)
