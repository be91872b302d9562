"""Transaction markers in the partitions of this broker: who may write one, and when it counts as written (KIP-98, KIP-890).

The coordinator has already decided the outcome of the transaction. A marker is written to every partition that the coordinator
names, even if the producer has no data there, unless the producer or the coordinator is fenced. It counts as written when it is
below the high watermark; only then does the last stable offset move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.model.errors import ErrorCode
from tidelog.records.control import EndTxnMarker, end_txn_marker_batch
from tidelog.replication import acks_and_min_isr
from tidelog.replication.acks_and_min_isr import ACKS_ALL
from tidelog.replication.purgatory import ParkedAppend

if TYPE_CHECKING:
    from tidelog.replication.partition import Partition


@dataclass(frozen=True, slots=True)
class Marker:
    """The outcome of one producer's transaction, as decided by its coordinator in ``coordinator_epoch``.

    ``transaction_version`` 2 and up: ``producer_epoch`` is the bumped epoch; a producer with a higher epoch rejects the marker.
    """

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    transaction_version: int = 0

    def batch(self, timestamp_ms: int) -> memoryview:
        """The marker as a control batch."""
        marker = EndTxnMarker(self.committed, self.coordinator_epoch)
        return memoryview(
            end_txn_marker_batch(
                marker, producer_id=self.producer_id, producer_epoch=self.producer_epoch, timestamp_ms=timestamp_ms
            )
        )


class PendingMarker(ParkedAppend):
    """A marker in the log of one partition that is not safe yet. ``result`` returns its state."""

    __slots__ = ("_last_offset", "_partition")

    def __init__(self, partition: Partition, last_offset: int, deadline_ms: int) -> None:
        super().__init__(deadline_ms, ACKS_ALL)
        self._partition = partition
        self._last_offset = last_offset
        self.watch(partition, 0, last_offset)

    def result(self) -> ErrorCode:
        """NONE when the marker is safe; REQUEST_TIMED_OUT while it is not; another error when the partition moved."""
        return acks_and_min_isr.acknowledge(self._partition, self._last_offset, ACKS_ALL)


def write_marker(partition: Partition, marker: Marker, now_ms: int, deadline_ms: int) -> ErrorCode | PendingMarker:
    """Append the marker. Returns the error, NONE when the marker is already safe, or a wait until ``deadline_ms``.

    Errors: NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR, NOT_ENOUGH_REPLICAS, INVALID_PRODUCER_EPOCH,
    TRANSACTION_COORDINATOR_FENCED.
    """
    result = partition.append_own(marker.batch(now_ms), now_ms, transaction_version=marker.transaction_version)
    if result.error is not ErrorCode.NONE:
        return result.error
    if partition.is_safe(result.last_offset, ACKS_ALL):
        return ErrorCode.NONE
    return PendingMarker(partition, result.last_offset, deadline_ms)
