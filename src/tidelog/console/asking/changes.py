"""Calls that change records: written, and deleted before an offset. A record is sent again only after a refusal that says that it
was not written."""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.client.admin.topics import check, leaders, topics
from tidelog.client.calls import Ask, Call, Each, Node
from tidelog.client.failures import NoRoute
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import NO_BROKER, ZERO_UUID
from tidelog.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.records.builder import RecordData, build_batch

ALL_REPLICAS = -1
TIMEOUT_MS = 10_000
NOT_WRITTEN = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_ENOUGH_REPLICAS,
    }
)
"""Errors of a moment, such as the first after a topic was created: the request had no effect."""


def delete_records(topic: str, before: Mapping[int, int]) -> Call[dict[int, ErrorCode]]:
    """Delete the records before an offset of each partition. Returns errors by partition."""
    there = yield from leaders([topic])
    failed = {index: ErrorCode.LEADER_NOT_AVAILABLE for index in before if (topic, index) not in there}
    by_leader: dict[int, dict[int, int]] = {}
    for index, offset in before.items():
        if index not in failed:
            by_leader.setdefault(there[topic, index], {})[index] = offset
    answers: list[dict[int, ErrorCode]] = yield Each([_deleted(topic, leader, part) for leader, part in by_leader.items()])
    for answer in answers:
        failed |= answer
    return failed


def _deleted(topic: str, leader: int, before: Mapping[int, int]) -> Call[dict[int, ErrorCode]]:
    parts = [DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in before.items()]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=parts)], timeout_ms=TIMEOUT_MS)
    answer = yield Ask(request, Node(leader))
    return {
        part.partition_index: ErrorCode(part.error_code)
        for found in answer.topics
        for part in found.partitions
        if part.error_code != ErrorCode.NONE
    }


def produce(topic: str, partition: int, record: RecordData) -> Call[int]:
    """Write a record with acks=all and return its offset. KafkaError; NoConnection when the outcome is unknown."""
    (found,) = yield from topics([topic])
    check(found.error_code)
    leader = next((part.leader_id for part in found.partitions if part.partition_index == partition), None)
    if leader is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic} has no partition {partition}.")
    if leader == NO_BROKER:
        raise NoRoute(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{partition} has no leader.")
    data = TopicProduceData(
        name=topic,
        topic_id=found.topic_id or ZERO_UUID,
        partition_data=[PartitionProduceData(index=partition, records=build_batch([record]))],
    )
    answer = yield Ask(ProduceRequest(acks=ALL_REPLICAS, timeout_ms=TIMEOUT_MS, topic_data=[data]), Node(leader))
    (part,) = (each for said in answer.responses for each in said.partition_responses)
    reasons = [each.batch_index_error_message for each in part.record_errors if each.batch_index_error_message]
    check(part.error_code, part.error_message or (reasons[0] if reasons else None))
    return int(part.base_offset)
