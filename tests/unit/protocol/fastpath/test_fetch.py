"""Fetch by hand, at its edges; tests/property/test_codec_fastpath.py compares it with the generated class."""

from __future__ import annotations

import struct

import pytest

from tidelog.model.errors import ProtocolViolation
from tidelog.model.ids import Uuid
from tidelog.model.ports import FileSlice
from tidelog.protocol.fastpath import FetchResult, encode_fetch_response, read_fetch
from tidelog.protocol.fastpath.fetch import INLINE_RECORDS
from tidelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState

ID = Uuid(b"i" * 16)


class NeverRead:
    """A file that must not be touched while a response is being made."""

    path = "never"

    def read(self, position: int, length: int) -> bytes:
        raise AssertionError("the fast path read a file")


def slice_of(length: int) -> FileSlice:
    return FileSlice(NeverRead(), 100, length)  # type: ignore[arg-type]


def test_kraft_fields_are_checked_and_left_out() -> None:
    partition = FetchPartition(partition=1, fetch_offset=9, replica_directory_id=ID, high_watermark=4)
    data = FetchRequest(topics=[FetchTopic(topic_id=ID, partitions=[partition])]).encode(18)
    assert read_fetch(data, 0, 18).topics == [(None, ID, [(1, -1, 9, -1, -1, 0)])]
    at = data.index(b"\x00\x10" + ID)
    with pytest.raises(ProtocolViolation, match="tag 0"):
        read_fetch(data[:at] + b"\x00\x0f" + data[at + 3 :], 0, 18)


def test_the_replica_is_named_in_the_body_or_in_a_tag() -> None:
    old = FetchRequest(replica_id=4).encode(14)
    new = FetchRequest(replica_state=ReplicaState(replica_id=4, replica_epoch=99)).encode(15)
    assert (read_fetch(old, 0, 14).replica_id, read_fetch(old, 0, 14).replica_epoch) == (4, -1)
    assert (read_fetch(new, 0, 15).replica_id, read_fetch(new, 0, 15).replica_epoch) == (4, 99)
    assert read_fetch(FetchRequest().encode(18), 0, 18).replica_id == -1


def test_what_is_cut_off_is_a_violation_and_what_follows_is_left_alone() -> None:
    for version in (4, 9, 12, 18):
        data = FetchRequest(topics=[FetchTopic(topic="t", topic_id=ID, partitions=[FetchPartition()])]).encode(version)
        for length in range(len(data)):
            with pytest.raises(ProtocolViolation):
                read_fetch(data[:length], 0, version)
        assert read_fetch(data + b"\0", 0, version) == read_fetch(data, 0, version)


def test_slices_stay_slices_between_the_bytes_around_them() -> None:
    for version in (4, 11, 12, 18):
        results = [
            FetchResult(0, records=slice_of(500)),
            FetchResult(1, records=slice_of(0)),
            FetchResult(2, records=slice_of(7)),
        ]
        parts, total = encode_fetch_response(3, version, [("orders", ID, results)])
        assert [type(part).__name__ for part in parts[:4]] == ["bytearray", "FileSlice", "bytearray", "FileSlice"]
        frame = b"".join(b"r" * part.length if isinstance(part, FileSlice) else bytes(part) for part in parts)
        assert total == len(frame) == struct.unpack_from(">i", frame)[0] + 4
        assert all(isinstance(part, FileSlice) or len(part) for part in parts)
        response = FetchResponse.decode(frame[9 if version >= 12 else 8 :], version)
        assert [p.records for p in response.responses[0].partitions] == [b"r" * 500, b"", b"r" * 7]


def test_small_records_in_memory_travel_with_the_bytes_around_them_and_large_ones_are_not_copied() -> None:
    small, large = b"s" * INLINE_RECORDS, b"l" * (INLINE_RECORDS + 1)
    parts, _ = encode_fetch_response(3, 12, [("t", ID, [FetchResult(0, records=small), FetchResult(1, records=large)])])
    assert len(parts) == 3
    assert parts[1] is large


def test_null_and_empty_records_differ() -> None:
    results = [FetchResult(0, records=None), FetchResult(1, records=b"")]
    for version in (4, 12):
        parts, _ = encode_fetch_response(3, version, [("t", ID, results)])
        (frame,) = parts
        assert isinstance(frame, bytearray)
        response = FetchResponse.decode(frame[9 if version >= 12 else 8 :], version)
        assert [p.records for p in response.responses[0].partitions] == [None, b""]


def test_a_tag_that_is_not_yet_known_at_a_version_is_passed_over() -> None:
    topics = [FetchTopic(topic_id=ID, partitions=[FetchPartition(partition=1, fetch_offset=9)])]
    data = FetchRequest(topics=topics).encode(17)
    at = data.index(b"\0\0\0\x01") + 32
    assert data[at] == 0, "the partition's tags"
    with_tag = data[:at] + b"\x01\x01\x03abc" + data[at + 1 :]
    assert read_fetch(with_tag, 0, 17).topics == [(None, ID, [(1, -1, 9, -1, -1, 0)])]
    with pytest.raises(ProtocolViolation, match="tag 1"):
        read_fetch(with_tag, 0, 18)


def test_what_the_version_has_no_place_for_is_dropped() -> None:
    result = FetchResult(0, diverging_epoch=(1, 2), current_leader=(3, 4), snapshot_id=(5, 6), preferred_read_replica=7)
    for version in range(4, 19):
        (frame,), _ = encode_fetch_response(3, version, [("t", ID, [result])], node_endpoints=[(3, "h", 9092, None)])
        assert isinstance(frame, bytearray)
        response = FetchResponse.decode(frame[9 if version >= 12 else 8 :], version)
        partition = response.responses[0].partitions[0]
        assert partition.current_leader.leader_id == (3 if version >= 12 else -1)
        assert partition.preferred_read_replica == (7 if version >= 11 else -1)
        assert len(response.node_endpoints) == (1 if version >= 16 else 0)
