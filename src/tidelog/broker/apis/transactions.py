"""InitProducerId: ids for idempotent producers. Transactions are not served yet, and FindCoordinator is not advertised."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from tidelog.broker.context import Broker, Context
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from tidelog.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

Answer = InitProducerIdResponse | Coroutine[Any, Any, InitProducerIdResponse]


def init_producer_id(ctx: Context, request: InitProducerIdRequest) -> Answer:
    """A fresh id at epoch 0 for an idempotent producer; every plain Java producer asks for one.

    v3 and later let a producer name the id and epoch it had; without a transactional id that changes nothing. v6 (two-phase
    commit) is unstable and not offered. Errors: INVALID_REQUEST for an empty transactional id, UNSUPPORTED_VERSION for any
    other one, COORDINATOR_LOAD_IN_PROGRESS while no block of ids can be had.
    """
    if request.transactional_id is not None:
        empty = not request.transactional_id
        return _failed(ErrorCode.INVALID_REQUEST if empty else ErrorCode.UNSUPPORTED_VERSION)
    ids = ctx.broker.producer_ids
    producer_id = ids.take()
    if producer_id is None:
        return _after_refill(ctx)
    if ids.wants_block:
        ctx.broker.runtime.spawn(_refill(ctx.broker), "prefetching producer ids")
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


async def _after_refill(ctx: Context) -> InitProducerIdResponse:
    await _refill(ctx.broker)
    producer_id = ctx.broker.producer_ids.take()
    if producer_id is None:
        # Others took all of it meanwhile; the client tries again.
        return _failed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


async def _refill(broker: Broker) -> None:
    """One more block. KafkaError when the controller gives none."""
    registration = broker.image.brokers.get(broker.node_id)
    if registration is None:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "this broker is not registered yet")
    ids = broker.producer_ids
    ids.requested += 1
    try:
        response: AllocateProducerIdsResponse = await broker.controller.submit(
            QuorumController.allocate_producer_ids,
            AllocateProducerIdsRequest(broker_id=broker.node_id, broker_epoch=registration.epoch),
        )
    finally:
        ids.requested -= 1
    ids.add((response.producer_id_start, response.producer_id_len))


def init_producer_id_refused(request: InitProducerIdRequest, error: KafkaError) -> InitProducerIdResponse:
    """No block could be had: the client asks again."""
    return _failed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def _failed(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
