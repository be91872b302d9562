"""Writes a transaction's marker into a partition of this broker and waits until it is safe.

Used by WriteTxnMarkers and by this broker's own transaction coordinator. Decided here: the errors for partitions that are not on
this broker, and that a marker for ``__consumer_offsets`` goes through the group coordinator, which applies or discards the
transaction's offsets in log order.
"""

from __future__ import annotations

from collections.abc import Awaitable

from tidelog.broker.node import Broker
from tidelog.coordinator.shard import Waiting
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import OFFSETS_TOPIC, TopicPartition
from tidelog.replication.marker_append import Marker, PendingMarker
from tidelog.replication.marker_append import write_marker as append_marker
from tidelog.replication.partition import Partition

ANSWER_WITHIN_MS = 30_000
"""A marker not replicated by then is answered REQUEST_TIMED_OUT. It is in the log all the same, and is written again."""


def write_marker(broker: Broker, where: TopicPartition, marker: Marker, now_ms: int) -> ErrorCode | Awaitable[ErrorCode]:
    """The error, at once or as an awaitable; NONE when the marker is safe.

    UNKNOWN_TOPIC_ID when the partition no longer exists, NOT_LEADER_OR_FOLLOWER when another broker leads it or its groups are
    not loaded yet, INVALID_PRODUCER_EPOCH and TRANSACTION_COORDINATOR_FENCED for late markers, NOT_ENOUGH_REPLICAS,
    KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT.
    """
    if broker.replicas.image.topics.partition(where.topic, where.partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    found = broker.replicas.by_name(where.topic, where.partition)
    if not isinstance(found, Partition):
        return found
    if where.topic == OFFSETS_TOPIC:
        result = broker.groups.complete_transaction(where.partition, marker)
        if not isinstance(result, Waiting):
            return result
        result.deadline_ms = now_ms + ANSWER_WITHIN_MS
        return ErrorCode.NONE if result.done and not result.error else _when_counted(broker, result)
    pending = append_marker(found, marker, now_ms, now_ms + ANSWER_WITHIN_MS)
    return pending if isinstance(pending, ErrorCode) else _when_safe(broker, pending)


async def _when_safe(broker: Broker, pending: PendingMarker) -> ErrorCode:
    try:
        await broker.runtime.wait(pending)
    finally:
        pending.finish()
    return pending.result()


async def _when_counted(broker: Broker, waiting: Waiting) -> ErrorCode:
    if not waiting.done:
        await broker.runtime.wait(waiting)
    if waiting.error:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.REQUEST_TIMED_OUT if waiting.expired else ErrorCode.NONE
