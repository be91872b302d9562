"""What is read from a classic member's own bytes; whole samples are taken from a broker in tests/node/test_why.py."""

from __future__ import annotations

import pytest

from tidelog.client.calls import Ask
from tidelog.client.failures import NoConnection
from tidelog.console.collecting import sample, subscribed
from tidelog.console.group_facts import Sample
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tidelog.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def test_a_classic_member_says_what_it_subscribes_to() -> None:
    version = ConsumerProtocolSubscription.MAX_VERSION
    body = ConsumerProtocolSubscription(topics=["a", "b"]).encode(version)
    assert subscribed(version.to_bytes(2, "big") + bytes(body)) == {"a", "b"}


def test_a_newer_version_is_read_as_the_newest_known_one() -> None:
    body = ConsumerProtocolSubscription(topics=["a"]).encode(ConsumerProtocolSubscription.MAX_VERSION)
    assert subscribed((99).to_bytes(2, "big") + bytes(body)) == {"a"}


def test_bytes_of_another_protocol_name_no_topic() -> None:
    assert subscribed(b"") == subscribed(b"\0") == subscribed(b"\0\1\xff\xff\xff\x7f") == frozenset()


@pytest.mark.parametrize(("code", "missing"), [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True), (ErrorCode.NONE, False)])
def test_a_coordinator_that_refuses_may_have_no_topic(code: ErrorCode, missing: bool) -> None:
    call = sample("g", 7)
    next(call)
    asked = call.throw(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    assert isinstance(asked, Ask) and isinstance(asked.request, MetadataRequest)
    assert [each.name for each in asked.request.topics] == ["__consumer_offsets"]
    assert not asked.request.allow_auto_topic_creation
    with pytest.raises(StopIteration) as end:
        call.send(MetadataResponse(topics=[MetadataResponseTopic(error_code=code, name="__consumer_offsets")]))
    assert end.value.value == Sample(7, coordinator_error="COORDINATOR_NOT_AVAILABLE", no_offsets_topic=missing)


def test_a_coordinator_without_a_connection_is_a_finding_while_others_answer() -> None:
    call = sample("g", 7)
    next(call)
    asked = call.throw(NoConnection("10.0.0.1:9 cannot be reached"))
    assert isinstance(asked, Ask) and isinstance(asked.request, MetadataRequest)
    parts = [
        MetadataResponsePartition(partition_index=4, leader_id=-1),
        MetadataResponsePartition(partition_index=5, leader_id=1),
    ]
    with pytest.raises(StopIteration) as end:
        call.send(MetadataResponse(topics=[MetadataResponseTopic(name="__consumer_offsets", partitions=parts)]))
    found = end.value.value
    assert (found.coordinator_error, found.out_of_reach, found.leaderless_offsets) == ("10.0.0.1:9 cannot be reached", True, (4,))
