"""A follower's Fetch by hand, at its edges; tests/property/test_codec_fastpath.py compares it with the generated class."""

from __future__ import annotations

import pytest

from tidelog.model.errors import ProtocolViolation
from tidelog.model.ids import Uuid
from tidelog.protocol.fastpath import follower_fetch
from tidelog.protocol.fastpath.follower_fetch import read_follower_fetch, write_follower_fetch
from tidelog.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)

ID = Uuid(b"i" * 16)


def request(*, partitions: int = 1, **changes: object) -> FetchRequest:
    wanted = [FetchPartition(index, 3, 70, 3, 5, 1 << 20) for index in range(partitions)]
    found = FetchRequest(
        replica_state=ReplicaState(2, 99),
        max_wait_ms=500,
        min_bytes=1,
        session_id=7,
        session_epoch=4,
        topics=[FetchTopic("", ID, wanted)],
    )
    for name, value in changes.items():
        setattr(found, name, value)
    return found


def response(records: bytes | None, *, session_id: int = 7) -> FetchResponse:
    found = PartitionData(1, 0, 80, 79, 5, aborted_transactions=None, records=records)
    return FetchResponse(0, 0, session_id, [FetchableTopicResponse("", ID, [found])])


def written(wanted: FetchRequest, version: int) -> bytes:
    out = bytearray()
    write_follower_fetch(wanted, out, version)
    return bytes(out)


def test_one_partition_is_written_without_the_generated_class(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {version: request().encode(version) for version in range(15, 19)}
    monkeypatch.setattr(FetchRequest, "_write", None)
    for version, data in expected.items():
        assert written(request(), version) == data


@pytest.mark.parametrize(
    "wanted", [request(partitions=0), request(partitions=2), request(rack_id="a"), request(cluster_id="c"), request(topics=[])]
)
def test_other_requests_are_written_by_the_generated_class(wanted: FetchRequest) -> None:
    assert written(wanted, 17) == wanted.encode(17)


def test_versions_that_name_the_replica_elsewhere_are_left_to_the_generated_class() -> None:
    old = request(replica_state=ReplicaState(), replica_id=2)
    assert written(old, 14) == old.encode(14)
    with pytest.raises(ValueError, match="no version 19"):
        written(request(), 19)


def test_an_answer_with_one_partition_is_read_without_the_generated_class(monkeypatch: pytest.MonkeyPatch) -> None:
    data = response(b"r" * 300).encode(17)
    monkeypatch.setattr(FetchResponse, "_read", None)
    found = read_follower_fetch(memoryview(data), 17)
    assert found == response(b"r" * 300)


@pytest.mark.parametrize("records", [None, b"", b"r"])
def test_answers_with_few_bytes_or_none_are_read_too(records: bytes | None) -> None:
    assert read_follower_fetch(memoryview(response(records).encode(17)), 17) == response(records)


def test_an_answer_with_tags_is_read_by_the_generated_class() -> None:
    diverged = response(b"r" * 20)
    diverged.responses[0].partitions[0].diverging_epoch = EpochEndOffset(3, 60)
    assert read_follower_fetch(memoryview(diverged.encode(17)), 17) == diverged


def test_what_is_cut_off_is_a_violation() -> None:
    data = response(b"r" * 300).encode(17)
    for length in range(len(data)):
        with pytest.raises(ProtocolViolation):
            follower_fetch.read_follower_fetch(memoryview(data)[:length], 17)
