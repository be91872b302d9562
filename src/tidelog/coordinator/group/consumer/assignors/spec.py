"""Input and output of an assignor: plain values, without the group's epochs or its reconciliation.

Racks are included because heartbeats carry them; as in Kafka 4.3, neither assignor uses them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

MemberAssignment = dict[bytes, frozenset[int]]
GroupAssignment = dict[str, MemberAssignment]

_SIGNED_HALVES = struct.Struct(">qq")


class PartitionAssignorError(Exception):
    """An assignment that cannot be computed: an unknown assignor, or a subscription to a topic that does not exist."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """One member: its subscription, and in ``owned`` its part of the last target assignment."""

    instance_id: str | None
    rack_id: str | None
    subscribed_topic_ids: frozenset[bytes]
    owned: Mapping[bytes, frozenset[int]] = field(default_factory=dict)


class TopicSpec(NamedTuple):
    """A topic that exists: its partitions are ``range(partitions)``; ``racks`` of the replicas, by partition."""

    name: str
    partitions: int
    racks: tuple[frozenset[str], ...] = ()


class GroupSpec(NamedTuple):
    """Everything that an assignment depends on.

    ``subscription_homogeneous`` says that all members subscribe to the same topics; the caller counts subscriptions anyway.
    ``topics`` holds at least every subscribed topic.
    """

    members: Mapping[str, MemberSpec]
    subscription_homogeneous: bool
    topics: Mapping[bytes, TopicSpec]

    def partitions_of(self, topic_id: bytes) -> int:
        """The partition count of a subscribed topic. Raises ``PartitionAssignorError`` when the topic does not exist."""
        topic = self.topics.get(topic_id)
        if topic is None:
            raise PartitionAssignorError(f"a member is subscribed to topic id {topic_id.hex()}, which does not exist")
        return topic.partitions


def topic_order(topic_id: bytes) -> tuple[int, int]:
    """The order of Kafka's Uuid: two signed 64-bit halves, so ids whose first bit is set come first."""
    most, least = _SIGNED_HALVES.unpack(topic_id)
    return most, least


def text_order(text: str) -> bytes:
    """The order of Java's strings, which is that of UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")
