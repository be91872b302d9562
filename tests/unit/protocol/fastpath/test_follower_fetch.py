"""A follower's plain Fetch at its edges; tests/property/test_codec_fastpath.py compares it with the generated classes."""

from __future__ import annotations

import struct

import pytest

from tidelog.model.ids import Uuid
from tidelog.protocol.fastpath.follower_fetch import Found, PlainAnswer, PlainRequests, read_plain_answer
from tidelog.protocol.framing import encode_response
from tidelog.protocol.messages.fetch import EpochEndOffset, FetchableTopicResponse, FetchResponse, LeaderIdAndEpoch, PartitionData

ID = Uuid(b"i" * 16)
CORRELATION = 70_000


def requests() -> PlainRequests:
    return PlainRequests(17, "node-2", 2, min_bytes=1, max_bytes=10 << 20, partition_max_bytes=1 << 20)


def response(*records: bytes | None, session_id: int = 7) -> FetchResponse:
    found = [PartitionData(index, 0, 80, 79, 5, aborted_transactions=None, records=each) for index, each in enumerate(records, 1)]
    return FetchResponse(0, 0, session_id, [FetchableTopicResponse("", ID, found)])


def frame(answer: FetchResponse) -> memoryview:
    return memoryview(encode_response(CORRELATION, True, answer.encode(17)))[4:]


def found(index: int, records: bytes) -> Found:
    return ID, index, 80, 5, memoryview(records)


@pytest.mark.parametrize("records", [b"r" * 300, b"r", b""])
def test_watermarks_and_batches_are_read(records: bytes) -> None:
    assert read_plain_answer(frame(response(records)), CORRELATION) == PlainAnswer(7, (found(1, records),))


def test_null_for_batches_is_none() -> None:
    assert read_plain_answer(frame(response(None)), CORRELATION) == PlainAnswer(7, (found(1, b""),))


def test_an_answer_with_several_partitions_or_none_is_plain_too() -> None:
    several = read_plain_answer(frame(response(b"a", b"bc", b"")), CORRELATION)
    assert several == PlainAnswer(7, [found(1, b"a"), found(2, b"bc"), found(3, b"")])
    assert read_plain_answer(frame(FetchResponse(0, 0, 7, [])), CORRELATION) == PlainAnswer(7, [])


def unusual(case: str, parts: int) -> FetchResponse:
    answer = response(*[b"r"] * parts)
    part = answer.responses[0].partitions[-1]
    if case == "the answer's error":
        answer.error_code = 70
    elif case == "a partition's error":
        part.error_code = 6
    elif case == "a divergence":
        part.diverging_epoch = EpochEndOffset(3, 60)
    elif case == "another leader":
        part.current_leader = LeaderIdAndEpoch(1, 4)
    elif case == "another replica":
        part.preferred_read_replica = 3
    return answer


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(
    "case", ["the answer's error", "a partition's error", "a divergence", "another leader", "another replica"]
)
def test_what_is_unusual_is_left_to_the_generated_class(case: str, parts: int) -> None:
    assert read_plain_answer(frame(unusual(case, parts)), CORRELATION) is None


def test_the_answer_to_another_request_is_not_read() -> None:
    assert read_plain_answer(frame(response(b"r")), CORRELATION + 1) is None
    assert read_plain_answer(frame(response(b"r", b"r")), CORRELATION + 1) is None


@pytest.mark.parametrize("parts", [0, 1, 2])
def test_what_is_cut_off_or_goes_on_is_not_read(parts: int) -> None:
    data = bytes(frame(response(*[b"r" * 300] * parts)))
    assert read_plain_answer(data, CORRELATION) is not None
    for length in range(len(data)):
        assert read_plain_answer(data[:length], CORRELATION) is None
    assert read_plain_answer(data + b"\0", CORRELATION) is None


def test_a_value_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(struct.error):
        requests().frame(1, 2**31, 7, 4, 99, [(ID, 0, 3, 70, 3, 5)])


def test_versions_that_name_the_replica_elsewhere_are_not_written() -> None:
    with pytest.raises(AssertionError):
        PlainRequests(14, "node-2", 2, min_bytes=1, max_bytes=1, partition_max_bytes=1)
