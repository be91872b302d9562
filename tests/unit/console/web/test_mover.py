"""Moves that the console carries out, with a cluster that answers from a script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.client.scripted import answered
from tidelog.client.calls import Ask
from tidelog.client.failures import NoConnection
from tidelog.console.moving.balance_plan import Move
from tidelog.console.moving.layout import Layout, Seen
from tidelog.console.web.mover import Mover, Order
from tidelog.console.web.problems import Problem
from tidelog.protocol.messages import alter_partition_reassignments as altering
from tidelog.protocol.messages import elect_leaders as electing
from tidelog.protocol.messages import incremental_alter_configs as configs
from tidelog.protocol.messages import list_partition_reassignments as listing
from tidelog.protocol.messages import metadata

A, B = ("t", 0), ("t", 1)
MOVES = (Move(A, (1,), (2,), 300), Move(B, (1,), (2,), 200))
LAYOUT = Layout("c", {1: None, 2: None}, {}, (Seen(A, 1, (1,), (1,)), Seen(B, 1, (1,), (1,))), {}, {})


class Brokers:
    """Two brokers with a topic. A reassignment is over when it was listed once. ``fails``: raised by the next requests."""

    def __init__(self) -> None:
        self.replicas = {0: [1], 1: [1]}
        self.moving: dict[int, list[int]] = {}
        self.limits: list[tuple[str, str | None]] = []
        self.elected: list[int] = []
        self.begun: list[list[int]] = []
        self.fails: list[Exception] = []
        self.held = False

    async def run(self, call: Any) -> Any:
        await asyncio.sleep(0)
        return answered(call, self.answer)

    def answer(self, step: Any) -> Any:
        assert isinstance(step, Ask)
        if self.fails:
            raise self.fails.pop(0)
        request: Any = step.request
        match request:
            case listing.ListPartitionReassignmentsRequest():
                return self.listed()
            case metadata.MetadataRequest():
                return self.metadata()
            case altering.AlterPartitionReassignmentsRequest():
                parts = request.topics[0].partitions
                self.begun.append([part.partition_index for part in parts])
                self.moving |= {part.partition_index: part.replicas for part in parts}
                return altering.AlterPartitionReassignmentsResponse()
            case configs.IncrementalAlterConfigsRequest():
                rows = [(each.resource_name, each.configs[0].value) for each in request.resources]
                self.limits += rows
                answers = [configs.AlterConfigsResourceResponse(resource_name=name) for name, _ in rows]
                return configs.IncrementalAlterConfigsResponse(responses=answers)
            case electing.ElectLeadersRequest():
                self.elected += request.topic_partitions[0].partitions
                return electing.ElectLeadersResponse()
        raise AssertionError(request)

    def listed(self) -> Any:
        rows = [listing.OngoingPartitionReassignment(partition_index=index, replicas=[1, 2]) for index in self.moving]
        topics = [listing.OngoingTopicReassignment(name="t", partitions=rows)] if rows else []
        if not self.held:
            self.replicas |= self.moving
            self.moving = {}
        return listing.ListPartitionReassignmentsResponse(topics=topics)

    def metadata(self) -> Any:
        parts = [
            metadata.MetadataResponsePartition(partition_index=index, leader_id=1, replica_nodes=held, isr_nodes=held)
            for index, held in self.replicas.items()
        ]
        nodes = [metadata.MetadataResponseBroker(node_id=each, host="h", port=1) for each in (1, 2)]
        return metadata.MetadataResponse(brokers=nodes, topics=[metadata.MetadataResponseTopic(name="t", partitions=parts)])


def order(throttle: int | None = None, concurrent: int = 10) -> Order:
    return Order("Balance", MOVES, throttle, concurrent)


def played(job: Callable[[Mover, Brokers], Any]) -> Brokers:
    brokers = Brokers()

    async def play() -> None:
        mover = Mover(brokers.run, lambda: 7, poll_s=0)
        try:
            await asyncio.wait_for(job(mover, brokers), 20)
        finally:
            await mover.close()

    asyncio.run(play())
    return brokers


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - nothing signals it; ``played`` bounds it
        await asyncio.sleep(0)


async def ended(mover: Mover) -> dict[str, Any]:
    await until(lambda: not mover.busy)
    found = mover.status()
    assert found is not None
    return found


def test_moves_are_made_one_after_another_within_limits_that_go_at_the_end() -> None:
    async def job(mover: Mover, brokers: Brokers) -> None:
        mover.start(order(throttle=500, concurrent=1), LAYOUT)
        with pytest.raises(Problem, match="this goes on still: Balance"):
            mover.start(order(), LAYOUT)
        found = await ended(mover)
        assert (found["done"], found["failures"], found["problem"], found["ended_ms"]) == (2, 0, None, "7")

    brokers = played(job)
    assert brokers.begun == [[0], [1]]
    assert brokers.replicas == {0: [2], 1: [2]}
    assert brokers.limits[:3] == [("t", "0:1,1:1"), ("1", "500"), ("2", "500")]
    assert sorted(brokers.limits[3:], key=str) == [("1", None), ("2", None), ("t", None)]
    assert brokers.elected == [0, 1]


def test_a_cluster_that_does_not_answer_is_asked_again() -> None:
    async def job(mover: Mover, brokers: Brokers) -> None:
        brokers.fails = [NoConnection("broker 1 is away"), NoConnection("still away", sent=True)]
        mover.start(order(), LAYOUT)
        assert (await ended(mover))["done"] == 2

    assert played(job).replicas == {0: [2], 1: [2]}


def test_a_request_without_an_answer_is_repeated() -> None:
    async def job(mover: Mover, brokers: Brokers) -> None:
        honest, count = brokers.answer, 0

        def once(step: Any) -> Any:
            nonlocal count
            found = honest(step)
            if isinstance(step.request, altering.AlterPartitionReassignmentsRequest):
                count += 1
                if count == 1:
                    raise NoConnection("the answer is lost", sent=True)
            return found

        brokers.answer = once  # type: ignore[method-assign]
        mover.start(order(), LAYOUT)
        found = await ended(mover)
        assert (found["done"], found["failures"]) == (2, 0)

    assert played(job).begun == [[0, 1], [0, 1]]


def test_a_stop_ends_what_has_begun_and_begins_no_more() -> None:
    async def job(mover: Mover, brokers: Brokers) -> None:
        with pytest.raises(Problem, match="carries out no moves"):
            mover.stop()
        brokers.held = True
        mover.start(order(concurrent=1), LAYOUT)
        await until(lambda: bool(brokers.moving))
        assert mover.stop() == 1
        brokers.held = False
        found = await ended(mover)
        assert (found["done"], found["waiting"], found["stopping"]) == (1, 0, True)

    assert played(job).replicas == {0: [2], 1: [1]}


def test_limits_that_cannot_be_taken_away_are_a_problem_of_the_plan() -> None:
    async def job(mover: Mover, brokers: Brokers) -> None:
        mover.start(Order("Nothing", (), 500, 1), LAYOUT)
        brokers.fails = [NoConnection("gone")]
        assert (await ended(mover))["problem"] == "after the moves: gone"

    played(job)


def test_what_is_confirmed_is_what_was_shown() -> None:
    mover = Mover(Brokers().run, lambda: 0)
    assert mover.confirmed("key", LAYOUT) is None
    mover.show("key", MOVES)
    assert mover.confirmed("key", LAYOUT) == MOVES
    assert mover.confirmed("key", LAYOUT) is None
    mover.show("key", [Move(A, (2,), (1,), 0)])
    with pytest.raises(Problem, match="t-0 has moved since the preview"):
        mover.confirmed("key", LAYOUT)
