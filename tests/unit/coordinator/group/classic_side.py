"""Members of the classic protocol with real subscriptions, beside those of the consumer protocol."""

from __future__ import annotations

from typing import Any

from tests.unit.coordinator.group.consumer_driver import ConsumerDriver, image_of, owned
from tidelog.coordinator.group.migration.embedded_protocol import by_topic_id, read_assignment_message, write_assignment
from tidelog.coordinator.group.settings import GroupSettings, MigrationPolicy
from tidelog.coordinator.group.topic_metadata import TopicMetadata
from tidelog.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription, TopicPartition
from tidelog.protocol.messages.join_group import JoinGroupResponse

TOPICS = TopicMetadata(lambda: image_of({"t": 3}))


def metadata(partitions: list[int] | None = None, topics: tuple[str, ...] = ("t",)) -> bytes:
    """A subscription at version 1."""
    claims = [TopicPartition(topic="t", partitions=partitions)] if partitions else []
    return b"\0\1" + ConsumerProtocolSubscription(topics=list(topics), owned_partitions=claims).encode(1)


def assignment(**topics: list[int]) -> bytes:
    """An assignment at version 1."""
    return write_assignment(owned(**topics), TOPICS, 1)


def numbers(raw: bytes) -> list[int]:
    """The partitions of ``t`` in an assignment."""
    found = by_topic_id(read_assignment_message(raw).assigned_partitions, TOPICS)
    return sorted(number for partitions in found.values() for number in partitions)


def driver_with(policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL, **settings: Any) -> ConsumerDriver:
    """No delays."""
    driver = ConsumerDriver(GroupSettings(initial_rebalance_delay_ms=0, migration_policy=policy, **settings))
    driver.configure("g", consumer_assignment_interval_ms="0")
    return driver


def rejoin(driver: ConsumerDriver, member: str, partitions: list[int] | None = None, **options: Any) -> JoinGroupResponse:
    """JoinGroup of a classic member, whose answer must be there at once."""
    protocols = options.pop("protocols", (("range", metadata(partitions)),))
    answer = driver.answers[driver.join("g", member, protocols=protocols, **options)]
    assert isinstance(answer, JoinGroupResponse)
    return answer


def newcomer(driver: ConsumerDriver, **options: Any) -> JoinGroupResponse:
    """A classic member joins a group of the consumer protocol: it is given an id first."""
    return rejoin(driver, rejoin(driver, "", **options).member_id, **options)


def classic_group(driver: ConsumerDriver, given: bytes | None = None, kind: str = "consumer") -> str:
    """A stable classic group of one member that reads all of ``t``; its id."""
    member, token = driver.join_twice("g", protocols=(("range", metadata()),), kind=kind)
    driver.advance(0)
    generation = driver.answers[token].generation_id
    driver.sync("g", member, generation, {member: assignment(t=[0, 1, 2]) if given is None else given})
    return member


def synced(driver: ConsumerDriver, member: str, generation: int) -> Any:
    """The answer to SyncGroup."""
    return driver.answers[driver.sync("g", member, generation, protocol_type="consumer", protocol_name="range")]
