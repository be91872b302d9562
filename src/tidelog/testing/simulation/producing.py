"""An idempotent producer with acks=all on a simulated cluster: it repeats a batch until it is acknowledged, and the batch is
written once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.protocol.messages.init_producer_id import InitProducerIdRequest
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.records.builder import RecordData, build_batch
from tidelog.testing.simulation.client import Client, Later, check

ACK_MS = 3_000
STALE_S = 20.0
"""A broker that still answers so after this time has not merely missed the news that it no longer leads."""


class Lost(AssertionError):
    """A broker says that previously acknowledged batches are missing."""


class Producer:
    """One batch at a time; others wait. After a batch that was given up it becomes another producer: that batch may have been
    written, and the next one must not be taken for it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._turn = asyncio.Lock()
        self._id = self._epoch = -1
        self._sequences: dict[TopicPartition, int] = {}
        self._refused: dict[TopicPartition, float] = {}
        """When a broker first reported missing sequences."""

    async def send(
        self, at: TopicPartition, records: Sequence[tuple[bytes | None, bytes | None]], stop: Callable[[], bool] = lambda: False
    ) -> int | None:
        """Sends keys and values as one batch. Returns the offset of the first record; -1 when it was written before and the
        broker no longer knows where; None when ``stop`` was set before it was acknowledged (it may be written all the same).
        Lost."""
        async with self._turn:
            offset: int | None = None
            try:
                offset = await self._send(at, records, stop)
            finally:
                if offset is None:
                    self._id = -1
                    self._sequences.clear()
                    self._refused.clear()
            return offset

    async def _send(
        self, at: TopicPartition, records: Sequence[tuple[bytes | None, bytes | None]], stop: Callable[[], bool]
    ) -> int | None:
        client = self.client
        if self._id < 0:
            await client.until(self._begin, stop, lambda: None)
        sequence = self._sequences.get(at, 0)
        now_ms = client.runtime.now_ms()
        data = [RecordData(key, value, now_ms) for key, value in records]
        batch = build_batch(data, producer_id=self._id, producer_epoch=self._epoch, base_sequence=sequence)
        offset: int | None = await client.until(partial(self._write, at, batch), stop, partial(client.lost, at))
        if offset is not None:
            self._sequences[at] = sequence + len(data)
        return offset

    async def _begin(self) -> None:
        response = await self.client.ask_any(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000))
        check(response.error_code, "InitProducerId")
        self._id, self._epoch = response.producer_id, response.producer_epoch

    async def _write(self, at: TopicPartition, batch: bytearray) -> int:
        where = await self.client.leader(at)
        topic = self.client.metadata.topics[at.topic]
        part = PartitionProduceData(index=at.partition, records=batch)
        data = TopicProduceData(name=at.topic, topic_id=topic.topic_id, partition_data=[part])
        response = await self.client.ask(where, ProduceRequest(acks=-1, timeout_ms=ACK_MS, topic_data=[data]))
        (answer,) = response.responses[0].partition_responses
        if answer.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            return -1
        if answer.error_code in (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID):
            # Everything before it was acknowledged to us: so the cluster has lost some of it, or this broker is isolated and does
            # not know yet that it no longer leads.
            sequence = self._sequences.get(at, 0)
            now = self.client.now
            if now < self._refused.setdefault(at, now) + STALE_S:
                raise Later("sequences are missing there")
            raise Lost(f"{self.client.loop.name} at {at}: {ErrorCode(answer.error_code).name} at sequence {sequence}")
        check(answer.error_code, f"Produce to {at}")
        self._refused.pop(at, None)
        return int(answer.base_offset)
