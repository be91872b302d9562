"""AllocateProducerIds: brokers get producer ids in blocks that are never reused."""

from __future__ import annotations

from tidelog.controller.result import ControllerResult, Decision
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from tidelog.protocol.messages.producer_ids_record import ProducerIdsRecord

BLOCK_SIZE = 1000
MAX_PRODUCER_ID = 2**63 - 1


def allocate_producer_ids(decision: Decision, request: AllocateProducerIdsRequest) -> ControllerResult:
    """The next block for a broker; the record holds the start of the block after it. STALE_BROKER_EPOCH for a previous
    process."""
    decision.known_broker(request.broker_id, request.broker_epoch)
    start = max(decision.image.next_producer_id, 0)
    if start > MAX_PRODUCER_ID - BLOCK_SIZE:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"producer ids are exhausted: the next would be {start}")
    record = ProducerIdsRecord(
        broker_id=request.broker_id, broker_epoch=request.broker_epoch, next_producer_id=start + BLOCK_SIZE
    )
    response = AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=BLOCK_SIZE)
    return ControllerResult(response, (record,))
