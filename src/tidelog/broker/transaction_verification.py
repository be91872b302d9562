"""Asking a transaction's coordinator about partitions before a partition takes the transaction's first batch (KIP-890).

Producers below transaction.version 2 add their partitions themselves, so the coordinator is only asked whether they did; for
newer ones a write is what adds the partition. Either way a late batch of a transaction that is over finds out here, before it
could hold the last stable offset back for ever. The partition's half of this (a guard held while the question is out) is in
``storage``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from tidelog.broker.asking import ask
from tidelog.broker.node import BrokerContext
from tidelog.broker.transaction_questions import Errors, Question
from tidelog.coordinator.placement import partition_of
from tidelog.coordinator.transaction.metadata import TV2
from tidelog.coordinator.transaction.transitions import Producer
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_BROKER, TRANSACTION_STATE_TOPIC, TopicPartition


class Operation(Enum):
    """What a client's version asks for."""

    VERIFY_OLD = "verify, for clients that do not know TRANSACTION_ABORTABLE"
    VERIFY = "verify"
    ADD = "add"


def operation_of_produce(version: int) -> Operation:
    """Of a transactional Produce at ``version``."""
    return _operation(version, knows_abortable=11, adds=12)


def operation_of_offset_commit(version: int) -> Operation:
    """Of a TxnOffsetCommit at ``version``."""
    return _operation(version, knows_abortable=4, adds=5)


def _operation(version: int, *, knows_abortable: int, adds: int) -> Operation:
    if version >= adds:
        return Operation.ADD
    return Operation.VERIFY if version >= knows_abortable else Operation.VERIFY_OLD


async def verify_or_add(
    ctx: BrokerContext,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Sequence[TopicPartition],
    operation: Operation,
) -> Errors:
    """The coordinator's word on each of ``partitions``: NONE when it belongs to the producer's transaction (now).

    Errors: INVALID_PRODUCER_EPOCH for a fenced producer, INVALID_PRODUCER_ID_MAPPING, INVALID_REQUEST, CONCURRENT_TRANSACTIONS
    while the transaction before is being completed (an ADD waits for add.partitions.to.txn.retry.backoff.max.ms first),
    TRANSACTION_ABORTABLE (INVALID_TXN_STATE for VERIFY_OLD) when a partition does not belong to it, NOT_COORDINATOR,
    COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE while nobody coordinates, NETWORK_EXCEPTION.
    """
    coordinator = _coordinator(ctx, transactional_id)
    if isinstance(coordinator, ErrorCode):
        errors = dict.fromkeys(partitions, coordinator)
    elif coordinator == ctx.node.node_id:
        errors = await _ask_here(ctx, transactional_id, Producer(producer_id, producer_epoch), partitions, operation)
    else:
        question = Question(transactional_id, producer_id, producer_epoch, partitions, operation is Operation.ADD)
        errors = await _ask_there(ctx, coordinator, question)
    return {partition: _as_told(error, operation) for partition, error in errors.items()}


def _coordinator(ctx: BrokerContext, transactional_id: str) -> int | ErrorCode:
    """The broker that coordinates the transactional id. While there is no topic for any, this one says that it does not."""
    topic = ctx.image.topics.by_name.get(TRANSACTION_STATE_TOPIC)
    if topic is None:
        return ctx.node.node_id
    leader = topic.partitions[partition_of(transactional_id, len(topic.partitions))].leader
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if leader == NO_BROKER else leader


async def _ask_here(
    ctx: BrokerContext, transactional_id: str, producer: Producer, partitions: Sequence[TopicPartition], operation: Operation
) -> Errors:
    shards = ctx.node.transactions
    if operation is Operation.ADD:
        patience_ms = ctx.config.add_partitions_to_txn_retry_backoff_max_ms
        answer = ask(
            ctx,
            shards,
            transactional_id,
            lambda machine, token, now_ms: machine.add_partitions(
                token, transactional_id, producer, partitions, client_version=TV2, now_ms=now_ms, patience_ms=patience_ms
            ),
            lambda error: dict.fromkeys(partitions, error),
            lambda error: dict.fromkeys(partitions, error),
        )
    else:
        answer = ask(
            ctx,
            shards,
            transactional_id,
            lambda machine, token, _: machine.verify_partitions(token, transactional_id, producer, partitions),
            dict,
            lambda error: dict.fromkeys(partitions, error),
            writes=False,
        )
    errors: Errors = answer if isinstance(answer, dict) else await answer
    return errors


async def _ask_there(ctx: BrokerContext, coordinator: int, question: Question) -> Errors:
    """A coordinator elsewhere answers at once that it completes the transaction before: it is asked again for as long as a
    producer should not hear of that."""
    config, questions = ctx.config, ctx.node.transaction_questions
    until_ms = ctx.now_ms() + config.add_partitions_to_txn_retry_backoff_max_ms
    while True:
        errors = await questions.ask(coordinator, question, config.request_timeout_ms)
        busy = question.adds and ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()
        if not busy or ctx.now_ms() + config.add_partitions_to_txn_retry_backoff_ms >= until_ms:
            return errors
        await questions.pause(config.add_partitions_to_txn_retry_backoff_ms)


def _as_told(error: ErrorCode, operation: Operation) -> ErrorCode:
    if error is ErrorCode.PRODUCER_FENCED:
        # A producer may still abort on this one; the other one would end it (KIP-588).
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and operation is Operation.VERIFY_OLD:
        return ErrorCode.INVALID_TXN_STATE
    return error


_NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION,
)


def produce_error(error: ErrorCode, operation: Operation) -> ErrorCode:
    """What a producer is told. Older ones do not retry a Produce for a coordinator's sake: NOT_ENOUGH_REPLICAS makes them,
    without a look at the metadata. Newer ones meet CONCURRENT_TRANSACTIONS often, and know it."""
    if error in _NOT_YET or (error is ErrorCode.CONCURRENT_TRANSACTIONS and operation is not Operation.ADD):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return error
