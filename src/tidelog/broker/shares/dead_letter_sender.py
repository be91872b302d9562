"""DeadLetterSender: takes dead letters to one broker, several partitions in a request, one request at a time.

What waits for the same partition goes into one batch, up to the topic's ``max.message.bytes``. The records of a round are made
when its turn has come, so that few copies of records are in memory. This broker appends to its own partitions without a request.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple

from tidelog.broker.shares.dead_letter_plan import Round
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tidelog.records.batch import HEADER_SIZE
from tidelog.records.builder import RecordData, build_batch
from tidelog.replication import acks_and_min_isr
from tidelog.replication.acks_and_min_isr import ACKS_ALL
from tidelog.replication.partition import Partition
from tidelog.replication.purgatory import ParkedAppend
from tidelog.storage.append_rules import AppendResult

if TYPE_CHECKING:
    from tidelog.broker.shares.ports import ShareHost
    from tidelog.model.ids import Uuid

log = logging.getLogger(__name__)

PURPOSE = "dead letters"
TIMEOUT_MS = 30_000
MOST_IN_A_REQUEST = 4 * 1024 * 1024
"""Bytes; a larger batch goes alone."""
_NONE = ErrorCode.NONE


class Destination(NamedTuple):
    """A partition of the dead-letter topic."""

    topic: str
    topic_id: Uuid
    partition: int
    leader: int
    max_bytes: int


class Sending:
    """One round on its way; a ``Parked`` without partitions. ``make`` reads and plans it when its turn has come."""

    __slots__ = ("deadline_ms", "destination", "done", "error", "expired", "make", "on_done", "round")

    operation = "DeadLetter"
    places = 0

    def __init__(self, destination: Destination, make: Callable[[], Coroutine[Any, Any, Round]]) -> None:
        self.destination = destination
        self.make = make
        self.round: Round | None = None
        self.deadline_ms = 1 << 62
        self.done = False
        self.expired = False
        self.error = _NONE
        self.on_done: Callable[[], None] | None = None

    def changed(self, partition: object, key: object, new_bytes: int) -> None:
        """Nothing to do: it watches no partition."""

    def finish(self) -> None:
        """Ends the wait."""
        if not self.done:
            self.done = True
            if self.on_done is not None:
                self.on_done()


class DeadLetterSender:
    def __init__(self, broker: ShareHost, leader: int) -> None:
        self._broker = broker
        self._leader = leader
        self._queue: deque[Sending] = deque()
        self._sends = False

    def add(self, sending: Sending) -> None:
        """It is done when the leader has answered; then its ``error`` says how."""
        self._queue.append(sending)
        if not self._sends:
            self._sends = True
            self._broker.runtime.spawn(self._send_all(), f"dead letters to broker {self._leader}")

    async def _send_all(self) -> None:
        try:
            while self._queue:
                taken = await self._take()
                try:
                    await self._send(taken)
                except KafkaError as error:
                    self._end(taken, error.code)
                except Exception:  # what waits behind it is sent all the same
                    log.exception("dead letters to broker %d could not be sent", self._leader)
                    self._end(taken, ErrorCode.UNKNOWN_SERVER_ERROR)
        finally:
            self._sends = False

    @staticmethod
    def _end(taken: dict[Destination, list[Sending]], error: ErrorCode) -> None:
        for each in [one for several in taken.values() for one in several if not one.done]:
            each.error = error
            each.finish()

    async def _take(self) -> dict[Destination, list[Sending]]:
        """What goes next, from the queue's start on, by partition."""
        taken: dict[Destination, list[Sending]] = {}
        sizes: dict[Destination, int] = {}
        while self._queue:
            sending = self._queue[0]
            if sending.round is None:
                try:
                    sending.round = await sending.make()
                except Exception:
                    log.exception("dead letters to %s could not be made", sending.destination.topic)
                    self._queue.popleft()
                    self._end({sending.destination: [sending]}, ErrorCode.UNKNOWN_SERVER_ERROR)
                    continue
            destination, more = sending.destination, sending.round.size
            size = sizes[destination] + more - HEADER_SIZE if destination in sizes else more
            if taken and (size > destination.max_bytes or sum(sizes.values()) + more > MOST_IN_A_REQUEST):
                break
            sizes[destination] = size
            taken.setdefault(destination, []).append(self._queue.popleft())
        return taken

    async def _send(self, taken: dict[Destination, list[Sending]]) -> None:
        batches = {
            destination: build_batch([record for each in several for record in _records(each)])
            for destination, several in taken.items()
        }
        if self._leader == self._broker.node_id:
            for destination, batch in batches.items():
                self._end({destination: taken[destination]}, await self._append(destination, batch))
            return
        topics: dict[tuple[str, Uuid], list[PartitionProduceData]] = {}
        for destination, batch in batches.items():
            topics.setdefault((destination.topic, destination.topic_id), []).append(
                PartitionProduceData(destination.partition, batch)
            )
        data = [TopicProduceData(name, topic_id, partitions) for (name, topic_id), partitions in topics.items()]
        request = ProduceRequest(acks=ACKS_ALL, timeout_ms=TIMEOUT_MS, topic_data=data)
        response: ProduceResponse = await self._broker.others.ask(self._leader, PURPOSE, request, TIMEOUT_MS)
        errors = {
            (topic.topic_id or topic.name, each.index): ErrorCode(each.error_code)
            for topic in response.responses
            for each in topic.partition_responses
        }
        for destination, several in taken.items():
            found = errors.get(
                (destination.topic_id, destination.partition), errors.get((destination.topic, destination.partition))
            )
            self._end({destination: several}, ErrorCode.UNKNOWN_SERVER_ERROR if found is None else found)

    async def _append(self, destination: Destination, batch: bytearray) -> ErrorCode:
        broker, runtime = self._broker, self._broker.runtime
        partition = broker.replicas.by_id(destination.topic_id, destination.partition)
        if not isinstance(partition, Partition):
            return partition
        result = partition.append(memoryview(batch), runtime.now_ms(), ACKS_ALL)
        if not isinstance(result, AppendResult):
            verdict = await runtime.run_blocking(result.run)
            result = partition.append_validated(verdict, runtime.now_ms(), ACKS_ALL)
        if result.error is not _NONE:
            return result.error
        if not partition.is_safe(result.last_offset, ACKS_ALL):
            parked = ParkedAppend(runtime.now_ms() + TIMEOUT_MS, ACKS_ALL)
            parked.watch(partition, 0, result.last_offset)
            await runtime.wait(parked)
        return acks_and_min_isr.acknowledge(partition, result.last_offset, ACKS_ALL)


def _records(sending: Sending) -> list[RecordData]:
    assert sending.round is not None
    return sending.round.records
