"""The hand-written path of Produce and Fetch against the generated classes: same meaning, same bytes, same refusals."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.protocol.random_messages import Maker, message_named
from tidelog.model.errors import ProtocolViolation
from tidelog.model.ids import Uuid
from tidelog.model.ports import FileSlice
from tidelog.protocol import framing
from tidelog.protocol.api_keys import ApiKey
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
from tidelog.protocol.fastpath.follower_fetch import FIRST_PLAIN, LAST_PLAIN, PlainRequests, read_plain_answer
from tidelog.protocol.framing import RequestHeader
from tidelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData, ReplicaState
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


@st.composite
def plain_requests(draw: st.DrawFn) -> tuple[PlainRequests, FetchRequest, tuple[Any, ...], RequestHeader]:
    """A writer, a message, the same message as the writer takes it, and the header."""
    number, position = st.integers(0, 2**31 - 1), st.integers(-1, 2**63 - 1)
    version, client_id, limits = (
        draw(st.integers(FIRST_PLAIN, LAST_PLAIN)),
        draw(st.text(max_size=9)),
        draw(st.tuples(*[number] * 3)),
    )
    replica_id, correlation_id, max_wait_ms, session_id, epoch = draw(st.tuples(*[number] * 5))
    broker_epoch = draw(position)
    ids = draw(st.lists(st.binary(min_size=16, max_size=16).map(Uuid), min_size=1, max_size=3, unique=True))
    places = draw(st.lists(st.tuples(st.sampled_from(ids), number), max_size=200 if draw(st.booleans()) else 3, unique=True))
    wanted = [(topic_id, index, draw(number), draw(position), draw(number), draw(position)) for topic_id, index in places]
    topics: dict[Uuid, FetchTopic] = {}
    for topic_id, index, leader_epoch, offset, last_epoch, start in wanted:
        topic = topics.setdefault(topic_id, FetchTopic(topic_id=topic_id))
        topic.partitions.append(FetchPartition(index, leader_epoch, offset, last_epoch, start, limits[2]))
    message = FetchRequest(
        replica_state=ReplicaState(replica_id, broker_epoch),
        max_wait_ms=max_wait_ms,
        min_bytes=limits[0],
        max_bytes=limits[1],
        session_id=session_id,
        session_epoch=epoch,
        topics=list(topics.values()),
    )
    writer = PlainRequests(
        version, client_id, replica_id, min_bytes=limits[0], max_bytes=limits[1], partition_max_bytes=limits[2]
    )
    header = RequestHeader(ApiKey.FETCH, version, correlation_id, client_id)
    return writer, message, (correlation_id, max_wait_ms, session_id, epoch, broker_epoch, wanted), header


@settings(max_examples=300, deadline=None)
@given(plain_requests())
def test_plain_requests_are_the_same_bytes(made: tuple[PlainRequests, FetchRequest, tuple[Any, ...], RequestHeader]) -> None:
    writer, message, values, header = made
    assert writer.frame(*values) == framing.encode_request(header, message)


def followed(frame: bytes, version: int) -> tuple[Any, Any]:
    """What the generated class makes of an answer to request 5, as a plain answer or None; and what the fast path does."""
    plain: Any = None
    try:
        correlation_id, begin = framing.decode_response_header(frame, True)
        answer = FetchResponse.decode(memoryview(frame)[begin:], version)
    except ProtocolViolation:
        pass
    else:
        if correlation_id == 5 and is_plain(answer):
            found = [
                (topic.topic_id, each.partition_index, each.high_watermark, each.log_start_offset, bytes(each.records or b""))
                for topic in answer.responses
                for each in topic.partitions
            ]
            plain = answer.session_id, found
    fast = read_plain_answer(frame, 5)
    return plain, None if fast is None else (fast.session_id, [(*each[:4], bytes(each[4])) for each in fast.found])


def is_plain(answer: FetchResponse) -> bool:
    usual = PartitionData()
    return not (answer.error_code or answer.node_endpoints) and all(
        (each.error_code, each.diverging_epoch, each.current_leader, each.snapshot_id, each.preferred_read_replica)
        == (0, usual.diverging_epoch, usual.current_leader, usual.snapshot_id, -1)
        and not each.aborted_transactions
        for topic in answer.responses
        for each in topic.partitions
    )


@settings(max_examples=700, deadline=None)
@given(SEED, st.integers(FIRST_PLAIN, LAST_PLAIN), st.data())
def test_answers_to_followers_mean_the_same_to_both_whole_or_broken(seed: int, version: int, data: st.DataObject) -> None:
    """A broken answer may still have a meaning to the generated class, which knows tags that nothing here sends: then the fast
    path leaves it to that class."""
    rng = random.Random(seed)
    response: FetchResponse = Maker(message_named("FetchResponse"), version, rng).make()
    if rng.random() < 0.9:
        usual = PartitionData()
        response.node_endpoints, response.error_code = [], 0
        del response.responses[rng.randint(1, 2) :]
        for topic in response.responses:
            del topic.partitions[rng.randint(1, 3) :]
            for partition in topic.partitions:
                for name in ("diverging_epoch", "current_leader", "snapshot_id", "error_code", "preferred_read_replica"):
                    setattr(partition, name, getattr(usual, name))
                partition.aborted_transactions = rng.choice(([], None))
                partition.records = rng.choice((None, b"", b"r" * 5, b"r" * 200, b"r" * 20_000))
    frame = bytearray(framing.encode_response(5, True, response.encode(version))[4:])
    plain, fast = followed(bytes(frame), version)
    assert fast == plain
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(frame) - 1))
        frame[at] = data.draw(st.sampled_from((0, 1, 2, 3, 0x7F, 0x80, 0xFF)))
    frame = frame[: data.draw(st.integers(0, len(frame)))] if data.draw(st.booleans()) else frame
    plain, fast = followed(bytes(frame), version)
    assert fast in (plain, None)
