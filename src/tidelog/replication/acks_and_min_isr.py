"""Acknowledgements: when a produce or a marker may be appended, and when it is answered (acks, min.insync.replicas)."""

from __future__ import annotations

from tidelog.model import ids
from tidelog.model.errors import ErrorCode
from tidelog.replication.partition_view import PartitionView
from tidelog.storage.append_rules import AppendResult

ACKS_ALL = -1
NONE = ErrorCode.NONE


def refused(error: ErrorCode) -> AppendResult:
    """The result of an append that did not reach the log."""
    return AppendResult(error, ids.NO_OFFSET, ids.NO_OFFSET, ids.NO_TIMESTAMP, ids.NO_OFFSET)


def refusal(partition: PartitionView, acks: int) -> ErrorCode:
    """Why nothing may be appended here now."""
    error = partition.check_leader(ids.NO_EPOCH)
    return ErrorCode.NOT_ENOUGH_REPLICAS if error is NONE and acks == ACKS_ALL else error


def acknowledge(partition: PartitionView, last_offset: int, acks: int) -> ErrorCode:
    """The error that answers an append up to ``last_offset`` now; REQUEST_TIMED_OUT while it is not safe."""
    if (error := partition.check_leader(ids.NO_EPOCH)) is not NONE:
        return error
    if not partition.is_safe(last_offset, acks):
        return ErrorCode.REQUEST_TIMED_OUT
    if acks == ACKS_ALL and partition.spare_in_sync < 0:
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return NONE
