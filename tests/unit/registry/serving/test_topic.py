"""The topic's calls, answered by hand: what is made and refused, what is read, and how appends are stamped."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.client.settings import parse_settings
from tidelog.model.errors import ConfigError, ErrorCode, KafkaError
from tidelog.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from tidelog.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tidelog.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from tidelog.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tidelog.records.batch import read_header
from tidelog.records.builder import RecordData, build_batch
from tidelog.registry.serving import topic

SETTINGS = parse_settings({"bootstrap.servers": "localhost:1"})
PLACE = topic.Place("_schemas", b"\1" * 16, 3)


def answered(call: Any, *answers: Any) -> tuple[Any, list[Any]]:
    """The result of a call, and its requests."""
    asked = []
    step = next(call)
    try:
        for answer in answers:
            asked.append(step.request)
            step = call.send(answer)
    except StopIteration as end:
        return end.value, asked
    raise AssertionError(f"{step} is asked besides")


def metadata(error: ErrorCode = ErrorCode.NONE, partitions: int = 1, brokers: int = 2, leader: int = 3) -> MetadataResponse:
    rows = [MetadataResponsePartition(partition_index=index, leader_id=leader) for index in range(partitions)]
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=index, host="h", port=1) for index in range(brokers)],
        cluster_id="c",
        topics=[MetadataResponseTopic(error_code=error, name="_schemas", topic_id=b"\1" * 16, partitions=rows)],
    )


def policy(value: str) -> DescribeConfigsResponse:
    row = DescribeConfigsResourceResult(name="cleanup.policy", value=value)
    return DescribeConfigsResponse(results=[DescribeConfigsResult(resource_type=2, resource_name="_schemas", configs=[row])])


MISSING = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_missing_topic_is_made_compacted_with_one_partition() -> None:
    made = CreateTopicsResponse(topics=[CreatableTopicResult(name="_schemas")])
    cluster, asked = answered(topic.prepare("_schemas", None), metadata(MISSING), made)
    assert cluster == "c"
    request = asked[1]
    assert isinstance(request, CreateTopicsRequest)
    (wanted,) = request.topics
    assert (wanted.num_partitions, wanted.replication_factor) == (1, 2)
    assert [(each.name, each.value) for each in wanted.configs] == [("cleanup.policy", "compact")]


def test_a_topic_that_another_made_meanwhile_is_taken() -> None:
    exists = CreateTopicsResponse(topics=[CreatableTopicResult(name="_schemas", error_code=ErrorCode.TOPIC_ALREADY_EXISTS)])
    assert answered(topic.prepare("_schemas", 1), metadata(MISSING), exists, metadata(), policy("compact"))[0] == "c"


@pytest.mark.parametrize(
    "answers", [(metadata(partitions=2),), (metadata(), policy("delete")), (metadata(), policy("compact,delete"))]
)
def test_a_topic_that_loses_schemas_is_refused(answers: tuple[Any, ...]) -> None:
    with pytest.raises(ConfigError):
        answered(topic.prepare("_schemas", None), *answers)


def test_a_topic_without_a_leader_has_no_place_yet() -> None:
    assert answered(topic.locate("_schemas"), metadata(leader=-1))[0] is None
    assert answered(topic.locate("_schemas"), metadata(ErrorCode.LEADER_NOT_AVAILABLE))[0] is None
    assert answered(topic.locate("_schemas"), metadata())[0] == PLACE
    with pytest.raises(KafkaError):
        answered(topic.locate("_schemas"), metadata(ErrorCode.TOPIC_AUTHORIZATION_FAILED))


def fetched(records: bytes, error: ErrorCode = ErrorCode.NONE) -> FetchResponse:
    part = PartitionData(partition_index=0, error_code=error, records=records)
    return FetchResponse(responses=[FetchableTopicResponse(topic="_schemas", topic_id=b"\1" * 16, partitions=[part])])


def batch(base_offset: int, *keys: bytes, control: bool = False) -> bytes:
    return bytes(build_batch([RecordData(key, b"v") for key in keys], base_offset=base_offset, control=control))


def test_reading_skips_what_is_before_the_offset_and_control_batches_and_ends_at_a_torn_one() -> None:
    raw = batch(0, b"a", b"b", b"c") + batch(3, b"x", control=True) + batch(4, b"d") + batch(5, b"e")[:-3]
    found, _ = answered(topic.read(SETTINGS, PLACE, 1), fetched(raw))
    assert [(each.offset, each.key) for each in found.records] == [(1, b"b"), (2, b"c"), (4, b"d")]
    assert found.next_offset == 5


def test_reading_refuses_damage_and_errors() -> None:
    raw = bytearray(batch(0, b"a"))
    raw[-1] ^= 1
    with pytest.raises(ValueError, match="CRC"):
        answered(topic.read(SETTINGS, PLACE, 0), fetched(bytes(raw)))
    with pytest.raises(KafkaError):
        answered(topic.read(SETTINGS, PLACE, 0), fetched(b"", ErrorCode.OFFSET_OUT_OF_RANGE))


def test_a_batch_carries_the_producer_and_its_sequence() -> None:
    header = read_header(topic.batch_of([(b"k", None), (b"l", b"v")], topic.Producer(7, 1, 5), 1000))
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.records_count) == (7, 1, 5, 2)
    assert not header.is_transactional
