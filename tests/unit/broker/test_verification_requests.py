from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.unit.broker.others import ScriptedBrokers
from tidelog.broker.verification_requests import Errors, Question, TransactionQuestions, errors_of, questions_request
from tidelog.model.errors import ErrorCode as E
from tidelog.model.errors import KafkaError
from tidelog.model.ids import TopicPartition
from tidelog.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from tidelog.server.runtime import LoopRuntime

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
ADDS = Question("x", 7, 1, (A0, B0, A1), adds=True)
VERIFIES = Question("y", 8, 2, (A0,), adds=False)


def response(**codes: dict[TopicPartition, int]) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=transactional_id,
                topic_results=[
                    AddPartitionsToTxnTopicResult(
                        name=where.topic,
                        results_by_partition=[
                            AddPartitionsToTxnPartitionResult(partition_index=where.partition, partition_error_code=code)
                        ],
                    )
                    for where, code in partitions.items()
                ],
            )
            for transactional_id, partitions in codes.items()
        ]
    )


def run(main: Callable[[LoopRuntime], Awaitable[None]]) -> None:
    loop = asyncio.new_event_loop()
    runtime = LoopRuntime(loop)

    async def bounded() -> None:
        async with asyncio.timeout(20):
            await main(runtime)

    loop.run_until_complete(bounded())
    loop.run_until_complete(runtime.close())
    loop.close()


def test_questions_travel_as_brokers_of_kafka_ask_them() -> None:
    request = questions_request([ADDS, VERIFIES])
    read = AddPartitionsToTxnRequest.decode(request.encode(5), 5)
    told = [
        (
            each.transactional_id,
            each.producer_id,
            each.producer_epoch,
            each.verify_only,
            {topic.name: topic.partitions for topic in each.topics},
        )
        for each in read.transactions
    ]
    assert told == [("x", 7, 1, False, {"a": [0, 1], "b": [0]}), ("y", 8, 2, True, {"a": [0]})]


def test_each_question_gets_its_own_answers_and_what_is_passed_over_is_a_failure() -> None:
    answers = errors_of(response(x={A0: 0, B0: 51}, z={A0: 0}), [ADDS, VERIFIES])
    assert answers == [
        {A0: E.NONE, B0: E.CONCURRENT_TRANSACTIONS, A1: E.UNKNOWN_SERVER_ERROR},
        {A0: E.UNKNOWN_SERVER_ERROR},
    ]


@pytest.mark.parametrize(
    ("code", "told"), [(E.CLUSTER_AUTHORIZATION_FAILED, E.INVALID_TXN_STATE), (E.NOT_COORDINATOR, E.NOT_COORDINATOR)]
)
def test_an_error_for_the_whole_request_is_every_partitions(code: E, told: E) -> None:
    refused = AddPartitionsToTxnResponse(error_code=code)
    assert errors_of(refused, [VERIFIES]) == [{A0: told}]


def test_questions_of_one_moment_share_a_request() -> None:
    async def main(runtime: LoopRuntime) -> None:
        others = ScriptedBrokers(response(x=dict.fromkeys(ADDS.partitions, 0), y={A0: 120}))
        questions = TransactionQuestions(runtime, others)
        found = await asyncio.gather(questions.ask(4, ADDS, 100), questions.ask(4, VERIFIES, 300))
        assert list(found) == [dict.fromkeys((A0, B0, A1), E.NONE), {A0: E.TRANSACTION_ABORTABLE}]
        assert [(broker, purpose, timeout) for broker, purpose, _, timeout in others.asked] == [(4, "transactions", 300)]

    run(main)


@pytest.mark.parametrize(
    ("code", "question", "told"),
    [
        (E.NETWORK_EXCEPTION, ADDS, E.NETWORK_EXCEPTION),
        (E.REQUEST_TIMED_OUT, VERIFIES, E.NETWORK_EXCEPTION),
        (E.BROKER_NOT_AVAILABLE, VERIFIES, E.NETWORK_EXCEPTION),
        (E.UNSUPPORTED_VERSION, VERIFIES, E.NONE),
        (E.UNSUPPORTED_VERSION, ADDS, E.NETWORK_EXCEPTION),
    ],
)
def test_who_gets_no_answer_asks_again_but_an_old_broker_need_not_be_asked(code: E, question: Question, told: E) -> None:
    async def main(runtime: LoopRuntime) -> None:
        questions = TransactionQuestions(runtime, ScriptedBrokers(KafkaError(code)))
        assert await questions.ask(4, question, 100) == dict.fromkeys(question.partitions, told)

    run(main)


def test_a_client_that_went_away_is_not_asked_for_and_leaves_nothing_behind() -> None:
    async def main(runtime: LoopRuntime) -> None:
        first: asyncio.Future[Any] = runtime.loop.create_future()
        others = ScriptedBrokers(first, response(y={A0: 0}))
        questions = TransactionQuestions(runtime, others)
        asked: list[asyncio.Task[Errors]] = [asyncio.ensure_future(questions.ask(4, ADDS, 100))]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asked += [asyncio.ensure_future(questions.ask(4, each, 100)) for each in (ADDS, VERIFIES)]
        await asyncio.sleep(0)
        for gone in asked[:2]:
            gone.cancel()
        await asyncio.sleep(0)
        first.set_result(response(x={A0: 0}))
        assert await asked[2] == {A0: E.NONE}
        assert [[each.transactional_id for each in request.transactions] for _, _, request, _ in others.asked] == [["x"], ["y"]]

    run(main)


def test_a_node_that_stops_leaves_nobody_waiting() -> None:
    async def main(runtime: LoopRuntime) -> None:
        never: asyncio.Future[Any] = runtime.loop.create_future()
        questions = TransactionQuestions(runtime, ScriptedBrokers(never))
        asked = asyncio.ensure_future(questions.ask(4, VERIFIES, 100))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for task in runtime._tasks:
            task.cancel()
        assert await asked == {A0: E.NETWORK_EXCEPTION}

    run(main)
