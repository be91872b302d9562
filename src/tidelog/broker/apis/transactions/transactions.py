"""Requests of transactional producers to their coordinator: InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn.

InitProducerId without a transactional id is answered by every broker: each plain Java producer asks for an id. The others are
passed to the shard of ``__transaction_state`` that owns the transactional id; without one the answer is
COORDINATOR_LOAD_IN_PROGRESS (14) or NOT_COORDINATOR (16): clients retry. Old clients get INVALID_PRODUCER_EPOCH instead of
PRODUCER_FENCED, which they do not know (KIP-588).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from tidelog.broker.answer_types import Answer
from tidelog.broker.authorization import allowed, allows, allows_on_any, allows_on_cluster, require_on_cluster
from tidelog.broker.coordinator_calls import ask, close_all
from tidelog.broker.node import Broker, BrokerContext
from tidelog.controller.quorum_controller import QuorumController
from tidelog.coordinator.partition_for_key import partition_of
from tidelog.coordinator.transaction import coordinator
from tidelog.coordinator.transaction.metadata import TV0, TV2
from tidelog.coordinator.transaction.transitions import Producer
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import INTERNAL_TOPICS, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, OFFSETS_TOPIC, TopicPartition
from tidelog.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from tidelog.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from tidelog.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from tidelog.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from tidelog.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

log = logging.getLogger(__name__)

Later = Answer | Coroutine[Any, Any, Answer]

INIT_KNOWS_FENCED_FROM = 4
OTHERS_KNOW_FENCED_FROM = 2
BATCHED_FROM = 4
"""The versions of AddPartitionsToTxn that brokers send, for several transactions at once."""
BUMPING_FROM = 5
"""The versions of EndTxn whose response carries the next epoch (KIP-890)."""


def may_write(ctx: BrokerContext, transactional_id: str) -> bool:
    """Whether the client may use the transactional id. This includes its producer ids."""
    return allows(ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)


def _told(ctx: BrokerContext, error: ErrorCode, fenced_from: int) -> ErrorCode:
    old = error is ErrorCode.PRODUCER_FENCED and ctx.api_version < fenced_from
    return ErrorCode.INVALID_PRODUCER_EPOCH if old else error


# -- InitProducerId ----------------------------------------------------------------------------------------------------------


def init_producer_id(ctx: BrokerContext, request: InitProducerIdRequest) -> Later:
    """Idempotent and transactional producers. v3 added the current id and epoch (KIP-360), v4 PRODUCER_FENCED, v5
    TRANSACTION_ABORTABLE. v6 (two-phase commit) is unstable and not offered.

    A producer without a transactional id needs IDEMPOTENT_WRITE on the cluster or WRITE on any topic (KIP-679).

    Errors: 14 also while no block of ids is available, 16, 31, 42, 47, 50, 51 while an open transaction is being aborted, 53, 90.
    """
    if request.transactional_id is not None:
        if not may_write(ctx, request.transactional_id):
            return _no_id(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif not _may_be_idempotent(ctx):
        return _no_id(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    named = request.producer_id != NO_PRODUCER_ID, request.producer_epoch != NO_PRODUCER_EPOCH
    if named[0] != named[1] or request.transactional_id == "":
        return _no_id(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        return _with_ids(ctx, lambda: _idempotent(ctx))
    expected = Producer(request.producer_id, request.producer_epoch) if named[0] else None
    refused = ctx.node.transactions.find(request.transactional_id)
    if isinstance(refused, ErrorCode):
        # This case needs no producer id; a broker that is cut off would wait for one in vain.
        return _no_id(refused)
    return _with_ids(
        ctx, lambda: _init_transactional(ctx, request.transactional_id or "", request.transaction_timeout_ms, expected)
    )


def _may_be_idempotent(ctx: BrokerContext) -> bool:
    on_cluster = allows_on_cluster(ctx, AclOperation.IDEMPOTENT_WRITE, quiet=True)
    return on_cluster or allows_on_any(ctx, AclOperation.WRITE, ResourceType.TOPIC)


def _with_ids(ctx: BrokerContext, answer: Callable[[], Later]) -> Later:
    """``answer()`` with producer ids available; fetches a block first if there are none."""
    ids = ctx.node.producer_ids
    if ids.has_id:
        later = answer()
        if ids.wants_block:
            ctx.node.runtime.spawn(_prefetch(ctx.node), "prefetching producer ids")
        return later
    return _after_refill(ctx, answer)


async def _after_refill(ctx: BrokerContext, answer: Callable[[], Later]) -> Answer:
    try:
        await _refill(ctx.node)
    except KafkaError:
        # No block is available: the client retries.
        return _no_id(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    later = answer()
    return await later if isinstance(later, Coroutine) else later


def _idempotent(ctx: BrokerContext) -> InitProducerIdResponse:
    producer_id = ctx.node.producer_ids.take()
    if producer_id is None:
        # Other requests used up the block; the client retries.
        return _no_id(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _init_transactional(ctx: BrokerContext, transactional_id: str, timeout_ms: int, expected: Producer | None) -> Later:
    def respond(answer: coordinator.Answer) -> InitProducerIdResponse:
        return InitProducerIdResponse(
            error_code=_told(ctx, answer.error, INIT_KNOWS_FENCED_FROM),
            producer_id=answer.producer_id,
            producer_epoch=answer.producer_epoch,
        )

    return ask(
        ctx,
        ctx.node.transactions,
        transactional_id,
        lambda machine, token, now_ms: machine.init(token, transactional_id, timeout_ms, expected, now_ms),
        respond,
        _no_id,
    )


async def _prefetch(broker: Broker) -> None:
    """Fetch the next block in advance; a failure only causes a warning."""
    try:
        await _refill(broker)
    except KafkaError as error:
        log.warning("no further block of producer ids: %s", error)


async def _refill(broker: Broker) -> None:
    """Fetch a block. KafkaError when the controller refuses."""
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
    if response.error_code:
        raise KafkaError(ErrorCode(response.error_code), "the controller gives no block of producer ids")
    ids.add((response.producer_id_start, response.producer_id_len))


def _no_id(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)


# -- AddPartitionsToTxn, AddOffsetsToTxn -------------------------------------------------------------------------------------


def add_partitions_to_txn(ctx: BrokerContext, request: AddPartitionsToTxnRequest) -> Later:
    """v0 to v3: a producer below transaction.version 2 adds partitions to its transaction. v4 and v5: a broker adds them, or
    asks whether they belong to it (``verify_only``), for several transactions at once (KIP-890).

    Errors: 3, and 29 for a topic that the client may not write or that is internal, with 55 for the other partitions; 14, 16, 42,
    47, 49, 51, 53, 90, 120 for partitions that are not in the transaction. 31 for a batched request without CLUSTER_ACTION.
    """
    if ctx.api_version >= BATCHED_FROM:
        require_on_cluster(ctx, AclOperation.CLUSTER_ACTION)
        return _add_batched(ctx, request)
    asked = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    if not may_write(ctx, asked.transactional_id):
        denied = _results(asked.topics, lambda _: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=denied)
    answer = _add_one(ctx, asked, TV0)
    if isinstance(answer, Coroutine):
        return _later_v3(answer)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=answer)


async def _later_v3(answer: Coroutine[Any, Any, list[AddPartitionsToTxnTopicResult]]) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=await answer)


async def _add_batched(ctx: BrokerContext, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    answers = [_add_one(ctx, asked, TV2) for asked in request.transactions]
    results = []
    try:
        for asked, answer in zip(request.transactions, answers, strict=True):
            found = await answer if isinstance(answer, Coroutine) else answer
            results.append(AddPartitionsToTxnResult(transactional_id=asked.transactional_id, topic_results=found))
    finally:
        close_all(answers)
    return AddPartitionsToTxnResponse(results_by_transaction=results)


def _add_one(ctx: BrokerContext, asked: AddPartitionsToTxnTransaction, client_version: int) -> Any:
    """The results of one transaction by topic, or a coroutine that returns them. If one partition is refused, all fail."""
    producer = Producer(asked.producer_id, asked.producer_epoch)
    partitions = [TopicPartition(topic.name, index) for topic in asked.topics for index in topic.partitions]
    writable = _writable(ctx, asked)
    refused = {partition: _refusal(ctx, partition, writable) for partition in partitions}
    if any(refused.values()):
        return _results(asked.topics, lambda partition: refused[partition] or ErrorCode.OPERATION_NOT_ATTEMPTED)

    def respond(answer: ErrorCode | dict[TopicPartition, ErrorCode]) -> list[AddPartitionsToTxnTopicResult]:
        if isinstance(answer, dict):
            return _results(asked.topics, answer.__getitem__)
        error = _told(ctx, answer, OTHERS_KNOW_FENCED_FROM)
        return _results(asked.topics, lambda _: error)

    def call(machine: coordinator.TransactionCoordinator, token: Any, now_ms: int) -> Any:
        if asked.verify_only:
            return machine.verify_partitions(token, asked.transactional_id, producer, partitions)
        return machine.add_partitions(
            token, asked.transactional_id, producer, partitions, client_version=client_version, now_ms=now_ms
        )

    return ask(ctx, ctx.node.transactions, asked.transactional_id, call, respond, respond, writes=not asked.verify_only)


def _writable(ctx: BrokerContext, asked: AddPartitionsToTxnTransaction) -> frozenset[str]:
    """The topics that the sender may add. Clients do not write to internal topics: they announce a group's offsets with
    AddOffsetsToTxn, and brokers add that partition themselves."""
    names = frozenset(topic.name for topic in asked.topics)
    if ctx.api_version >= BATCHED_FROM:
        return names
    return allowed(ctx, AclOperation.WRITE, ResourceType.TOPIC, names.difference(INTERNAL_TOPICS))


def _refusal(ctx: BrokerContext, partition: TopicPartition, writable: frozenset[str]) -> ErrorCode:
    """Why a partition cannot join a transaction; NONE when it can."""
    if partition.topic not in writable:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = ctx.image.topics.by_name.get(partition.topic)
    exists = topic is not None and 0 <= partition.partition < len(topic.partitions)
    return ErrorCode.NONE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _results(
    topics: list[AddPartitionsToTxnTopic], error_of: Callable[[TopicPartition], ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=error_of(TopicPartition(topic.name, index))
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def add_offsets_to_txn(ctx: BrokerContext, request: AddOffsetsToTxnRequest) -> Later:
    """A producer below transaction.version 2 is about to commit a group's offsets: the group's partition of
    ``__consumer_offsets`` joins the transaction. Errors as for AddPartitionsToTxn, and 30."""
    if not may_write(ctx, request.transactional_id):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not allows(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    producer = Producer(request.producer_id, request.producer_epoch)
    topic = ctx.image.topics.by_name.get(OFFSETS_TOPIC)
    count = ctx.config.offsets_topic_num_partitions if topic is None else len(topic.partitions)
    partitions = [TopicPartition(OFFSETS_TOPIC, partition_of(request.group_id, count))]

    def respond(error: ErrorCode) -> AddOffsetsToTxnResponse:
        return AddOffsetsToTxnResponse(error_code=_told(ctx, error, OTHERS_KNOW_FENCED_FROM))

    return ask(
        ctx,
        ctx.node.transactions,
        request.transactional_id,
        lambda machine, token, now_ms: machine.add_partitions(
            token, request.transactional_id, producer, partitions, client_version=TV0, now_ms=now_ms
        ),
        respond,
        respond,
    )


# -- EndTxn ------------------------------------------------------------------------------------------------------------------


def end_txn(ctx: BrokerContext, request: EndTxnRequest) -> Later:
    """Commit or abort. v5 implies transaction.version 2: the answer carries the producer's next epoch, and a retry with the
    previous epoch gets the same answer (KIP-890). Errors: 14, 16, 42, 47, 48, 49, 51 while it is being completed, 53, 90."""
    if not may_write(ctx, request.transactional_id):
        return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    producer = Producer(request.producer_id, request.producer_epoch)
    bumping = ctx.api_version >= BUMPING_FROM

    def respond(answer: coordinator.Answer) -> EndTxnResponse:
        response = EndTxnResponse(error_code=_told(ctx, answer.error, OTHERS_KNOW_FENCED_FROM))
        if bumping:
            response.producer_id, response.producer_epoch = answer.producer_id, answer.producer_epoch
        return response

    if bumping and ctx.node.producer_ids.wants_block:
        # A producer whose epochs are exhausted gets a new id; if none is available it gets 14 and retries.
        ctx.node.runtime.spawn(_prefetch(ctx.node), "prefetching producer ids")
    return ask(
        ctx,
        ctx.node.transactions,
        request.transactional_id,
        lambda machine, token, now_ms: machine.end(
            token,
            request.transactional_id,
            producer,
            commit=request.committed,
            client_version=TV2 if bumping else TV0,
            now_ms=now_ms,
        ),
        respond,
        lambda error: EndTxnResponse(error_code=error),
    )
