"""AddPartitionsToTxn as a partition's broker sends it: questions about transactions that another broker coordinates (KIP-890).

Questions to one broker are batched. How errors are mapped for clients: ``transaction_verification``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tidelog.broker.request_batching import Batches
from tidelog.coordinator.shard import Waiting
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import TopicPartition
from tidelog.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from tidelog.broker.ports import OtherBrokers, Runtime

Errors = dict[TopicPartition, ErrorCode]

MOST_AT_ONCE = 1_000
"""Transactions per request."""
PURPOSE = "transactions"


class Question(NamedTuple):
    """Do these partitions belong to the producer's transaction? With ``adds`` they are added if possible."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: Sequence[TopicPartition]
    adds: bool


class TransactionQuestions:
    """Sends questions to other brokers."""

    def __init__(self, runtime: Runtime, others: OtherBrokers) -> None:
        self._runtime = runtime
        self._others = others
        self._asked: Batches[tuple[Question, int, Waiting]] = Batches(
            runtime, self._carry, key=lambda asked: asked[0].transactional_id, most=MOST_AT_ONCE, purpose=PURPOSE
        )

    async def ask(self, coordinator: int, question: Question, timeout_ms: int) -> Errors:
        """The answer of broker ``coordinator`` for each partition; NETWORK_EXCEPTION without an answer."""
        waiting = Waiting()
        self._asked.put(coordinator, (question, timeout_ms, waiting))
        try:
            await self._runtime.wait(waiting)
        finally:
            # If the client has disconnected, nothing may keep its connection alive.
            waiting.on_done = None
            waiting.finish()
        answer: Errors = waiting.response
        return answer

    async def pause(self, delay_ms: int) -> None:
        """The back-off before the next question."""
        waiting = Waiting()
        waiting.deadline_ms = self._runtime.now_ms() + delay_ms
        try:
            await self._runtime.wait(waiting)
        finally:
            waiting.on_done = None
            waiting.finish()

    async def _carry(self, broker_id: int, asked: list[tuple[Question, int, Waiting]]) -> None:
        wanted = [each for each in asked if not each[2].done]
        if not wanted:
            return
        answers = [_unanswered(question, ErrorCode.NETWORK_EXCEPTION) for question, _, _ in wanted]
        try:
            request = questions_request([question for question, _, _ in wanted])
            timeout_ms = max(timeout for _, timeout, _ in wanted)
            response = await self._others.ask(broker_id, PURPOSE, request, timeout_ms)
            answers = errors_of(response, [question for question, _, _ in wanted])
        except KafkaError as error:
            answers = [_unanswered(question, error.code) for question, _, _ in wanted]
        finally:  # also on failure or shutdown: clients wait for this
            for (_, _, waiting), errors in zip(wanted, answers, strict=True):
                waiting.response = errors
                waiting.finish()


def _unanswered(question: Question, code: ErrorCode) -> Errors:
    """A coordinator that does not know verification is older than KIP-890, so verifying is skipped; adding partitions is
    impossible there."""
    skipped = code is ErrorCode.UNSUPPORTED_VERSION and not question.adds
    return dict.fromkeys(question.partitions, ErrorCode.NONE if skipped else ErrorCode.NETWORK_EXCEPTION)


def questions_request(questions: Sequence[Question]) -> AddPartitionsToTxnRequest:
    """One request for all of them; at most one question per transactional id."""
    transactions = []
    for question in questions:
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for name, index in question.partitions:
            topics.setdefault(name, AddPartitionsToTxnTopic(name=name)).partitions.append(index)
        transactions.append(
            AddPartitionsToTxnTransaction(
                transactional_id=question.transactional_id,
                producer_id=question.producer_id,
                producer_epoch=question.producer_epoch,
                verify_only=not question.adds,
                topics=list(topics.values()),
            )
        )
    return AddPartitionsToTxnRequest(transactions=transactions)


def errors_of(response: AddPartitionsToTxnResponse, questions: Sequence[Question]) -> list[Errors]:
    """The coordinator's answer to each question; UNKNOWN_SERVER_ERROR for a partition that it omits."""
    if response.error_code:
        code = ErrorCode(response.error_code)
        told = ErrorCode.INVALID_TXN_STATE if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED else code
        return [dict.fromkeys(question.partitions, told) for question in questions]
    said: Mapping[str, Errors] = {
        each.transactional_id: {
            TopicPartition(topic.name, partition.partition_index): ErrorCode(partition.partition_error_code)
            for topic in each.topic_results
            for partition in topic.results_by_partition
        }
        for each in response.results_by_transaction
    }
    return [
        {
            partition: said.get(question.transactional_id, {}).get(partition, ErrorCode.UNKNOWN_SERVER_ERROR)
            for partition in question.partitions
        }
        for question in questions
    ]
