"""A Fetch as records: what readers must not see is left out, and the next offset goes past it."""

from __future__ import annotations

import pytest

from tests.unit.client.scripted import Table, answered
from tidelog.client.calls import Node
from tidelog.client.reading import Chunk, Located, Looked, decoded, locate, look, read
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.protocol.messages.fetch import AbortedTransaction, FetchableTopicResponse, FetchResponse, PartitionData
from tidelog.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from tidelog.records.batch import CorruptBatch
from tidelog.records.builder import RecordData, build_batch

AT = TopicPartition("t", 1)
HERE = Located(b"i" * 16, 7, 3)


def batch(first: int, *values: bytes, producer: int = -1, control: bool = False) -> bytes:
    key = b"\0\0\0\0" if control else None
    records = [RecordData(key, value, 5, ()) for value in values]
    transactional = producer >= 0
    return bytes(build_batch(records, base_offset=first, producer_id=producer, transactional=transactional, control=control))


def test_records_from_an_offset_in_the_middle_of_a_batch() -> None:
    records, end = decoded(batch(10, b"a", b"b", b"c") + batch(20, b"d"), 11, ())
    assert [(record.offset, record.value) for record in records] == [(11, b"b"), (12, b"c"), (20, b"d")]
    assert end == 21


def test_aborted_batches_and_markers_are_left_out_and_passed() -> None:
    data = batch(0, b"a", producer=5) + batch(1, b"b") + batch(2, b"", producer=5, control=True) + batch(3, b"c", producer=5)
    records, end = decoded(data, 0, ((5, 0),))
    assert [record.value for record in records] == [b"b", b"c"]
    assert end == 4
    assert decoded(batch(4, b"", producer=5, control=True), 4, ()) == ([], 5)


def test_a_batch_that_was_cut_off_is_read_next_time() -> None:
    assert decoded(batch(0, b"a") + batch(1, b"b")[:-1], 0, ())[1] == 1
    assert decoded(b"", 9, ()) == ([], 9)


def test_a_damaged_batch_is_an_error() -> None:
    data = bytearray(batch(0, b"abc"))
    data[-3] ^= 1
    with pytest.raises(CorruptBatch):
        decoded(data, 0, ())


def fetched(**fields: object) -> FetchResponse:
    part = PartitionData(partition_index=1, high_watermark=9, last_stable_offset=4, log_start_offset=2, **fields)  # type: ignore[arg-type]
    return FetchResponse(responses=[FetchableTopicResponse(topic_id=HERE.topic_id, partitions=[part])])


@pytest.mark.parametrize(("committed", "end", "values"), [(True, 4, [b"b"]), (False, 9, [b"a", b"b"])])
def test_what_is_committed_ends_at_the_last_stable_offset(committed: bool, end: int, values: list[bytes]) -> None:
    aborted = [AbortedTransaction(producer_id=5, first_offset=2)]
    table = Table(fetched(records=batch(2, b"a", producer=5) + batch(3, b"b"), aborted_transactions=aborted))
    found = answered(read(AT, HERE, 2, committed=committed, max_bytes=100, wait_ms=10), table)
    assert isinstance(found, Chunk)
    assert ([record.value for record in found.records], found.next_offset, found.end_offset) == (values, 4, end)
    (ask,) = table.asked
    assert (ask.to, ask.request.isolation_level) == (Node(7), int(committed))


@pytest.mark.parametrize(
    "response",
    [
        fetched(error_code=int(ErrorCode.NOT_LEADER_OR_FOLLOWER)),
        FetchResponse(error_code=int(ErrorCode.NOT_LEADER_OR_FOLLOWER)),
    ],
)
def test_errors_are_answers(response: FetchResponse) -> None:
    found = answered(read(AT, HERE, 2, committed=True, max_bytes=100, wait_ms=10), Table(response))
    assert found is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_damaged_answer_is_an_error_of_its_own() -> None:
    data = bytearray(batch(2, b"abc"))
    data[-3] ^= 1
    found = answered(read(AT, HERE, 2, committed=True, max_bytes=100, wait_ms=10), Table(fetched(records=bytes(data))))
    assert found is ErrorCode.CORRUPT_MESSAGE


def test_partitions_are_located_where_they_have_a_leader() -> None:
    parts = [
        MetadataResponsePartition(partition_index=index, leader_id=leader, leader_epoch=4) for index, leader in ((0, -1), (1, 7))
    ]
    topic = MetadataResponseTopic(name="t", topic_id=HERE.topic_id, partitions=parts)
    missing = MetadataResponseTopic(name="u", error_code=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    found = answered(locate(["t", "u"]), Table(MetadataResponse(topics=[topic, missing])))
    assert found == {AT: Located(HERE.topic_id, 7, 4)}


def looked(offset: int, *responses: FetchResponse) -> Looked | ErrorCode:
    answers = list(responses)
    return answered(look(AT, HERE, offset, max_bytes=100), lambda step: answers.pop(0))


def test_what_lies_at_an_offset() -> None:
    data = batch(2, b"a", b"b") + batch(5, b"", producer=5, control=True)
    found = looked(3, fetched(records=data))
    assert isinstance(found, Looked)
    assert found.record is not None
    assert (found.record.value, found.control, found.aborted) == (b"b", False, False)
    assert looked(4, fetched(records=data)) == Looked(None)
    assert looked(5, fetched(records=batch(5, b"", producer=5, control=True))) == Looked(None, control=True)
    assert looked(3, fetched(error_code=int(ErrorCode.NOT_LEADER_OR_FOLLOWER))) is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(("first", "aborted"), [(2, True), (4, False)])
def test_a_record_of_an_aborted_transaction_is_told(first: int, aborted: bool) -> None:
    data = batch(2, b"a", b"b", producer=5)
    listed = [AbortedTransaction(producer_id=6, first_offset=0), AbortedTransaction(producer_id=5, first_offset=first)]
    found = looked(3, fetched(records=data), fetched(aborted_transactions=listed))
    assert isinstance(found, Looked)
    assert found.aborted is aborted
