"""What is read from a classic member's own bytes; whole samples are taken from a broker in tests/node/test_why.py."""

from __future__ import annotations

import pytest

from tidelog.client.calls import Ask
from tidelog.console.collecting import markers_alone, sample, subscribed
from tidelog.console.group_facts import Sample
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.control import EndTxnMarker, end_txn_marker_batch

RECORD = bytes(build_batch([RecordData(None, b"x")], base_offset=10))
MARKERS = b"".join(
    bytes(end_txn_marker_batch(EndTxnMarker(True, 0), producer_id=7, producer_epoch=0, timestamp_ms=0, base_offset=offset))
    for offset in (11, 12)
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


def test_a_lag_is_of_markers_alone_when_they_reach_the_end() -> None:
    assert markers_alone(RECORD + MARKERS, 11, 13), "a Fetch gives the whole batch before them, too"
    assert not markers_alone(RECORD + MARKERS, 10, 13)
    assert not markers_alone(MARKERS, 11, 14)
    assert not markers_alone(MARKERS[:-1], 11, 13)
    assert not markers_alone(b"", 11, 13)


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
