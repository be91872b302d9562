"""The hand-written path of Produce and Fetch against the generated classes: same meaning, same bytes, same refusals."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.protocol.random_messages import Maker, message_named
from tidelog.model.errors import ProtocolViolation
from tidelog.model.ids import Uuid
from tidelog.model.ports import FileSlice
from tidelog.protocol import framing
from tidelog.protocol.fastpath import (
    FetchResult,
    FetchView,
    ProduceResult,
    ProduceView,
    encode_fetch_response,
    encode_produce_response,
    read_fetch,
    read_produce,
)
from tidelog.protocol.fastpath.follower_fetch import read_follower_fetch, write_follower_fetch
from tidelog.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from tidelog.protocol.messages.produce import ProduceRequest, ProduceResponse

PRODUCE = st.integers(3, 13)
FETCH = st.integers(4, 18)
SEED = st.integers(0, 2**32)
REQUESTS: dict[str, tuple[Any, Any, Any]] = {
    "ProduceRequest": (ProduceRequest, ProduceView, read_produce),
    "FetchRequest": (FetchRequest, FetchView, read_fetch),
}


class MemoryFile:
    """A file in memory, to make slices of."""

    path = "memory"

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, position: int, length: int) -> bytes:
        return self.data[position : position + length]


def both_ways(name: str, data: bytes, version: int) -> tuple[Any, Any]:
    """What the plain and the fast path make of a body: a view, or None where it is refused."""
    plain_class, view_class, read = REQUESTS[name]
    try:
        plain = view_class.from_message(plain_class.read(data, 0, version), version)
    except ProtocolViolation:
        plain = None
    try:
        fast = read(b"head" + data, 4, version)
    except ProtocolViolation:
        fast = None
    return plain, fast


@settings(max_examples=300)
@given(SEED, PRODUCE, FETCH)
def test_requests_mean_the_same_to_both(seed: int, produce: int, fetch: int) -> None:
    for name, version in (("ProduceRequest", produce), ("FetchRequest", fetch)):
        data = Maker(message_named(name), version, random.Random(seed)).make().encode(version)
        plain, fast = both_ways(name, data, version)
        assert plain is not None
        assert fast == plain


@settings(max_examples=500)
@given(SEED, PRODUCE, FETCH, st.data())
def test_broken_requests_are_refused_by_both_or_by_neither(seed: int, produce: int, fetch: int, data: st.DataObject) -> None:
    for name, version in (("ProduceRequest", produce), ("FetchRequest", fetch)):
        body = bytearray(Maker(message_named(name), version, random.Random(seed)).make().encode(version))
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(body) - 1))
            body[at] = data.draw(st.sampled_from((0, 1, 2, 3, 0x7F, 0x80, 0xFF)))
        body = body[: data.draw(st.integers(0, len(body)))] if data.draw(st.booleans()) else body
        plain, fast = both_ways(name, bytes(body), version)
        assert fast == plain


def leader_of(partition: Any, name: str, first: str, second: str) -> tuple[int, int]:
    value = getattr(partition, name)
    return getattr(value, first), getattr(value, second)


@settings(max_examples=300)
@given(SEED, PRODUCE)
def test_produce_responses_are_the_same_bytes(seed: int, version: int) -> None:
    response: ProduceResponse = Maker(message_named("ProduceResponse"), version, random.Random(seed)).make()
    topics = [
        (
            topic.name,
            Uuid(topic.topic_id),
            [
                ProduceResult(
                    p.index,
                    p.error_code,
                    p.base_offset,
                    p.log_append_time_ms,
                    p.log_start_offset,
                    [(e.batch_index, e.batch_index_error_message) for e in p.record_errors],
                    p.error_message,
                    leader_of(p, "current_leader", "leader_id", "leader_epoch"),
                )
                for p in topic.partition_responses
            ],
        )
        for topic in response.responses
    ]
    endpoints = [(n.node_id, n.host, n.port, n.rack) for n in response.node_endpoints]
    frame = encode_produce_response(7, version, topics, throttle_time_ms=response.throttle_time_ms, node_endpoints=endpoints)
    assert frame == framing.encode_response_message(7, 0, version, response)


@settings(max_examples=300)
@given(SEED, FETCH)
def test_fetch_responses_are_the_same_bytes_with_records_in_files_or_in_memory(seed: int, version: int) -> None:
    rng = random.Random(seed)
    response: FetchResponse = Maker(message_named("FetchResponse"), version, rng).make()

    def records(data: Any) -> Any:
        choice = rng.randrange(3)
        if data is None or choice == 0:
            return data
        if choice == 1:
            return memoryview(data)
        return FileSlice(MemoryFile(b"before" + bytes(data) + b"after"), 6, len(data))  # type: ignore[arg-type]

    for topic in response.responses:
        for partition in topic.partitions:
            if partition.records and rng.random() < 0.2:
                partition.records = bytes(partition.records) * 50
    topics = [
        (
            topic.topic,
            Uuid(topic.topic_id),
            [
                FetchResult(
                    p.partition_index,
                    p.error_code,
                    p.high_watermark,
                    p.last_stable_offset,
                    p.log_start_offset,
                    records(p.records),
                    None if p.aborted_transactions is None else [(a.producer_id, a.first_offset) for a in p.aborted_transactions],
                    p.preferred_read_replica,
                    leader_of(p, "diverging_epoch", "epoch", "end_offset"),
                    leader_of(p, "current_leader", "leader_id", "leader_epoch"),
                    leader_of(p, "snapshot_id", "end_offset", "epoch"),
                )
                for p in topic.partitions
            ],
        )
        for topic in response.responses
    ]
    parts, total = encode_fetch_response(
        7,
        version,
        topics,
        throttle_time_ms=response.throttle_time_ms,
        error_code=response.error_code,
        session_id=response.session_id,
        node_endpoints=[(n.node_id, n.host, n.port, n.rack) for n in response.node_endpoints],
    )
    frame = b"".join(part.read() if isinstance(part, FileSlice) else bytes(part) for part in parts)
    assert frame == framing.encode_response_message(7, 1, version, response)
    assert total == len(frame)


def follower_request(seed: int, version: int) -> FetchRequest:
    """Random, and mostly of the shape that a follower sends under load."""
    rng = random.Random(seed)
    request: FetchRequest = Maker(message_named("FetchRequest"), version, rng).make()
    if rng.random() < 0.8:
        usual = FetchRequest()
        for name in ("cluster_id", "replica_id", "forgotten_topics_data", "rack_id"):
            if rng.random() < 0.9:
                setattr(request, name, getattr(usual, name))
        del request.topics[1:]
        for topic in request.topics:
            del topic.partitions[1:]
            for partition in topic.partitions:
                if rng.random() < 0.8:
                    partition.high_watermark = 0x7FFFFFFFFFFFFFFF
                    partition.replica_directory_id = bytes(16)
    return request


@settings(max_examples=500, deadline=None)
@given(SEED, FETCH)
def test_follower_requests_are_the_same_bytes(seed: int, version: int) -> None:
    request = follower_request(seed, version)
    out = bytearray(b"head")
    write_follower_fetch(request, out, version)
    assert out == b"head" + request.encode(version)


@settings(max_examples=300, deadline=None)
@given(SEED, st.integers(7, 18), st.data())
def test_what_does_not_fit_is_refused_by_both(seed: int, version: int, data: st.DataObject) -> None:
    request = follower_request(seed, version)
    name = data.draw(st.sampled_from(("max_wait_ms", "isolation_level", "session_epoch")))
    setattr(request, name, data.draw(st.sampled_from((2**31, -(2**63), 2**70))))
    out = bytearray(b"head")
    with pytest.raises(ValueError, match="does not fit"):
        write_follower_fetch(request, out, version)


def followed(body: bytes, version: int) -> tuple[Any, Any]:
    """What the generated class and the fast path make of a response; None where it is refused."""
    found: list[Any] = []
    for read in (FetchResponse.decode, read_follower_fetch):
        try:
            found.append(read(memoryview(body), version))
        except ProtocolViolation:
            found.append(None)
    return found[0], found[1]


@settings(max_examples=500, deadline=None)
@given(SEED, FETCH, st.data())
def test_answers_to_followers_mean_the_same_to_both_whole_or_broken(seed: int, version: int, data: st.DataObject) -> None:
    rng = random.Random(seed)
    response: FetchResponse = Maker(message_named("FetchResponse"), version, rng).make()
    if rng.random() < 0.9:
        usual = PartitionData()
        response.node_endpoints = []
        del response.responses[1:]
        for topic in response.responses:
            del topic.partitions[1:]
            for partition in topic.partitions:
                for name in ("diverging_epoch", "current_leader", "snapshot_id"):
                    setattr(partition, name, getattr(usual, name))
                partition.aborted_transactions = rng.choice(([], None))
                partition.records = rng.choice((None, b"", b"r" * 5, b"r" * 200, b"r" * 20_000))
    body = bytearray(response.encode(version))
    plain, fast = followed(bytes(body), version)
    assert plain is not None and fast == plain
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at] = data.draw(st.sampled_from((0, 1, 2, 3, 0x7F, 0x80, 0xFF)))
    body = body[: data.draw(st.integers(0, len(body)))] if data.draw(st.booleans()) else body
    plain, fast = followed(bytes(body), version)
    assert fast == plain
