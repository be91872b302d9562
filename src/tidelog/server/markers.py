"""Carries transaction markers to the partitions that this node leads, and their answers back to the coordinator.

Every partition answers once: with an error when its marker could not be written, after which the coordinator asks again. What is
not led here is answered NOT_LEADER_OR_FOLLOWER.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from tidelog.coordinator.shard import Shard
from tidelog.coordinator.transaction.coordinator import TransactionCoordinator
from tidelog.coordinator.transaction.markers import MarkerAnswer, WriteMarkers
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.replication.markers import Marker
from tidelog.server.runtime import LoopRuntime

if TYPE_CHECKING:
    from tidelog.coordinator.shards import Shards

log = logging.getLogger(__name__)

WriteMarker = Callable[[TopicPartition, Marker], ErrorCode | Awaitable[ErrorCode]]


class LocalMarkers:
    """``write`` is what WriteTxnMarkers does with one partition; ``shards`` gets the answers."""

    def __init__(self, runtime: LoopRuntime, write: WriteMarker) -> None:
        self._runtime = runtime
        self.write = write
        self.shards: Shards[TransactionCoordinator] | None = None

    def send(self, shard: Shard[TransactionCoordinator], request: WriteMarkers) -> None:
        """Begins with all partitions of ``request``; many are answered before this returns."""
        marker = Marker(request.producer_id, request.producer_epoch, request.committed, shard.epoch, request.transaction_version)
        for partition in request.partitions:
            try:
                result = self.write(partition, marker)
            except Exception:  # the others must not go without their markers for it
                log.exception("%s: a marker of %s failed", partition, request.transactional_id)
                result = ErrorCode.UNKNOWN_SERVER_ERROR
            if isinstance(result, ErrorCode):
                self._answer(shard, request, partition, result)
            else:
                self._runtime.spawn(self._later(shard, request, partition, result), f"marker of {partition}")

    async def _later(
        self, shard: Shard[TransactionCoordinator], request: WriteMarkers, partition: TopicPartition, result: Awaitable[ErrorCode]
    ) -> None:
        try:
            error = await result
        except Exception:  # as above: an answer in any case
            log.exception("%s: a marker of %s failed", partition, request.transactional_id)
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        self._answer(shard, request, partition, error)

    def _answer(
        self, shard: Shard[TransactionCoordinator], request: WriteMarkers, partition: TopicPartition, error: ErrorCode
    ) -> None:
        assert self.shards is not None
        answer = MarkerAnswer(request.transactional_id, request.round, partition, error)
        if error is not ErrorCode.NONE:
            log.info("marker of %s in %s: %s", request.transactional_id, partition, error.name)
        self.shards.tell(shard, lambda machine, now_ms: machine.marker_answered(answer, now_ms))
