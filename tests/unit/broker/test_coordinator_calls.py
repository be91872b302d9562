from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any

import pytest

from tests.unit.broker.node_world import run
from tests.unit.broker.one_coordinator import OneCoordinator
from tests.unit.coordinator.transaction.driver import P0
from tidelog.broker.coordinator_calls import ask, close_all
from tidelog.coordinator.transaction.transitions import Producer
from tidelog.model.errors import ErrorCode as E
from tidelog.model.machine import Outcome, Token


def question(coordinator: OneCoordinator, producer: Producer) -> Any:
    def call(machine: Any, token: Token, now_ms: int) -> Outcome:
        added: Outcome = machine.add_partitions(token, "x", producer, [P0], client_version=2, now_ms=now_ms, patience_ms=1000)
        return added

    return ask(
        coordinator.context(),
        coordinator,  # type: ignore[arg-type]
        "x",
        call,
        lambda reply: ("answered", reply),
        lambda error: ("refused", error),
    )


def ending() -> tuple[OneCoordinator, Producer]:
    coordinator = OneCoordinator()
    producer = coordinator.driver.producer()
    coordinator.driver.add(producer, P0)
    coordinator.driver.end(producer, commit=True)
    return coordinator, Producer(producer.producer_id, 1)


def test_an_answer_that_is_there_needs_no_waiting() -> None:
    coordinator = OneCoordinator()
    assert question(coordinator, coordinator.driver.producer()) == ("answered", E.NONE)


def test_without_a_shard_the_reason_is_the_answer() -> None:
    coordinator = OneCoordinator()
    coordinator.error = E.COORDINATOR_LOAD_IN_PROGRESS
    assert question(coordinator, Producer(1, 0)) == ("refused", E.COORDINATOR_LOAD_IN_PROGRESS)


def test_an_answer_that_takes_time_is_waited_for() -> None:
    coordinator, producer = ending()
    later = question(coordinator, producer)
    assert isinstance(later, Coroutine)
    coordinator.driver.write_markers()
    assert run(later) == ("answered", E.NONE)
    assert len(coordinator.abandoned) == 1, "nobody waits for it any more"


def test_a_shard_that_stops_meanwhile_refuses() -> None:
    coordinator, producer = ending()
    later = question(coordinator, producer)
    coordinator.stop(E.NOT_COORDINATOR)
    assert run(later) == ("refused", E.NOT_COORDINATOR)


def test_answers_that_nobody_waits_for_are_closed_and_those_that_came_are_left_alone() -> None:
    ended: list[str] = []

    async def waits() -> None:
        try:
            await Never()
        finally:
            ended.append("closed")

    class Never:
        def __await__(self) -> Generator[None, None, None]:
            yield

    begun, fresh = waits(), waits()
    begun.send(None)
    close_all([begun, fresh, {"an": "answer"}, E.NONE])
    assert ended == ["closed"]
    for each in (begun, fresh):
        with pytest.raises(RuntimeError):
            each.send(None)


def test_a_shard_whose_leadership_went_while_others_were_asked_refuses() -> None:
    coordinator = OneCoordinator()
    coordinator.machine = None
    assert question(coordinator, Producer(1, 0)) == ("refused", E.NOT_COORDINATOR)
