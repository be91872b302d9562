"""Frames of our own, read by tidelog's decoders."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from bench.pair import frames
from bench.pair.rows import LOADS, Load
from tidelog.protocol.messages.create_topics import CreateTopicsRequest
from tidelog.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from tidelog.protocol.messages.fetch import FetchRequest
from tidelog.protocol.messages.metadata import MetadataRequest
from tidelog.protocol.messages.produce import ProduceRequest
from tidelog.records.batch import crc_is_valid, iter_headers
from tidelog.records.record import iter_records

HEADER = 4 + 8 + 2 + len(frames.CLIENT_ID) + 1
TOPIC_ID = bytes(range(16))


def test_varints_are_those_of_protobuf() -> None:
    assert frames.uvarint(300) == b"\xac\x02"
    assert [frames.varint(each) for each in (0, -1, 1, -2, 150)] == [b"\0", b"\1", b"\2", b"\3", b"\xac\x02"]


def test_a_batch_holds_its_records() -> None:
    batch = frames.batch(3, 100)
    (header,) = iter_headers(batch)
    assert header.records_count == 3
    assert crc_is_valid(batch, header)
    assert [len(each.value or b"") for each in iter_records(batch, header)] == [100, 100, 100]


def body(request: bytes, version: int) -> bytes:
    """What follows the header."""
    assert int.from_bytes(request[:4], "big") == len(request) - 4
    assert struct.unpack_from(">h", request, 6) == (version,)
    return request[HEADER:]


def test_requests_say_what_they_should() -> None:
    records = frames.batch(1, 10)
    sent = ProduceRequest.decode(body(frames.produce("topic", [0, 3], records, acks=1).request, 12), 12)
    assert (sent.acks, sent.topic_data[0].name) == (1, "topic")
    assert [(each.index, bytes(each.records or b"")) for each in sent.topic_data[0].partition_data] == [
        (0, records),
        (3, records),
    ]
    asked = MetadataRequest.decode(body(frames.metadata("topic").request, 12), 12)
    assert asked.topics is not None
    assert [each.name for each in asked.topics] == ["topic"]
    made = CreateTopicsRequest.decode(body(frames.create_topic("topic", [[1, 2], [2, 1]]), 7), 7)
    assert [each.broker_ids for each in made.topics[0].assignments] == [[1, 2], [2, 1]]


def test_the_offset_of_a_fetch_is_where_the_frame_says() -> None:
    frame = frames.fetch(TOPIC_ID, 5, 0x1122334455667788, 1000, 1)
    assert frame.request[frame.offset_at : frame.offset_at + 8] == bytes.fromhex("1122334455667788")
    asked = FetchRequest.decode(body(frame.request, 17), 17)
    wanted = asked.topics[0].partitions[0]
    assert (wanted.partition, wanted.fetch_offset, wanted.partition_max_bytes) == (5, 0x1122334455667788, 1000)


def test_a_file_of_frames_says_the_length_of_each(tmp_path: Path) -> None:
    path = tmp_path / "frames"
    frames.write_frames(path, [frames.Frame(b"abc", 7, 9), frames.Frame(b"de")])
    assert path.read_bytes() == struct.pack(">iiii", 7, 9, -1, 3) + b"abc" + struct.pack(">iiii", -1, 0, -1, 2) + b"de"


@pytest.mark.parametrize("load", LOADS, ids=lambda load: load.name)
def test_every_load_has_frames_and_a_topic_kafka_takes(load: Load) -> None:
    assert re.fullmatch(r"[A-Za-z0-9-]+", load.topic)
    assert load.build(load.topic, TOPIC_ID)


def test_a_fetch_of_several_partitions_names_each() -> None:
    frame = frames.fetch_several(TOPIC_ID, [4, 0], 77, 1000, 1)
    asked = FetchRequest.decode(body(frame.request, 17), 17)
    assert [(each.partition, each.fetch_offset) for each in asked.topics[0].partitions] == [(4, 77), (0, 77)]
    assert asked.max_bytes == 2000
    assert frame.request[frame.offset_at : frame.offset_at + 8] == (77).to_bytes(8, "big")


def test_a_topic_is_deleted_by_name() -> None:
    assert DeleteTopicsRequest.decode(body(frames.delete_topic("topic"), 5), 5).topic_names == ["topic"]
    answer = DeleteTopicsResponse(responses=[DeletableTopicResult(name="topic", error_code=3)])
    assert frames.deleted(bytes(5) + answer.encode(5), "topic") == 3
