"""Produce by hand, at its edges; tests/property/test_codec_fastpath.py compares it with the generated class."""

from __future__ import annotations

import pytest

from tidelog.model.errors import ProtocolViolation
from tidelog.model.ids import ZERO_UUID, Uuid
from tidelog.protocol.fastpath import ProduceResult, ProduceView, encode_produce_response, read_produce
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

ID = Uuid(b"i" * 16)


def request(version: int) -> bytes:
    partitions = [PartitionProduceData(index=0, records=b"batch"), PartitionProduceData(index=3)]
    topic = TopicProduceData(name="orders", topic_id=ID, partition_data=partitions)
    return ProduceRequest(transactional_id="t", acks=-1, timeout_ms=30000, topic_data=[topic]).encode(version)


@pytest.mark.parametrize("version", range(3, 14))
def test_a_request_is_read_where_it_lies(version: int) -> None:
    frame = bytearray(b"header") + request(version)
    view = read_produce(memoryview(frame), 6, version)
    assert (view.transactional_id, view.acks, view.timeout_ms) == ("t", -1, 30000)
    ((name, topic_id, partitions),) = view.topics
    assert (name, topic_id) == ((None, ID) if version >= 13 else ("orders", ZERO_UUID))
    assert partitions == [(0, b"batch"), (3, None)]
    records = partitions[0][1]
    assert records is not None
    records[:1] = b"B"
    assert b"Batch" in frame, "nothing was copied, so the base offset can be patched in place"


def one_partition(version: int, name: str, records: bytes | None, transactional_id: str | None = None) -> bytes:
    topic = TopicProduceData(name=name, topic_id=ID, partition_data=[PartitionProduceData(index=4, records=records)])
    return ProduceRequest(transactional_id=transactional_id, acks=1, timeout_ms=900, topic_data=[topic]).encode(version)


@pytest.mark.parametrize("version", range(9, 14))
@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 20_000])
def test_a_request_of_one_partition_is_read_as_the_generated_class_reads_it(version: int, size: int) -> None:
    for name in ("t", "n" * 126, "n" * 127, "\N{EURO SIGN}"):
        data = one_partition(version, name, b"r" * size)
        view = read_produce(bytearray(b"head" + data), 4, version)
        assert view == ProduceView.from_message(ProduceRequest.decode(data, version), version)


@pytest.mark.parametrize("version", [9, 12, 13])
def test_one_partition_without_records_or_in_a_transaction_is_read_too(version: int) -> None:
    for data in (one_partition(version, "t", None), one_partition(version, "t", b"r", "pay")):
        view = read_produce(data, 0, version)
        assert view == ProduceView.from_message(ProduceRequest.decode(data, version), version)


def test_a_request_of_one_partition_that_is_cut_off_or_has_a_bad_name_is_a_violation() -> None:
    for version in (9, 12, 13):
        data = one_partition(version, "orders", b"r" * 200)
        for length in range(len(data)):
            with pytest.raises(ProtocolViolation):
                read_produce(data[:length], 0, version)
    with pytest.raises(ProtocolViolation):
        read_produce(one_partition(9, "ab", b"r").replace(b"ab", b"\xff\xfe"), 0, 9)


def test_what_is_cut_off_is_a_violation_and_what_follows_is_left_alone() -> None:
    for version in (3, 9, 13):
        data = request(version)
        for length in range(len(data)):
            with pytest.raises(ProtocolViolation):
                read_produce(data[:length], 0, version)
        assert read_produce(data + b"\0", 0, version) == read_produce(data, 0, version)


def test_null_for_an_array_is_a_violation() -> None:
    start = ProduceRequest().encode(3)
    assert start.endswith(b"\0\0\0\0")
    with pytest.raises(ProtocolViolation, match="null"):
        read_produce(start[:-4] + b"\xff\xff\xff\xff", 0, 3)


def test_a_leader_hint_is_dropped_where_the_version_has_no_place_for_it() -> None:
    result = ProduceResult(index=1, error_code=6, current_leader=(2, 7))
    for version in range(3, 14):
        frame = encode_produce_response(5, version, [("orders", ID, [result])], node_endpoints=[(2, "h", 9092, None)])
        header = 9 if version >= 9 else 8
        response = ProduceResponse.decode(frame[header:], version)
        leader = response.responses[0].partition_responses[0].current_leader
        assert (leader.leader_id, leader.leader_epoch) == ((2, 7) if version >= 10 else (-1, -1))
        assert [e.node_id for e in response.node_endpoints] == ([2] if version >= 10 else [])
