"""Identifiers and special values, as Kafka writes them.

A ``Uuid`` is its 16 raw bytes everywhere inside; text (files, tools) is base64url without padding, as in Kafka's
``org.apache.kafka.common.Uuid``. Offsets are ints; the special ones are named here.
"""

from __future__ import annotations

import base64
from typing import NamedTuple, NewType

from tidelog.model.ports import Rng

Uuid = NewType("Uuid", bytes)

ZERO_UUID = Uuid(b"\0" * 16)
"""No id: what a message carries when it names a topic, or a directory that is MIGRATING."""
METADATA_TOPIC_ID = Uuid(b"\0" * 15 + b"\1")
"""The topic id of ``__cluster_metadata``; as a directory id it means UNASSIGNED."""
UNASSIGNED_DIR = METADATA_TOPIC_ID
LOST_DIR = Uuid(b"\0" * 15 + b"\2")
RESERVED_UUIDS = frozenset(Uuid(n.to_bytes(16, "big")) for n in range(100))
"""Ids below 100 are Kafka's own; a random id is never one of them."""

METADATA_TOPIC = "__cluster_metadata"
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_STATE_TOPIC})

NO_OFFSET = -1
NO_TIMESTAMP = -1
NO_EPOCH = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_BROKER = -1

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL_TIMESTAMP = -4
LATEST_TIERED_TIMESTAMP = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP = -6


class TopicPartition(NamedTuple):
    """A partition by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def uuid_to_text(value: bytes) -> str:
    """Base64url without padding: 22 characters for the 16 bytes."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def uuid_from_text(text: str) -> Uuid:
    """The inverse of ``uuid_to_text``. ValueError unless it is 16 bytes."""
    value = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(value) != 16:
        raise ValueError(f"{text!r} is not an id of 16 bytes")
    return Uuid(value)


def random_uuid(rng: Rng) -> Uuid:
    """A version 4 id that is not reserved and whose text does not start with ``-`` (tools would take it for a flag)."""
    while True:
        raw = bytearray(rng.getrandbits(128).to_bytes(16, "big"))
        raw[6] = (raw[6] & 0x0F) | 0x40
        raw[8] = (raw[8] & 0x3F) | 0x80
        value = Uuid(bytes(raw))
        if value not in RESERVED_UUIDS and not uuid_to_text(value).startswith("-"):
            return value


def parse_partition_dir(name: str) -> TopicPartition | None:
    """``topic-3`` as a TopicPartition; None when the name is not that of a partition's directory."""
    topic, dash, number = name.rpartition("-")
    if not dash or not topic or not number.isdecimal():
        return None
    return TopicPartition(topic, int(number))
