"""DeleteRecords: how far records may be deleted, and when they are gone from every replica (KIP-107)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.model import ids
from tidelog.model.errors import ErrorCode

if TYPE_CHECKING:
    from tidelog.replication.partition import Partition


def delete_records(partition: Partition, offset: int) -> tuple[ErrorCode, int]:
    """Raise the log start offset to ``offset`` (-1: the high watermark). Returns the error, and the log start that every
    replica has to reach; ``low_watermark`` shows their progress."""
    error = partition.check_leader(ids.NO_EPOCH)
    log = partition.log
    if error is not ErrorCode.NONE or log is None:
        return error, -1
    if log.config.compact and not log.config.delete:
        return ErrorCode.POLICY_VIOLATION, -1
    target = log.high_watermark if offset == -1 else offset
    if target < 0 or target > log.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE, -1
    if target > log.log_start_offset:
        log.delete_records_before(target)
        partition.look_at_log_start()
    return ErrorCode.NONE, log.log_start_offset


def low_watermark(partition: Partition) -> int:
    """The smallest log start offset among the replicas on live brokers; -1 unless this broker leads."""
    log = partition.log
    if log is None or not partition.is_leader:
        return ids.NO_OFFSET
    least = log.log_start_offset
    if partition.leadership is not None:
        for replica in partition.leadership.replicas.values():
            if replica.log_start_offset < least and partition.host.is_alive(replica.broker_id):
                least = replica.log_start_offset
    return least
