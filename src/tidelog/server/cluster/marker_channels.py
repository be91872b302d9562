"""Sends transaction markers to the partition leaders, here and on other brokers, and returns their answers to the coordinator.

Every partition is answered once, with an error when its marker was not written or the outcome is unknown; the coordinator then
retries with the current leader of the partition. Markers for one broker are batched, across transactions, in one request; one
request per broker is in flight at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from tidelog.broker.marker_requests import PartitionMarker, errors_of, markers_request
from tidelog.broker.ports import NoOtherBrokers, OtherBrokers
from tidelog.broker.request_batching import Batches
from tidelog.coordinator.shard import Shard
from tidelog.coordinator.transaction.coordinator import TransactionCoordinator
from tidelog.coordinator.transaction.missing_markers import UNANSWERED_MS, MarkerAnswer, WriteMarkers
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import TopicPartition
from tidelog.replication.marker_append import Marker
from tidelog.server.runtime import LoopRuntime

if TYPE_CHECKING:
    from tidelog.coordinator.shards import Shards

log = logging.getLogger(__name__)

WriteMarker = Callable[[TopicPartition, Marker], ErrorCode | Awaitable[ErrorCode]]
RemoteLeader = Callable[[TopicPartition], int | None]

MOST_AT_ONCE = 5_000
"""Markers in one request; several hundred kilobytes."""
PURPOSE = "markers"
_EXPECTED = (
    ErrorCode.NONE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
)
"""Usual during elections and restarts; not logged for each partition of each transaction."""


class _Errand(NamedTuple):
    """One partition's marker on its way to another broker, and the shard that gets the answer."""

    shard: Shard[TransactionCoordinator]
    request: WriteMarkers
    wanted: PartitionMarker


def _always_here(partition: TopicPartition) -> int | None:
    return None


class MarkerCarrier:
    """``write`` does the work of WriteTxnMarkers for one partition of this broker; ``shards`` gets the answers.
    ``remote_leader`` returns the broker that leads a partition; None when this broker leads it, or none does."""

    def __init__(
        self,
        runtime: LoopRuntime,
        write: WriteMarker,
        remote_leader: RemoteLeader = _always_here,
        others: OtherBrokers | None = None,
    ) -> None:
        self._runtime = runtime
        self.write = write
        self._remote_leader = remote_leader
        self._others = others or NoOtherBrokers()
        self.shards: Shards[TransactionCoordinator] | None = None
        self._errands: Batches[_Errand] = Batches(
            runtime, self._carry, key=lambda errand: errand.wanted.key, most=MOST_AT_ONCE, purpose=PURPOSE
        )

    def send(self, shard: Shard[TransactionCoordinator], request: WriteMarkers) -> None:
        """Sends the markers for all partitions of ``request``; the local ones in the next turn of the loop. A decision often
        becomes durable while a follower's fetch is being read, and that fetch would miss records appended in the middle."""
        marker = Marker(request.producer_id, request.producer_epoch, request.committed, shard.epoch, request.transaction_version)
        here = []
        for partition in request.partitions:
            leader = self._remote_leader(partition)
            if leader is None:
                here.append(partition)
            else:
                self._errands.put(leader, _Errand(shard, request, PartitionMarker(partition, marker)))
        if here:
            self._runtime.loop.call_soon(self._write_here, shard, request, marker, here)

    def _write_here(
        self, shard: Shard[TransactionCoordinator], request: WriteMarkers, marker: Marker, partitions: list[TopicPartition]
    ) -> None:
        if shard.failed:
            return
        for partition in partitions:
            try:
                result = self.write(partition, marker)
            except Exception:  # the other partitions must still get their markers
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
        except Exception:  # as above: there must be an answer
            log.exception("%s: a marker of %s failed", partition, request.transactional_id)
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        self._answer(shard, request, partition, error)

    async def _carry(self, broker_id: int, errands: list[_Errand]) -> None:
        # The new coordinator sends the markers of a stopped shard; partitions would refuse these as late.
        errands = [errand for errand in errands if not errand.shard.failed]
        if not errands:
            return
        try:
            request = markers_request(errand.wanted for errand in errands)
            errors = errors_of(await self._others.ask(broker_id, PURPOSE, request, UNANSWERED_MS))
            otherwise = ErrorCode.UNKNOWN_SERVER_ERROR
        except KafkaError as error:
            log.info("%d markers did not reach broker %d: %s", len(errands), broker_id, error)
            errors, otherwise = {}, error.code
        for errand in errands:
            error_of_one = errors.get(errand.wanted.key, otherwise)
            try:
                self._answer(errand.shard, errand.request, errand.wanted.partition, error_of_one)
            except Exception:  # one coordinator's failure must not leave the markers of the others unanswered
                log.exception("%s: the answer about a marker of %s", errand.wanted.partition, errand.request.transactional_id)

    def _answer(
        self, shard: Shard[TransactionCoordinator], request: WriteMarkers, partition: TopicPartition, error: ErrorCode
    ) -> None:
        assert self.shards is not None
        answer = MarkerAnswer(request.transactional_id, request.round, partition, error)
        if error not in _EXPECTED:
            log.info("marker of %s in %s: %s", request.transactional_id, partition, error.name)
        self.shards.tell(shard, lambda machine, now_ms: machine.marker_answered(answer, now_ms))
