"""Collects what the leaders' logs say about a group's place in them: ends, leader epochs, the next records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tidelog.client.admin.topics import check
from tidelog.client.calls import Ask, Call, Node, Partition
from tidelog.client.connection import UnsupportedByBroker
from tidelog.client.failures import NoConnection
from tidelog.console.group_facts import PartitionFacts
from tidelog.console.next_record import MOST_BEFORE, NextRecord, kinds_before, next_record
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import LATEST_TIMESTAMP
from tidelog.model.ports import Buffer
from tidelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tidelog.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

DEBUGGING_REPLICA: Final = -2
"""Kafka's number of a reader that gets the end of the log, not the high watermark."""
MOST_LOOKED_AT: Final = 20
"""Partitions whose next records are fetched."""
NEXT_BYTES: Final = 16_384
"""A larger batch comes whole all the same (KIP-74)."""


def log_ends(leader: int, ats: Sequence[Partition]) -> Call[dict[Partition, int]]:
    """Where the logs of these partitions of a leader end; empty where it does not tell."""
    if not ats:
        return {}
    rows = [
        ListOffsetsTopic(name=name, partitions=[_latest(at) for at in ats if at[0] == name]) for name in {at[0] for at in ats}
    ]
    try:
        answer = yield Ask(ListOffsetsRequest(replica_id=DEBUGGING_REPLICA, topics=rows), Node(leader))
    except (KafkaError, UnsupportedByBroker):
        return {}
    return {
        (topic.name, part.partition_index): part.offset
        for topic in answer.topics
        for part in topic.partitions
        if part.error_code == ErrorCode.NONE
    }


def _latest(at: Partition) -> ListOffsetsPartition:
    return ListOffsetsPartition(partition_index=at[1], timestamp=LATEST_TIMESTAMP)


def with_epochs(partitions: Mapping[Partition, PartitionFacts]) -> Call[dict[Partition, PartitionFacts]]:
    """With where the leader epochs of the committed offsets ended."""
    found = dict(partitions)
    asked: dict[int, list[Partition]] = {}
    for at, part in partitions.items():
        if part.committed_epoch >= 0 and part.leader >= 0 and part.unreachable is None:
            asked.setdefault(part.leader, []).append(at)
    for leader, ats in asked.items():
        topics = [
            OffsetForLeaderTopic(
                topic=name,
                partitions=[
                    OffsetForLeaderPartition(partition=at[1], leader_epoch=partitions[at].committed_epoch)
                    for at in ats
                    if at[0] == name
                ],
            )
            for name in {at[0] for at in ats}
        ]
        try:
            answer = yield Ask(OffsetForLeaderEpochRequest(replica_id=-1, topics=topics), Node(leader))
        except (KafkaError, UnsupportedByBroker, NoConnection):
            continue
        for topic in answer.topics:
            for part in topic.partitions:
                if part.error_code == ErrorCode.NONE and part.end_offset >= 0:
                    at = (topic.topic, part.partition)
                    found[at] = replace(found[at], epoch_end=(part.leader_epoch, part.end_offset))
    return found


def with_next(partitions: Mapping[Partition, PartitionFacts], ids: Mapping[str, bytes]) -> Call[dict[Partition, PartitionFacts]]:
    """With the next records of partitions with a lag. It takes READ on the topic, which one who may describe a group need not
    have."""
    found = dict(partitions)
    behind = [at for at, part in partitions.items() if part.lag and part.leader >= 0 and part.unreachable is None]
    for at in sorted(behind)[:MOST_LOOKED_AT]:
        try:
            found[at] = replace(partitions[at], next=(yield from _next(at, partitions[at], ids.get(at[0], b""))))
        except (KafkaError, UnsupportedByBroker, NoConnection):
            continue
    return found


def _next(at: Partition, part: PartitionFacts, topic_id: bytes) -> Call[NextRecord | None]:
    begin = max(part.committed or 0, part.start or 0)
    try:
        records = yield from fetched(at, part.leader, topic_id, begin, NEXT_BYTES)
    except KafkaError as error:
        if error.code != ErrorCode.CORRUPT_MESSAGE:
            raise
        return NextRecord(begin, 0, corrupt="the leader answers CORRUPT_MESSAGE")
    found = next_record(records, begin, part.end or 0)
    if found is None or not found.kind:
        return found
    first = max(part.start or 0, begin - MOST_BEFORE)
    earlier = (yield from fetched(at, part.leader, topic_id, first, NEXT_BYTES)) if first < begin else b""
    return replace(found, before=kinds_before(earlier, begin))


def fetched(at: Partition, leader: int, topic_id: bytes, begin: int, most: int) -> Call[Buffer]:
    """Whole batches from the one with ``begin`` on, about ``most`` bytes. KafkaError."""
    wanted = FetchPartition(partition=at[1], fetch_offset=begin, partition_max_bytes=most)
    topic = FetchTopic(topic=at[0], topic_id=topic_id, partitions=[wanted])
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=most, topics=[topic])
    answer = yield Ask(request, Node(leader), code_of=lambda answer: int(answer.error_code))
    check(answer.error_code)
    (got,) = (each for topic in answer.responses for each in topic.partitions)
    check(got.error_code)
    return got.records or b""
