"""DeleteRecords: how far records may be deleted, and when they are gone from every replica (KIP-107)."""

from __future__ import annotations

from tidelog.model import ids
from tidelog.model.errors import ErrorCode
from tidelog.replication.partition_view import PartitionView


def new_log_start(partition: PartitionView, offset: int) -> tuple[ErrorCode, int]:
    """The error of a request for ``offset`` (-1: the high watermark), and the log start offset that it asks for (-1: none)."""
    error = partition.check_leader(ids.NO_EPOCH)
    log = partition.log
    if error is not ErrorCode.NONE or log is None:
        return error, -1
    if log.config.compact and not log.config.delete:
        return ErrorCode.POLICY_VIOLATION, -1
    target = log.high_watermark if offset == -1 else offset
    return (ErrorCode.NONE, target) if 0 <= target <= log.high_watermark else (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def low_watermark(partition: PartitionView) -> int:
    """The smallest log start offset among the replicas on live brokers; -1 unless this broker leads."""
    log = partition.log
    if log is None or not partition.is_leader:
        return ids.NO_OFFSET
    least = log.log_start_offset
    if partition.leadership is not None:
        for replica in partition.leadership.replicas.values():
            if replica.log_start_offset < least and partition.host.brokers.is_alive(replica.broker_id):
                least = replica.log_start_offset
    return least
