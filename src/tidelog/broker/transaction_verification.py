"""Asks a transaction's coordinator before a partition accepts the transaction's first batch (KIP-890).

Producers below transaction.version 2 add their partitions themselves, so the coordinator only verifies that they did; for newer
ones the write itself adds the partition. Either way a late batch of a finished transaction is rejected here, before it could hold
back the last stable offset for good. The partition's part (a guard held while the question is in flight) is in ``storage``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from tidelog.broker.coordinator_calls import ask
from tidelog.broker.node import BrokerContext
from tidelog.broker.verification_requests import Errors, Question
from tidelog.coordinator.partition_for_key import partition_of
from tidelog.coordinator.transaction.metadata import TV2
from tidelog.coordinator.transaction.transitions import Producer
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_BROKER, TRANSACTION_STATE_TOPIC, TopicPartition


class Operation(Enum):
    """The operation that a client's version requires."""

    VERIFY_OLD = "verify, for clients that do not know TRANSACTION_ABORTABLE"
    VERIFY = "verify"
    ADD = "add"


def operation_of_produce(version: int) -> Operation:
    """For a transactional Produce at ``version``."""
    return _operation(version, knows_abortable=11, adds=12)


def operation_of_offset_commit(version: int) -> Operation:
    """For a TxnOffsetCommit at ``version``."""
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
    """The coordinator's answer for each of ``partitions``: NONE when it belongs to the producer's transaction.

    Errors: INVALID_PRODUCER_EPOCH for a fenced producer, INVALID_PRODUCER_ID_MAPPING, INVALID_REQUEST, CONCURRENT_TRANSACTIONS
    while the previous transaction is being completed (an ADD first waits for add.partitions.to.txn.retry.backoff.max.ms),
    TRANSACTION_ABORTABLE (INVALID_TXN_STATE for VERIFY_OLD) when a partition does not belong to it, NOT_COORDINATOR,
    COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE without a coordinator, NETWORK_EXCEPTION.
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
    """The broker that coordinates the transactional id. While the topic does not exist this broker is asked, and answers that
    it is not the coordinator."""
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
    """A remote coordinator reports at once that it is completing the previous transaction. Retry up to the back-off limit, so
    that producers rarely see this error."""
    config, questions, even_ms = ctx.config, ctx.node.transaction_questions, ctx.node.runtime.even_ms
    until_ms = even_ms() + config.add_partitions_to_txn_retry_backoff_max_ms
    while True:
        errors = await questions.ask(coordinator, question, config.request_timeout_ms)
        busy = question.adds and ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()
        if not busy or even_ms() + config.add_partitions_to_txn_retry_backoff_ms >= until_ms:
            return errors
        await questions.pause(config.add_partitions_to_txn_retry_backoff_ms)


def _as_told(error: ErrorCode, operation: Operation) -> ErrorCode:
    if error is ErrorCode.PRODUCER_FENCED:
        # After INVALID_PRODUCER_EPOCH a producer may still abort; PRODUCER_FENCED would be fatal (KIP-588).
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
    """The error for the producer. Older producers do not retry a Produce on coordinator errors; NOT_ENOUGH_REPLICAS makes them
    retry without a metadata refresh. Newer ones know CONCURRENT_TRANSACTIONS and see it often."""
    if error in _NOT_YET or (error is ErrorCode.CONCURRENT_TRANSACTIONS and operation is not Operation.ADD):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return error
