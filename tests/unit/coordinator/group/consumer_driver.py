"""The driver of a GroupCoordinator with topics, and with members that speak the consumer protocol."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.coordinator.group.driver import Driver
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup, ConsumerMember
from tidelog.coordinator.group.consumer.consumer_heartbeat import Beat
from tidelog.coordinator.group.consumer.consumer_records import read_consumer_key
from tidelog.coordinator.group.records import GroupRecord
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.metadata.image import GROUP_RESOURCE, BrokerImage, ClusterImage, PartitionImage, TopicImage, TopicsImage
from tidelog.model.ids import ZERO_UUID, Uuid
from tidelog.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    RequestTopicPartitions,
)

INTERVAL = 1_000


def topic_id(name: str) -> Uuid:
    """A topic's id in these tests."""
    return Uuid(name.encode().ljust(16, b"."))


def image_of(topics: dict[str, int], offset: int = 1, racks: tuple[str, ...] = ()) -> ClusterImage:
    """A cluster with these topics and one broker for each rack; all partitions are on all brokers."""
    replicas = tuple(range(max(1, len(racks))))
    partition = PartitionImage(replicas=replicas, isr=replicas, leader=0)
    images = [TopicImage(topic_id(name), name, (partition,) * count) for name, count in topics.items()]
    brokers = {
        node: BrokerImage(node, 1, ZERO_UUID, {}, {}, rack, fenced=False, in_controlled_shutdown=False, directories=())
        for node, rack in enumerate(racks)
    }
    return ClusterImage(
        offset=offset,
        topics=TopicsImage({each.id: each for each in images}, {each.name: each for each in images}),
        brokers=brokers,
    )


def owned(**topics: list[int]) -> dict[bytes, frozenset[int]]:
    """Partitions by topic id."""
    return {topic_id(name): frozenset(partitions) for name, partitions in topics.items()}


class ConsumerDriver(Driver):
    """Topics ``t`` with three partitions, and more as the test says."""

    def __init__(self, settings: GroupSettings | None = None, seed: int = 1, topics: dict[str, int] | None = None) -> None:
        super().__init__(settings, seed, image_of({"t": 3} if topics is None else topics))

    def set_topics(self, topics: dict[str, int]) -> None:
        """The cluster's topics are these now."""
        created = not topics.keys() <= self.image.topics.by_name.keys()
        configs = self.image.configs
        self.image = replace(image_of(topics, self.image.offset + 1), configs=configs)
        self.run(self.machine.topics_changed(created=created))

    def configure(self, group: str, **configs: str) -> None:
        """Settings of the group itself; ``_`` stands for a dot."""
        named = {name.replace("_", "."): value for name, value in configs.items()}
        self.image = replace(self.image, configs={(GROUP_RESOURCE, group): named})

    def beat(
        self, group: str, member: str, epoch: int, owns: dict[str, list[int]] | None = None, **fields: Any
    ) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat and its answer."""
        token = self.token()
        if owns is not None:
            fields["topic_partitions"] = [
                RequestTopicPartitions(topic_id=topic_id(name), partitions=partitions) for name, partitions in owns.items()
            ]
        request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **fields)
        self.run(self.machine.consumer_heartbeat(Beat(token, "c", "/127.0.0.1", request), self.now))
        answer = self.answers[token]
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        return answer

    def enter(self, group: str, member: str, topics: list[str] | None = None, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """The first heartbeat of a member."""
        if "subscribed_topic_regex" not in fields:
            fields["subscribed_topic_names"] = ["t"] if topics is None else topics
        fields.setdefault("rebalance_timeout_ms", 60_000)
        return self.beat(group, member, 0, {}, **fields)

    def given(self, answer: ConsumerGroupHeartbeatResponse) -> dict[str, list[int]] | None:
        """What an answer assigns, by topic; None when it says nothing of it."""
        if answer.assignment is None:
            return None
        return {topic.topic_id.rstrip(b".").decode(): list(topic.partitions) for topic in answer.assignment.topic_partitions}

    def consumers(self, group: str) -> ConsumerGroup:
        """The group, which must be of the consumer protocol."""
        found = self.machine.groups[group]
        assert isinstance(found, ConsumerGroup)
        return found

    def one(self, group: str, member: str) -> ConsumerMember:
        """A member as it is recorded."""
        return self.consumers(group).members[member]

    def types_since(self, position: int) -> list[int]:
        """The types of the records written since a position of the log; tombstones are negative."""
        return [kind(record) for record in self.log[position:]]


def kind(record: GroupRecord) -> int:
    """The type of a record, negative for a tombstone."""
    number = int.from_bytes(record.key[:2], "big")
    assert number <= 2 or read_consumer_key(number, record.key[2:]) is not None
    return number if record.value is not None else -number


def settled_pair(driver: ConsumerDriver, group: str = "g") -> None:
    """Members ``a`` and ``b`` share topic ``t``, both at epoch 3: ``a`` came first and gave up what ``b`` reads."""
    driver.enter(group, "a")
    driver.advance(INTERVAL)
    driver.enter(group, "b")
    revoked = driver.beat(group, "a", 2)
    kept = driver.given(revoked)
    driver.beat(group, "a", 2, kept)
    driver.beat(group, "b", 3)
    assert driver.consumers(group).state.value == "Stable"
