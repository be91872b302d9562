"""Log dirs: which replicas lie in them, and how much room there is."""

from __future__ import annotations

from tidelog.broker.context import Context
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition, Uuid
from tidelog.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from tidelog.storage.log_dir import LogDir


async def describe_log_dirs(ctx: Context, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Sent by kafka-log-dirs and consoles; null asks for all partitions. Partitions that are not here are left out.

    v3 added an error for the whole answer, v4 the volume's size and free space, v5 whether new partitions stay away.
    Errors per dir: KAFKA_STORAGE_ERROR when it is offline.
    """
    logs = ctx.replicas.logs
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
                topics=_topics(log_dir, wanted),
                total_bytes=volume[0],
                usable_bytes=volume[1],
                is_cordoned=_is_cordoned(ctx, log_dir),
            )
        )
    return DescribeLogDirsResponse(results=results)


def _volumes(ctx: Context, paths: list[str]) -> dict[str, tuple[int, int]]:
    """(total, usable) bytes by dir. A dir that cannot be asked is left out: it is about to go offline."""
    found: dict[str, tuple[int, int]] = {}
    for path in paths:
        try:
            found[path] = ctx.replicas.logs.fs.usage(path)
        except OSError:
            continue
    return found


def _topics(log_dir: LogDir, wanted: set[TopicPartition] | None) -> list[DescribeLogDirsTopic]:
    topics: dict[str, DescribeLogDirsTopic] = {}
    for partition, log in log_dir.logs.items():
        if wanted is not None and partition not in wanted:
            continue
        topic = topics.get(partition.topic)
        if topic is None:
            topic = topics[partition.topic] = DescribeLogDirsTopic(name=partition.topic)
        lag = max(log.high_watermark - log.log_end_offset, 0)
        topic.partitions.append(
            DescribeLogDirsPartition(partition_index=partition.partition, partition_size=log.size_bytes, offset_lag=lag)
        )
    return list(topics.values())


def _is_cordoned(ctx: Context, log_dir: LogDir) -> bool:
    broker = ctx.image.brokers.get(ctx.broker.node_id)
    return broker is not None and Uuid(log_dir.directory_id) in (broker.cordoned_directories or ())
