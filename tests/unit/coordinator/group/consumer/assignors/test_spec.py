"""The orders that decide an assignment are Kafka's."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.consumer.assignors.groups import group, member, topic_id
from tidelog.coordinator.group.consumer.assignors.spec import PartitionAssignorError, text_order, topic_order


def test_topics_are_ordered_as_two_signed_halves() -> None:
    negative, zero, low_negative = bytes([0x80]) + bytes(15), bytes(16), bytes(8) + bytes([0x80]) + bytes(7)
    assert sorted([bytes(15) + b"\x01", zero, low_negative, negative], key=topic_order) == [
        negative,
        low_negative,
        zero,
        bytes(15) + b"\x01",
    ]


def test_texts_are_ordered_by_their_utf16_units() -> None:
    # U+FF5E is below U+1F600 as a code point, but above its first surrogate.
    assert sorted(["\uff5e", "\U0001f600", "B", "a"], key=text_order) == ["B", "a", "\U0001f600", "\uff5e"]


def test_a_subscription_to_a_topic_that_is_not_there_is_an_error_that_names_it() -> None:
    spec = group({"1": 3}, A=member("1"))
    assert spec.partitions_of(topic_id("1")) == 3
    with pytest.raises(PartitionAssignorError, match="0000000002"):
        spec.partitions_of(topic_id("2"))
