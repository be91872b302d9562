"""Which offset a timestamp or a leader epoch means: ListOffsets and OffsetForLeaderEpoch, for one partition.

Decided here: the meaning of each special timestamp, the epoch in an answer, and where an epoch ended. The epoch is that of the
record found, so that epochs committed by a consumer stay correct; only the latest offset has the current epoch. The end of an
epoch is never below what a consumer of that epoch may have read, or the consumer would see a truncation that did not happen.
"""

from __future__ import annotations

from typing import NamedTuple

from tidelog.model import ids
from tidelog.model.errors import ErrorCode
from tidelog.replication.partition_view import PartitionView
from tidelog.storage import reading
from tidelog.storage.reading import TimestampOffset
from tidelog.storage.unified_log import UnifiedLog

NONE = ErrorCode.NONE


class OffsetAnswer(NamedTuple):
    """The answer for one partition; -1 for unset fields."""

    error: ErrorCode
    offset: int = ids.NO_OFFSET
    leader_epoch: int = ids.NO_EPOCH
    timestamp_ms: int = ids.NO_TIMESTAMP


def list_offset(
    partition: PartitionView, timestamp: int, current_leader_epoch: int, *, committed: bool, follower: bool = False
) -> OffsetAnswer | TimestampLookup:
    """The offset for ``timestamp`` or a special value, with the epoch of the record found there.

    A search by time reads batches, so it is returned as a lookup to run in a thread. The caller has refused special values that
    the API version does not know.
    """
    error = partition.check_leader(current_leader_epoch)
    log = partition.log
    if error is not NONE or log is None:
        return OffsetAnswer(error)
    if timestamp in (ids.EARLIEST_TIMESTAMP, ids.EARLIEST_LOCAL_TIMESTAMP):
        return OffsetAnswer(NONE, log.log_start_offset, log.leader_epochs.epoch_for(log.log_start_offset))
    if timestamp in (ids.LATEST_TIERED_TIMESTAMP, ids.EARLIEST_PENDING_UPLOAD_TIMESTAMP):
        return OffsetAnswer(NONE)
    if timestamp == ids.LATEST_TIMESTAMP:
        if not follower and _is_behind(partition, log):
            return OffsetAnswer(ErrorCode.OFFSET_NOT_AVAILABLE)
        return OffsetAnswer(NONE, _readable_end(log, committed, follower), partition.leader_epoch)
    return TimestampLookup(partition, log, timestamp, committed, follower)


class TimestampLookup:
    """A search by time: call ``run`` in any thread, then ``finish`` with its result on the loop."""

    __slots__ = ("_committed", "_follower", "_log", "_partition", "_timestamp")

    def __init__(self, partition: PartitionView, log: UnifiedLog, timestamp: int, committed: bool, follower: bool) -> None:
        self._partition = partition
        self._log = log
        self._timestamp = timestamp
        self._committed = committed
        self._follower = follower

    def run(self) -> TimestampOffset | None:
        """Reads indexes and batches. StorageFailure when the log dir is lost."""
        if self._timestamp == ids.MAX_TIMESTAMP:
            return reading.max_timestamp_offset(self._log)
        return reading.offset_for_timestamp(self._log, self._timestamp)

    @property
    def is_moot(self) -> bool:
        """Whether the searched log is no longer the partition's; errors from it can be ignored."""
        return self._partition.deleted or self._partition.log is not self._log

    def finish(self, found: TimestampOffset | None) -> OffsetAnswer:
        """The answer for the partition's current state."""
        partition, log = self._partition, self._partition.log
        error = partition.check_leader(ids.NO_EPOCH)
        if error is not NONE or log is None:
            return OffsetAnswer(error)
        if found is not None and log.log_start_offset <= found.offset < _readable_end(log, self._committed, self._follower):
            return OffsetAnswer(NONE, found.offset, found.leader_epoch, found.timestamp)
        # Records that the old leader exposed may still be above our high watermark.
        return OffsetAnswer(ErrorCode.OFFSET_NOT_AVAILABLE if not self._follower and _is_behind(partition, log) else NONE)


def _is_behind(partition: PartitionView, log: UnifiedLog) -> bool:
    """Whether a new leader's high watermark is below the start of its epoch: it would answer with less than the old leader
    did."""
    return log.high_watermark < partition.leader_epoch_start_offset


def _readable_end(log: UnifiedLog, committed: bool, follower: bool) -> int:
    return log.log_end_offset if follower else (log.last_stable_offset if committed else log.high_watermark)


def offset_for_leader_epoch(partition: PartitionView, epoch: int, current_leader_epoch: int) -> OffsetAnswer:
    """Where ``epoch`` ended in this log."""
    error = partition.check_leader(current_leader_epoch)
    if error is not NONE or partition.log is None:
        return OffsetAnswer(error)
    found, end_offset = end_of_epoch(partition, partition.log, epoch)
    return OffsetAnswer(NONE, end_offset, found)


def end_of_epoch(partition: PartitionView, log: UnifiedLog, epoch: int) -> tuple[int, int]:
    """The largest epoch not above ``epoch`` and its end offset; (-1, -1) when unknown."""
    if epoch == partition.leader_epoch:
        return epoch, log.log_end_offset
    latest = log.leader_epochs.latest
    if epoch < latest or epoch < 0 or epoch > partition.leader_epoch:
        return log.leader_epochs.end_offset_for(epoch, log.log_end_offset)
    # The current epoch has no batch, so the cache does not know it yet: the epoch before it ended where it started.
    return (latest if latest >= 0 else epoch), partition.leader_epoch_start_offset
