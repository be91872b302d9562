"""Log dirs: their replicas and free space, and moves of replicas between them."""

from __future__ import annotations

from tidelog.broker.node import BrokerContext
from tidelog.broker.replica_moves import run_move
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import TopicPartition, Uuid
from tidelog.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from tidelog.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from tidelog.replication.partition import Partition
from tidelog.storage.log_dir import LogDir
from tidelog.storage.log_manager import LogManager

_WHOLE_ERROR_FROM = 3


async def describe_log_dirs(ctx: BrokerContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Sent by kafka-log-dirs and consoles; null asks for all partitions. Partitions that are not on this broker are omitted.

    v3 added an error for the whole answer, v4 the volume's size and free space, v5 whether the dir is cordoned. Errors per dir:
    KAFKA_STORAGE_ERROR when it is offline.
    """
    logs = ctx.node.replicas.logs
    online = [log_dir.path for log_dir in logs.online_dirs()]
    volumes = await ctx.run_blocking(lambda: _volumes(ctx, online))
    wanted: set[TopicPartition] | None = None
    if request.topics is not None:
        wanted = {TopicPartition(topic.topic, index) for topic in request.topics for index in topic.partitions}
    results: list[DescribeLogDirsResult] = []
    for log_dir in logs.dirs:
        volume = volumes.get(log_dir.path)
        if volume is None or not log_dir.online:
            results.append(DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=log_dir.path))
            continue
        results.append(
            DescribeLogDirsResult(
                log_dir=log_dir.path,
                topics=_topics(logs, log_dir, wanted),
                total_bytes=volume[0],
                usable_bytes=volume[1],
                is_cordoned=_is_cordoned(ctx, log_dir),
            )
        )
    return DescribeLogDirsResponse(results=results)


def refuse_describe(ctx: BrokerContext, request: DescribeLogDirsRequest, error: KafkaError) -> DescribeLogDirsResponse:
    """Before version 3 an error belongs to a log dir, so the answer has one with an empty name."""
    if ctx.api_version < _WHOLE_ERROR_FROM:
        return DescribeLogDirsResponse(results=[DescribeLogDirsResult(error_code=error.code)])
    return DescribeLogDirsResponse(error_code=error.code)


def _volumes(ctx: BrokerContext, paths: list[str]) -> dict[str, tuple[int, int]]:
    """(total, usable) bytes by dir. A dir whose usage cannot be read is omitted: it is about to go offline."""
    found: dict[str, tuple[int, int]] = {}
    for path in paths:
        try:
            found[path] = ctx.node.replicas.logs.fs.usage(path)
        except OSError:
            continue
    return found


def _topics(logs: LogManager, log_dir: LogDir, wanted: set[TopicPartition] | None) -> list[DescribeLogDirsTopic]:
    topics: dict[str, DescribeLogDirsTopic] = {}
    here = [(partition, log, log.high_watermark) for partition, log in log_dir.logs.items()]
    for partition, (target, copy) in logs.future.copies.items():
        moving = logs.get(partition)
        if target is log_dir and moving is not None:
            here.append((partition, copy, moving.log_end_offset))
    for partition, log, behind in here:
        if wanted is not None and partition not in wanted:
            continue
        topic = topics.get(partition.topic)
        if topic is None:
            topic = topics[partition.topic] = DescribeLogDirsTopic(name=partition.topic)
        topic.partitions.append(
            DescribeLogDirsPartition(
                partition_index=partition.partition,
                partition_size=log.files.segments.size_bytes,
                offset_lag=max(behind - log.log_end_offset, 0),
                is_future_key=log is not logs.get(partition),
            )
        )
    return list(topics.values())


def _is_cordoned(ctx: BrokerContext, log_dir: LogDir) -> bool:
    broker = ctx.image.brokers.get(ctx.node.node_id)
    return broker is not None and Uuid(log_dir.directory_id) in (broker.cordoned_directories or ())


def alter_replica_log_dirs(ctx: BrokerContext, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """Sent by kafka-reassign-partitions: moves replicas to other dirs of this broker. Answered when the moves have started.

    Errors per partition: LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR (one of the dirs is offline), UNKNOWN_TOPIC_OR_PARTITION,
    NOT_LEADER_OR_FOLLOWER (no replica is here).
    """
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for wanted in request.dirs:
        for asked in wanted.topics:
            for index in asked.partitions:
                topic = topics.get(asked.name)
                if topic is None:
                    topic = topics[asked.name] = AlterReplicaLogDirTopicResult(topic_name=asked.name)
                code = _move(ctx, wanted.path, TopicPartition(asked.name, index))
                topic.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code))
    return AlterReplicaLogDirsResponse(results=list(topics.values()))


def refuse_alter(ctx: BrokerContext, request: AlterReplicaLogDirsRequest, error: KafkaError) -> AlterReplicaLogDirsResponse:
    """The request is grouped by dir, the answer by topic: each partition appears once."""
    topics: dict[str, dict[int, None]] = {}
    for topic in (topic for wanted in request.dirs for topic in wanted.topics):
        topics.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions))
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error.code) for index in partitions
                ],
            )
            for name, partitions in topics.items()
        ]
    )


def _move(ctx: BrokerContext, path: str, partition: TopicPartition) -> ErrorCode:
    replicas = ctx.node.replicas
    target = next((log_dir for log_dir in replicas.logs.dirs if log_dir.path == path), None)
    if target is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if not target.online:
        return ErrorCode.KAFKA_STORAGE_ERROR
    found = replicas.by_name(*partition)
    if not isinstance(found, Partition):
        return found
    if found.log is None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    move = replicas.moves.begin(found, target, ctx.node.runtime.even_ms())
    if move is not None:
        ctx.node.runtime.spawn(run_move(ctx.node, move), f"moving {partition} to {path}")
    return ErrorCode.NONE
