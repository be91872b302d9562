"""Records and offsets."""

from __future__ import annotations

from typing import Any

from tests.security_matrix.case import TRANSACTIONAL_IDS, Case, World, by_topic, plain, with_fields
from tidelog.protocol.api_keys import ApiKey
from tidelog.records.builder import RecordData, build_batch

UNKNOWN_PRODUCER = 987_654


def batch(**options: Any) -> bytes:
    """One record."""
    return bytes(build_batch([RecordData(b"k", b"v", 1_700_000_000_000)], **options))


def named(world: World, topic: str) -> dict[str, Any]:
    """The name and the id: each version takes what it has."""
    return {"name": topic, "topic_id": world.id(topic)}


def produced(data: bytes) -> Any:
    return lambda world, topic: {**named(world, topic), "partition_data": [{"index": 0, "records": data}]}


def fetched(world: World, topic: str) -> dict[str, Any]:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    return {"topic": topic, "topic_id": world.id(topic), "partitions": [partition]}


def _produce() -> list[Case]:
    written: dict[str, Any] = {"acks": 1, "timeout_ms": 10_000}
    whole = with_fields(by_topic(ApiKey.PRODUCE, produced(batch()), entries="topic_data"), **written)
    idempotent = batch(producer_id=UNKNOWN_PRODUCER, producer_epoch=0, base_sequence=0)
    whole.append(
        Case(
            ApiKey.PRODUCE,
            "idempotent batch",
            lambda world, _: {**written, "topic_data": [produced(idempotent)(world, "open-idempotent")]},
            alone=True,
        )
    )
    transactional = batch(producer_id=UNKNOWN_PRODUCER, producer_epoch=0, base_sequence=0, transactional=True)
    for state, transactional_id in {**TRANSACTIONAL_IDS, "null": None}.items():
        for topic in ("open-t", "hidden-t"):

            def fields(world: World, _: str, name: str = topic, tid: str | None = transactional_id) -> dict[str, Any]:
                return {**written, "transactional_id": tid, "topic_data": [produced(transactional)(world, name)]}

            whole.append(Case(ApiKey.PRODUCE, f"transactional id {state}, {topic}", fields, alone=True))
    return whole


def _fetch() -> list[Case]:
    common = {"max_wait_ms": 0, "min_bytes": 0}
    follower = {**common, "replica_id": 5, "replica_state": {"replica_id": 5}}
    consumers = with_fields(by_topic(ApiKey.FETCH, fetched, listeners=("broker",)), **common)
    followers = with_fields(by_topic(ApiKey.FETCH, fetched, listeners=("broker",)), **follower)
    return consumers + [
        Case(each.api, f"follower, {each.state}", each.fields, listeners=each.listeners)
        for each in followers
        if each.state in ("exists", "hidden", "missing", "mixed")
    ]


def cases() -> list[Case]:
    """Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords, DescribeProducers."""
    listed = by_topic(
        ApiKey.LIST_OFFSETS,
        lambda world, topic: {"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]},
    )
    epochs = by_topic(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        lambda world, topic: {"topic": topic, "partitions": [{"partition": 0, "leader_epoch": 0}]},
    )
    deleted = by_topic(
        ApiKey.DELETE_RECORDS, lambda world, topic: {"name": topic, "partitions": [{"partition_index": 0, "offset": 0}]}
    )
    producers = by_topic(ApiKey.DESCRIBE_PRODUCERS, lambda world, topic: {"name": topic, "partition_indexes": [0]})
    return [
        *_produce(),
        *_fetch(),
        *with_fields(listed, replica_id=-1),
        *with_fields(epochs, replica_id=-1),
        *with_fields(deleted, timeout_ms=10_000),
        *producers,
        plain(ApiKey.LIST_OFFSETS, "none named", replica_id=-1, topics=[]),
    ]
