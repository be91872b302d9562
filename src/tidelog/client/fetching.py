"""Fetch and ListOffsets requests of a partition reader, and how it handles each error.

Each Fetch is for one partition: a reader reads a range of one partition, and several readers run in parallel. From Fetch 13 on
the topic is named by id, so that the answer cannot be about a recreated topic; before, by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from tidelog.client.metadata import Leader
from tidelog.client.settings import ClientSettings
from tidelog.model.errors import ErrorCode, ProtocolViolation
from tidelog.model.ids import NO_BROKER, TopicPartition
from tidelog.model.ports import Buffer
from tidelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from tidelog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

AbortedTransactions = tuple[tuple[int, int], ...]
"""(producer id, first offset) of each aborted transaction in the fetched records, by first offset."""


class Verdict(Enum):
    """How to handle an error."""

    RETRY = "wait and ask again"
    REFRESH = "ask who leads the partition now, then again"
    OUT_OF_RANGE = "the offset is not in the log"
    GONE = "the topic, or the topic with this id, is not there"
    FAIL = "tell the user"


_VERDICTS = {
    ErrorCode.OFFSET_OUT_OF_RANGE: Verdict.OUT_OF_RANGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Verdict.GONE,
    ErrorCode.UNKNOWN_TOPIC_ID: Verdict.GONE,
    ErrorCode.INCONSISTENT_TOPIC_ID: Verdict.GONE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: Verdict.REFRESH,
    ErrorCode.FENCED_LEADER_EPOCH: Verdict.REFRESH,
    ErrorCode.UNKNOWN_LEADER_EPOCH: Verdict.RETRY,
    ErrorCode.LEADER_NOT_AVAILABLE: Verdict.REFRESH,
    ErrorCode.REPLICA_NOT_AVAILABLE: Verdict.REFRESH,
    ErrorCode.KAFKA_STORAGE_ERROR: Verdict.REFRESH,
    ErrorCode.LISTENER_NOT_FOUND: Verdict.REFRESH,
    # Java's client retries it too: a broker that failed to read its disk this time.
    ErrorCode.UNKNOWN_SERVER_ERROR: Verdict.RETRY,
}


def error_of(code: int) -> ErrorCode:
    """The error with this number; an unknown number, from a newer Kafka, is UNKNOWN_SERVER_ERROR."""
    return ErrorCode(code)


def judge(error: ErrorCode) -> Verdict:
    """How to handle an error of a partition."""
    found = _VERDICTS.get(error)
    if found is None:
        found = Verdict.RETRY if error.retriable and error != ErrorCode.CORRUPT_MESSAGE else Verdict.FAIL
    return found


@dataclass(frozen=True, slots=True)
class Fetched:
    """One partition of a Fetch response. ``records`` is a view of the received frame."""

    error: ErrorCode
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: AbortedTransactions
    preferred_replica: int
    records: Buffer
    new_leader: Leader | None
    endpoints: tuple[tuple[int, str, int], ...]


def fetch_request(
    settings: ClientSettings, at: TopicPartition, topic_id: bytes, offset: int, leader_epoch: int, max_bytes: int
) -> FetchRequest:
    """A request for one partition from ``offset`` on, without a session. Returns at least one whole batch, however large
    (KIP-74)."""
    partition = FetchPartition(
        partition=at.partition, current_leader_epoch=leader_epoch, fetch_offset=offset, partition_max_bytes=max_bytes
    )
    return FetchRequest(
        max_wait_ms=settings.fetch_max_wait_ms,
        min_bytes=settings.fetch_min_bytes,
        max_bytes=settings.fetch_max_bytes,
        isolation_level=settings.isolation_level,
        topics=[FetchTopic(topic=at.topic, topic_id=topic_id, partitions=[partition])],
        rack_id=settings.rack,
    )


def read_fetch(response: FetchResponse, at: TopicPartition, topic_id: bytes) -> Fetched:
    """The answer about the requested partition. ProtocolViolation if it is about another one."""
    if response.error_code:
        return _failed(error_of(response.error_code))
    parts = [
        part for topic in response.responses if topic.topic_id == topic_id or topic.topic == at.topic for part in topic.partitions
    ]
    if len(parts) != 1 or parts[0].partition_index != at.partition:
        raise ProtocolViolation(
            f"the broker answers a Fetch of {at} with {len(parts)} partitions of that topic, or with another one"
        )
    part = parts[0]
    leader = part.current_leader
    return Fetched(
        error=error_of(part.error_code),
        high_watermark=part.high_watermark,
        last_stable_offset=part.last_stable_offset,
        log_start_offset=part.log_start_offset,
        aborted=tuple(sorted(((a.producer_id, a.first_offset) for a in part.aborted_transactions or ()), key=lambda a: a[1])),
        preferred_replica=part.preferred_read_replica,
        records=part.records if part.records is not None else b"",
        new_leader=None if leader.leader_id == NO_BROKER else Leader(leader.leader_id, leader.leader_epoch),
        endpoints=tuple((node.node_id, node.host, node.port) for node in response.node_endpoints),
    )


def _failed(error: ErrorCode) -> Fetched:
    return Fetched(error, -1, -1, -1, (), NO_BROKER, b"", None, ())


def list_offsets_request(
    wanted: Mapping[TopicPartition, tuple[int, int]], isolation_level: int, timeout_ms: int
) -> ListOffsetsRequest:
    """A request to one broker for the (timestamp, leader epoch) of each partition; the special timestamps are in
    ``model.ids``."""
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for at, (timestamp, epoch) in wanted.items():
        topics.setdefault(at.topic, []).append(
            ListOffsetsPartition(partition_index=at.partition, current_leader_epoch=epoch, timestamp=timestamp)
        )
    return ListOffsetsRequest(
        isolation_level=isolation_level,
        timeout_ms=timeout_ms,
        topics=[ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )


def read_offsets(response: ListOffsetsResponse, asked: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[ErrorCode, int]]:
    """(error, offset) of each requested partition; offset -1 if no record is as recent as the timestamp."""
    said = {
        TopicPartition(topic.name, part.partition_index): (error_of(part.error_code), part.offset)
        for topic in response.topics
        for part in topic.partitions
    }
    missing = [at for at in asked if at not in said]
    if missing:
        raise ProtocolViolation(f"the broker answers ListOffsets without {missing[0]}")
    return {at: said[at] for at in asked}
