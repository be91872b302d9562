"""The consumer's messages inside the classic protocol: a member's subscription, owned partitions and assignment.

An int16 version, then the message; as in Kafka, versions above ours are read as ours, and trailing bytes are ignored.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from tidelog.coordinator.group.consumer.consumer_group import Owned, Partitions
from tidelog.coordinator.group.topic_metadata import TopicMetadata
from tidelog.model.errors import ProtocolViolation
from tidelog.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from tidelog.protocol.messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from tidelog.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tidelog.protocol.messages.consumer_protocol_subscription import TopicPartition as OwnedTopic

_INT16 = struct.Struct(">h")
CONSUMER = "consumer"
"""The protocol type of consumers in the classic protocol."""


def version_of(metadata: bytes) -> int:
    """The version of a member's message. ProtocolViolation when it is missing."""
    if len(metadata) < _INT16.size:
        raise ProtocolViolation(f"a consumer's metadata begin with two bytes of version; there are {len(metadata)} bytes")
    version: int = _INT16.unpack_from(metadata)[0]
    if version < 0:
        raise ProtocolViolation(f"a consumer's metadata have version {version}")
    return version


def read_subscription_message(metadata: bytes) -> ConsumerProtocolSubscription:
    """What a member sent with JoinGroup. ProtocolViolation when it is malformed."""
    version = min(version_of(metadata), ConsumerProtocolSubscription.MAX_VERSION)
    return ConsumerProtocolSubscription.read(metadata, _INT16.size, version)


def read_assignment_message(assignment: bytes) -> ConsumerProtocolAssignment:
    """A member's assignment. ProtocolViolation when it is malformed."""
    version = min(version_of(assignment), ConsumerProtocolAssignment.MAX_VERSION)
    return ConsumerProtocolAssignment.read(assignment, _INT16.size, version)


def by_topic_id(topics: Iterable[AssignedTopic | OwnedTopic], metadata: TopicMetadata) -> dict[bytes, frozenset[int]]:
    """Partitions by topic id; unknown topics are left out."""
    found: dict[bytes, set[int]] = {}
    for topic in topics:
        topic_id = metadata.id_of(topic.topic)
        if topic_id is not None:
            found.setdefault(topic_id, set()).update(topic.partitions)
    return {topic_id: frozenset(partitions) for topic_id, partitions in found.items()}


def write_assignment(partitions: Partitions | Owned, metadata: TopicMetadata, version: int) -> bytes:
    """The assignment for a member of the classic protocol, in the version of the member's own message."""
    version = min(version, ConsumerProtocolAssignment.MAX_VERSION)
    topics = []
    for topic_id, numbers in partitions.items():
        name = metadata.name_of(topic_id)
        if name is not None:
            topics.append(AssignedTopic(topic=name, partitions=sorted(numbers)))
    return _INT16.pack(version) + ConsumerProtocolAssignment(assigned_partitions=topics).encode(version)
