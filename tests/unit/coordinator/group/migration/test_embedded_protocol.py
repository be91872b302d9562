"""The consumer's messages inside of the classic protocol."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.consumer_driver import image_of, owned, topic_id
from tidelog.coordinator.group.migration.embedded_protocol import (
    by_topic_id,
    read_assignment_message,
    read_subscription_message,
    version_of,
    write_assignment,
)
from tidelog.coordinator.group.topic_metadata import TopicMetadata
from tidelog.model.errors import ProtocolViolation
from tidelog.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription, TopicPartition

TOPICS = TopicMetadata(lambda: image_of({"t": 3}))


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_is_written_at_the_members_version_and_read_again(version: int) -> None:
    raw = write_assignment(owned(t=[2, 0], gone=[1]), TOPICS, version)
    assert version_of(raw) == version
    assert by_topic_id(read_assignment_message(raw).assigned_partitions, TOPICS) == owned(t=[0, 2])


def test_what_a_member_owns_is_known_by_id_and_topics_that_are_gone_are_left_out() -> None:
    topics = [TopicPartition(topic=name, partitions=[number]) for number, name in enumerate(("t", "gone", "t"))]
    message = ConsumerProtocolSubscription(topics=["t"], owned_partitions=topics)
    read = read_subscription_message(b"\0\1" + message.encode(1) + b"behind")
    assert read.topics == ["t"]
    assert by_topic_id(read.owned_partitions, TOPICS) == {topic_id("t"): frozenset({0, 2})}


def test_versions_above_ours_are_read_as_ours() -> None:
    assert read_subscription_message(b"\0\x63" + ConsumerProtocolSubscription(topics=["t"]).encode(3)).topics == ["t"]
    assert version_of(write_assignment({}, TOPICS, 99)) == 3


@pytest.mark.parametrize("garbled", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\1\0\0\0\7x"])
def test_what_cannot_be_read_is_a_violation(garbled: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        read_subscription_message(garbled)


def test_a_topic_that_is_named_a_hundred_thousand_times_is_looked_at_as_often() -> None:
    topics = [TopicPartition(topic="t", partitions=[number]) for number in range(100_000)]
    assert len(by_topic_id(topics, TOPICS)[topic_id("t")]) == 100_000
