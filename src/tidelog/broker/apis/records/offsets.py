"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords: where a partition's log begins, ends, and what lies between.

Decided here: the special timestamps that a version knows, and that a partition named twice gets an error for both entries. The
offsets themselves: ``replication.offset_lookup``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine
from functools import partial
from typing import Any

from tidelog.broker.answer_types import Answer
from tidelog.broker.authorization import allowed, allows_on_cluster
from tidelog.broker.node import BrokerContext
from tidelog.model import ids
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode, StorageFailure
from tidelog.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from tidelog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tidelog.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from tidelog.replication import offset_lookup
from tidelog.replication.delete_records import low_watermark
from tidelog.replication.offset_lookup import OffsetAnswer, TimestampLookup
from tidelog.replication.partition import Partition
from tidelog.replication.purgatory import ParkedDeletion

_SINCE = {
    ids.LATEST_TIMESTAMP: 1,
    ids.EARLIEST_TIMESTAMP: 1,
    ids.MAX_TIMESTAMP: 7,
    ids.EARLIEST_LOCAL_TIMESTAMP: 8,
    ids.LATEST_TIERED_TIMESTAMP: 9,
    ids.EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
"""The special timestamps, each with its first version."""
_LEADER_EPOCH_SINCE = 4
_OFFSET_NOT_AVAILABLE_SINCE = 5
_READ_COMMITTED = 1
_CONSUMER = -1


def list_offsets(ctx: BrokerContext, request: ListOffsetsRequest) -> Answer | Coroutine[Any, Any, Answer]:
    """Sent by consumers without a position, and by tools. v4 fences by leader epoch and returns the epoch of the record found,
    v5 may answer OFFSET_NOT_AVAILABLE, v7, v8, v9 and v11 each added a special timestamp, v10 a timeout.

    A search by time reads batches, so it runs in a thread. Errors, per partition: 3, 5, 6, 29, 35, 42, 56, 74,
    75, 78. Followers need DESCRIBE on the topic, too.
    """
    describable = allowed(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, (topic.name for topic in request.topics))
    response = ListOffsetsResponse()
    lookups: list[tuple[ListOffsetsPartitionResponse, TimestampLookup]] = []
    named = Counter((topic.name, wanted.partition_index) for topic in request.topics for wanted in topic.partitions)
    for topic in request.topics:
        results: list[ListOffsetsPartitionResponse] = []
        response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=results))
        for wanted in topic.partitions:
            result = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
            results.append(result)
            if topic.name not in describable:
                result.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                continue
            if named[topic.name, wanted.partition_index] > 1:
                result.error_code = ErrorCode.INVALID_REQUEST
                continue
            found = _list_one(ctx, request, topic.name, wanted)
            if isinstance(found, TimestampLookup):
                lookups.append((result, found))
            else:
                _fill(result, found, ctx.api_version)
    return _look_up(ctx, response, lookups) if lookups else response


def _list_one(
    ctx: BrokerContext, request: ListOffsetsRequest, topic: str, wanted: ListOffsetsPartition
) -> OffsetAnswer | TimestampLookup:
    timestamp = wanted.timestamp
    if timestamp < 0 and ctx.api_version < _SINCE.get(timestamp, 1 << 15):
        return OffsetAnswer(ErrorCode.UNSUPPORTED_VERSION)
    partition = ctx.node.replicas.by_name(topic, wanted.partition_index)
    if isinstance(partition, ErrorCode):
        return OffsetAnswer(partition)
    return offset_lookup.list_offset(
        partition,
        timestamp,
        wanted.current_leader_epoch,
        committed=request.isolation_level == _READ_COMMITTED,
        follower=request.replica_id != _CONSUMER,
    )


async def _look_up(
    ctx: BrokerContext, response: ListOffsetsResponse, lookups: list[tuple[ListOffsetsPartitionResponse, TimestampLookup]]
) -> Answer:
    for result, lookup in lookups:
        try:
            answer = lookup.finish(await ctx.run_blocking(lookup.run))
        except StorageFailure as failure:
            if not lookup.is_moot:
                ctx.node.replicas.storage_failed(failure)
            answer = OffsetAnswer(ErrorCode.KAFKA_STORAGE_ERROR)
        _fill(result, answer, ctx.api_version)
    return response


def _fill(result: ListOffsetsPartitionResponse, answer: OffsetAnswer, version: int) -> None:
    result.error_code = answer.error
    if answer.error is ErrorCode.OFFSET_NOT_AVAILABLE and version < _OFFSET_NOT_AVAILABLE_SINCE:
        result.error_code = ErrorCode.LEADER_NOT_AVAILABLE
    result.offset = answer.offset
    result.timestamp = answer.timestamp_ms
    if version >= _LEADER_EPOCH_SINCE:
        result.leader_epoch = answer.leader_epoch


def offset_for_leader_epoch(ctx: BrokerContext, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    """Sent by consumers after a change of leader, and by followers that know no epoch: where did this epoch end? v3 added the
    replica id. Errors, per partition: 3, 6, 29, 56, 74, 75; an unknown epoch is answered -1, -1. CLUSTER_ACTION is enough for all
    topics."""
    names = {topic.topic for topic in request.topics}
    if not allows_on_cluster(ctx, AclOperation.CLUSTER_ACTION, quiet=True):
        names &= allowed(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        results: list[EpochEndOffset] = []
        response.topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=results))
        for wanted in topic.partitions:
            partition = (
                ctx.node.replicas.by_name(topic.topic, wanted.partition)
                if topic.topic in names
                else ErrorCode.TOPIC_AUTHORIZATION_FAILED
            )
            if isinstance(partition, ErrorCode):
                results.append(EpochEndOffset(error_code=partition, partition=wanted.partition))
                continue
            answer = offset_lookup.offset_for_leader_epoch(partition, wanted.leader_epoch, wanted.current_leader_epoch)
            results.append(
                EpochEndOffset(
                    error_code=answer.error,
                    partition=wanted.partition,
                    leader_epoch=answer.leader_epoch,
                    end_offset=answer.offset,
                )
            )
    return response


def delete_records(ctx: BrokerContext, request: DeleteRecordsRequest) -> Answer | Coroutine[Any, Any, Answer]:
    """Sent by tools and Kafka Streams: raises the log start offset, which deletes older records everywhere. Offset -1 is the
    high watermark. Waits up to ``timeout_ms`` for the replicas on live brokers.

    Errors, per partition: 1, 3, 6, 7, 17, 29, 44, 56.
    """
    deletable = allowed(ctx, AclOperation.DELETE, ResourceType.TOPIC, (topic.name for topic in request.topics))
    response = DeleteRecordsResponse()
    waiting: list[tuple[Partition, DeleteRecordsPartitionResult]] = []
    for topic in request.topics:
        results: list[DeleteRecordsPartitionResult] = []
        response.topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=results))
        for wanted in topic.partitions:
            result = DeleteRecordsPartitionResult(partition_index=wanted.partition_index, low_watermark=-1)
            results.append(result)
            partition = (
                ctx.node.replicas.by_name(topic.name, wanted.partition_index)
                if topic.name in deletable
                else ErrorCode.TOPIC_AUTHORIZATION_FAILED
            )
            if isinstance(partition, ErrorCode):
                result.error_code = partition
            elif partition.is_internal:
                result.error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
            else:
                result.error_code, result.low_watermark = partition.delete_records(wanted.offset)
                if result.error_code == ErrorCode.NONE and low_watermark(partition) < result.low_watermark:
                    waiting.append((partition, result))
    return _until_deleted(ctx, request, response, waiting) if waiting else response


async def _until_deleted(
    ctx: BrokerContext,
    request: DeleteRecordsRequest,
    response: DeleteRecordsResponse,
    waiting: list[tuple[Partition, DeleteRecordsPartitionResult]],
) -> Answer:
    parked = ParkedDeletion(ctx.now_ms() + request.timeout_ms)
    for partition, result in waiting:
        parked.watch(partition, partial(_is_deleted, partition, result.low_watermark))
    try:
        await ctx.wait(parked)
    finally:
        parked.finish()
    for partition, result in waiting:
        error = partition.check_leader(ids.NO_EPOCH)
        if error == ErrorCode.NONE and not _is_deleted(partition, result.low_watermark):
            error = ErrorCode.REQUEST_TIMED_OUT
        if error != ErrorCode.NONE:
            result.error_code, result.low_watermark = error, -1
    return response


def _is_deleted(partition: Partition, offset: int) -> bool:
    """Whether the wait is over: all replicas deleted the records, or this broker no longer leads."""
    return not partition.is_leader or low_watermark(partition) >= offset
