"""The audit's topic: lines become records without a key, in a partition whose leader is this broker, or another one.

The broker appends to its own partition without a request, so nothing of that is authorized or audited; to another broker it
sends a Produce in its own name, which that broker does not audit either (``broker.audit``). A batch whose answer was lost is
written again, so a line may be there twice, with one id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidelog.broker.internal_topics import InternalTopic, create_now
from tidelog.broker.node import Broker
from tidelog.metadata.image import TopicImage
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tidelog.records.builder import RecordData, build_batch
from tidelog.replication.partition import Partition
from tidelog.storage.append_rules import AppendResult

ACKS: Final = 1
RETENTION_MS: Final = 7 * 24 * 3_600_000
TIMEOUT_MS: Final = 5_000
PURPOSE: Final = "audit"


class NotWritten(Exception):
    """The topic could not be written; the text is the reason."""


class NotYet(NotWritten):
    """The topic is not there yet; a failed creation is logged where it fails."""


class AuditTopic:
    """Writes for one broker."""

    def __init__(self, broker: Broker, name: str) -> None:
        self._broker = broker
        self._name = name

    async def write(self, lines: Sequence[bytes]) -> None:
        """Writes all lines as one batch. NotWritten, or KafkaError."""
        broker = self._broker
        topic = broker.image.topics.by_name.get(self._name)
        if topic is None:
            await create_now(broker, self._wanted())
            raise NotYet(f"{self._name} is being created")
        index, leader = _leader(topic, broker.node_id)
        now_ms = broker.runtime.now_ms()
        batch = build_batch([RecordData(None, line, now_ms) for line in lines])
        code = self._append(index, batch) if leader == broker.node_id else await self._send(topic, index, leader, batch)
        if code is not ErrorCode.NONE:
            raise NotWritten(f"{self._name}-{index} on broker {leader}: {code.name}")

    def _wanted(self) -> InternalTopic:
        factor = self._broker.config.default_replication_factor
        return InternalTopic(self._name, 1, factor, {"cleanup.policy": "delete", "retention.ms": str(RETENTION_MS)})

    def _append(self, index: int, batch: bytearray) -> ErrorCode:
        found = self._broker.replicas.by_name(self._name, index)
        if not isinstance(found, Partition):
            return found
        result = found.append(memoryview(batch), self._broker.runtime.now_ms(), ACKS)
        # Only a long batch is validated in a thread, and these are short.
        return result.error if isinstance(result, AppendResult) else ErrorCode.MESSAGE_TOO_LARGE

    async def _send(self, topic: TopicImage, index: int, leader: int, batch: bytearray) -> ErrorCode:
        data = TopicProduceData(topic.name, topic.id, [PartitionProduceData(index, batch)])
        request = ProduceRequest(acks=ACKS, timeout_ms=TIMEOUT_MS, topic_data=[data])
        response: ProduceResponse = await self._broker.others.ask(leader, PURPOSE, request, TIMEOUT_MS)
        return ErrorCode(response.responses[0].partition_responses[0].error_code)


def _leader(topic: TopicImage, own_id: int) -> tuple[int, int]:
    """The partition to write to and its leader: one that this broker leads, or the first that has a leader. NotWritten."""
    led = [(index, partition.leader) for index, partition in enumerate(topic.partitions) if partition.has_leader]
    if not led:
        raise NotWritten(f"no partition of {topic.name} has a leader")
    return next((each for each in led if each[1] == own_id), led[0])
