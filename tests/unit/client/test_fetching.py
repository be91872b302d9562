"""A reader's requests, and what answers mean for it."""

from __future__ import annotations

import pytest

from tidelog.client.fetching import (
    Verdict,
    error_of,
    fetch_request,
    judge,
    list_offsets_request,
    read_fetch,
    read_offsets,
)
from tidelog.client.metadata import Leader
from tidelog.client.settings import parse_settings
from tidelog.model.errors import ErrorCode, ProtocolViolation
from tidelog.model.ids import TopicPartition
from tidelog.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from tidelog.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

AT, ID = TopicPartition("t", 3), b"i" * 16
SETTINGS = parse_settings({"bootstrap.servers": "a:1", "client.rack": "r"})


@pytest.mark.parametrize("version", [4, 12, 13, 18])
def test_a_fetch_names_the_topic_by_id_where_it_can(version: int) -> None:
    request = fetch_request(SETTINGS, AT, ID, 70, 5, 1000)
    said = FetchRequest.decode(request.encode(version), version)
    (topic,) = said.topics
    assert (topic.topic, bytes(topic.topic_id)) == (("", ID) if version >= 13 else ("t", bytes(16)))
    assert (topic.partitions[0].fetch_offset, topic.partitions[0].partition_max_bytes) == (70, 1000)
    assert said.isolation_level == 1


def answered(part: PartitionData, **fields: object) -> FetchResponse:
    topic = FetchableTopicResponse(topic_id=ID, partitions=[part])
    return FetchResponse(responses=[topic], **fields)  # type: ignore[arg-type]


def test_an_answer_has_the_records_and_the_aborted_transactions_in_order() -> None:
    aborted = [AbortedTransaction(producer_id=7, first_offset=9), AbortedTransaction(producer_id=8, first_offset=2)]
    part = PartitionData(partition_index=3, high_watermark=10, last_stable_offset=9, records=b"abc", aborted_transactions=aborted)
    found = read_fetch(answered(part), AT, ID)
    assert (found.error, found.high_watermark, bytes(found.records)) == (ErrorCode.NONE, 10, b"abc")
    assert found.aborted == ((8, 2), (7, 9))
    assert found.new_leader is None


def test_an_answer_names_the_new_leader_and_where_it_is() -> None:
    part = PartitionData(partition_index=3, error_code=6, current_leader=LeaderIdAndEpoch(2, 8))
    found = read_fetch(answered(part, node_endpoints=[NodeEndpoint(2, "h", 92)]), AT, ID)
    assert judge(found.error) is Verdict.REFRESH
    assert (found.new_leader, found.endpoints) == (Leader(2, 8), ((2, "h", 92),))


def test_an_error_of_the_whole_request_is_the_partitions() -> None:
    assert read_fetch(FetchResponse(error_code=100), AT, ID).error is ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("response", [FetchResponse(), answered(PartitionData(partition_index=4))])
def test_an_answer_about_something_else_is_a_violation(response: FetchResponse) -> None:
    with pytest.raises(ProtocolViolation, match="answers a Fetch of t-3"):
        read_fetch(response, AT, ID)


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (1, Verdict.OUT_OF_RANGE),
        (3, Verdict.GONE),
        (6, Verdict.REFRESH),
        (74, Verdict.REFRESH),
        (75, Verdict.RETRY),
        (78, Verdict.RETRY),
        (29, Verdict.FAIL),
        (2, Verdict.FAIL),
        (12345, Verdict.RETRY),
    ],
)
def test_what_passes_is_waited_for_and_what_does_not_is_told(code: int, verdict: Verdict) -> None:
    assert judge(error_of(code)) is verdict


def test_offsets_of_many_partitions_are_one_question() -> None:
    wanted = {AT: (-2, 5), TopicPartition("u", 0): (1234, -1)}
    said = ListOffsetsRequest.decode(list_offsets_request(wanted, 1, 500).encode(11), 11)
    parts = {(t.name, p.partition_index): (p.timestamp, p.current_leader_epoch) for t in said.topics for p in t.partitions}
    assert parts == {("t", 3): (-2, 5), ("u", 0): (1234, -1)}
    assert said.isolation_level == 1


def test_an_answer_without_a_partition_that_was_asked_for_is_a_violation() -> None:
    part = ListOffsetsPartitionResponse(partition_index=3, offset=40, error_code=0)
    response = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[part])])
    assert read_offsets(response, [AT]) == {AT: (ErrorCode.NONE, 40)}
    with pytest.raises(ProtocolViolation, match="without u-0"):
        read_offsets(response, [AT, TopicPartition("u", 0)])
