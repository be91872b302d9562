"""What partitions hear about transactions before they take a batch (KIP-890)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.broker.node_world import NOW_MS, NodeWorld, run
from tests.unit.broker.one_coordinator import OneCoordinator
from tests.unit.coordinator.transaction.driver import P0, P1
from tidelog.broker.transaction_verification import (
    Operation,
    operation_of_offset_commit,
    operation_of_produce,
    produce_error,
    verify_or_add,
)
from tidelog.broker.verification_requests import Errors, Question
from tidelog.coordinator.transaction.transitions import Producer
from tidelog.model.errors import ErrorCode as E
from tidelog.model.ids import TRANSACTION_STATE_TOPIC, TopicPartition


def asked(coordinator: OneCoordinator, producer: Producer, operation: Operation, *partitions: TopicPartition) -> list[E]:
    errors = run(
        verify_or_add(coordinator.context(), "x", producer.producer_id, producer.epoch, partitions or (P0, P1), operation)
    )
    return list(errors.values())


def test_a_clients_version_says_what_is_asked_of_the_coordinator() -> None:
    assert [operation_of_produce(version) for version in (3, 10, 11, 12, 13)] == [
        Operation.VERIFY_OLD,
        Operation.VERIFY_OLD,
        Operation.VERIFY,
        Operation.ADD,
        Operation.ADD,
    ]
    assert [operation_of_offset_commit(version) for version in (0, 3, 4, 5)] == [
        Operation.VERIFY_OLD,
        Operation.VERIFY_OLD,
        Operation.VERIFY,
        Operation.ADD,
    ]


def test_a_write_of_a_new_producer_adds_its_partitions() -> None:
    coordinator = OneCoordinator()
    producer = coordinator.driver.producer()
    assert asked(coordinator, producer, Operation.ADD) == [E.NONE, E.NONE]
    assert list(coordinator.driver.known().partitions) == [P0, P1]
    assert coordinator.driver.known().client_version == 2


@pytest.mark.parametrize(
    ("operation", "told"), [(Operation.VERIFY, E.TRANSACTION_ABORTABLE), (Operation.VERIFY_OLD, E.INVALID_TXN_STATE)]
)
def test_a_partition_that_an_older_producer_did_not_add_is_told_in_words_it_knows(operation: Operation, told: E) -> None:
    coordinator = OneCoordinator()
    producer = coordinator.driver.producer()
    coordinator.driver.add(producer, P0, version=0)
    assert asked(coordinator, producer, operation) == [E.NONE, told]
    assert list(coordinator.driver.known().partitions) == [P0], "asking adds nothing"


@pytest.mark.parametrize("operation", list(Operation))
def test_a_fenced_producer_may_still_abort(operation: Operation) -> None:
    coordinator = OneCoordinator()
    producer = coordinator.driver.producer()
    coordinator.driver.producer()
    assert asked(coordinator, producer, operation, P0) == [E.INVALID_PRODUCER_EPOCH]
    assert asked(coordinator, Producer(5, 0), operation, P0) == [E.INVALID_PRODUCER_ID_MAPPING]


def test_only_a_producer_that_adds_waits_for_the_transaction_before() -> None:
    coordinator = OneCoordinator()
    producer = coordinator.driver.producer()
    coordinator.driver.add(producer, P0)
    coordinator.driver.end(producer, commit=True)
    following = Producer(producer.producer_id, 1)
    before = coordinator.driver.now
    assert asked(coordinator, following, Operation.VERIFY, P0) == [E.CONCURRENT_TRANSACTIONS]
    assert coordinator.driver.now == before
    assert asked(coordinator, following, Operation.ADD, P0) == [E.CONCURRENT_TRANSACTIONS]
    assert coordinator.driver.now == before + 100


@pytest.mark.parametrize("operation", list(Operation))
def test_without_a_coordinator_every_partition_hears_why(operation: Operation) -> None:
    coordinator = OneCoordinator()
    coordinator.error = E.NOT_COORDINATOR
    assert asked(coordinator, Producer(5, 0), operation) == [E.NOT_COORDINATOR] * 2


def test_errors_that_old_producers_would_not_retry_become_one_that_they_do() -> None:
    for error in (E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR, E.NETWORK_EXCEPTION):
        assert {produce_error(error, operation) for operation in Operation} == {E.NOT_ENOUGH_REPLICAS}
    assert produce_error(E.CONCURRENT_TRANSACTIONS, Operation.VERIFY) is E.NOT_ENOUGH_REPLICAS
    assert produce_error(E.CONCURRENT_TRANSACTIONS, Operation.ADD) is E.CONCURRENT_TRANSACTIONS
    for error in (E.NONE, E.TRANSACTION_ABORTABLE, E.INVALID_TXN_STATE, E.INVALID_PRODUCER_EPOCH, E.INVALID_PRODUCER_ID_MAPPING):
        assert produce_error(error, Operation.VERIFY_OLD) is error


# A coordinator on another broker


class Elsewhere:
    """Broker 5 leads the only partition of ``__transaction_state``; waiting lets the time pass that is waited for."""

    def __init__(self, leader: int, *answers: E) -> None:
        self.world = NodeWorld()
        self.world.create(TRANSACTION_STATE_TOPIC)
        image = self.world.broker.image
        topic = image.topics.by_name[TRANSACTION_STATE_TOPIC]
        moved = replace(topic, partitions=(replace(topic.partitions[0], leader=leader),))
        by_name, by_id = {TRANSACTION_STATE_TOPIC: moved}, {topic.id: moved}
        self.world.broker.image = replace(image, topics=replace(image.topics, by_name=by_name, by_id=by_id))
        self.asked: list[tuple[int, Question]] = []
        self.paused_ms = 0
        self.answers = list(answers)
        self.world.broker.transaction_questions = self  # type: ignore[assignment]
        self.world.runtime.now_ms = lambda: NOW_MS + self.paused_ms  # type: ignore[method-assign]

    async def ask(self, coordinator: int, question: Question, timeout_ms: int) -> Errors:
        assert timeout_ms == 30_000
        self.asked.append((coordinator, question))
        return dict.fromkeys(question.partitions, self.answers.pop(0))

    async def pause(self, delay_ms: int) -> None:
        self.paused_ms += delay_ms

    def errors(self, operation: Operation) -> list[E]:
        return list(run(verify_or_add(self.world.context(), "x", 7, 1, (P0, P1), operation)).values())


@pytest.mark.parametrize("operation", list(Operation))
def test_the_broker_that_leads_the_ids_partition_is_asked(operation: Operation) -> None:
    elsewhere = Elsewhere(5, E.NONE)
    assert elsewhere.errors(operation) == [E.NONE, E.NONE]
    assert elsewhere.asked == [(5, Question("x", 7, 1, (P0, P1), operation is Operation.ADD))]


def test_a_coordinator_elsewhere_is_asked_again_for_a_tenth_of_a_second_while_it_completes_the_transaction_before() -> None:
    busy = E.CONCURRENT_TRANSACTIONS
    elsewhere = Elsewhere(5, busy, busy, E.NONE)
    assert elsewhere.errors(Operation.ADD) == [E.NONE, E.NONE]
    assert (len(elsewhere.asked), elsewhere.paused_ms) == (3, 40)
    elsewhere = Elsewhere(5, *[busy] * 5)
    assert elsewhere.errors(Operation.ADD) == [busy, busy]
    assert (len(elsewhere.asked), elsewhere.paused_ms) == (5, 80)
    elsewhere = Elsewhere(5, busy)
    assert elsewhere.errors(Operation.VERIFY) == [busy, busy], "who only verifies asks anew by himself"


def test_while_nobody_coordinates_nobody_is_asked() -> None:
    elsewhere = Elsewhere(-1)
    assert elsewhere.errors(Operation.ADD) == [E.COORDINATOR_NOT_AVAILABLE] * 2
