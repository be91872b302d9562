"""What partitions hear about transactions before they take a batch (KIP-890)."""

from __future__ import annotations

import pytest

from tests.unit.broker.node_world import run
from tests.unit.broker.one_coordinator import OneCoordinator
from tests.unit.coordinator.transaction.driver import P0, P1
from tidelog.broker.transaction_verification import (
    Operation,
    operation_of_offset_commit,
    operation_of_produce,
    produce_error,
    verify_or_add,
)
from tidelog.coordinator.transaction.transitions import Producer
from tidelog.model.errors import ErrorCode as E
from tidelog.model.ids import TopicPartition


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
def test_trap_34_a_fenced_producer_may_still_abort(operation: Operation) -> None:
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
