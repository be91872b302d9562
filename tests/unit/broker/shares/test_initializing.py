"""Initializer: an order is carried out, and its outcome told to the group's shard."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

from tests.unit.broker.shares.hosted import Clock, Turn
from tidelog.broker.shares.initializing import MOST_AT_ONCE, Initializer
from tidelog.coordinator.group.share.share_heartbeat import Initialize
from tidelog.coordinator.share.coordinator import Answer
from tidelog.coordinator.share.records import ShareKey
from tidelog.model.errors import ErrorCode

T = b"t" * 16


def test_the_group_learns_which_states_exist_now() -> None:
    asked: list[tuple[ShareKey, int, int]] = []
    settled: list[tuple[Any, ...]] = []
    clock: Any = Clock()

    async def initialize(key: ShareKey, state_epoch: int, start_offset: int) -> Answer:
        asked.append((key, state_epoch, start_offset))
        return Answer(ErrorCode.NONE if key.partition == 0 else ErrorCode.NOT_COORDINATOR)

    def tell(shard: object, call: Any) -> None:
        assert shard == "shard"
        call(SimpleNamespace(shares=SimpleNamespace(settle=lambda *args: settled.append(args))), 0)

    store = SimpleNamespace(initialize=initialize)
    broker: Any = SimpleNamespace(runtime=clock, groups=SimpleNamespace(tell=tell), share_partitions=SimpleNamespace(store=store))
    initializer = Initializer()
    initializer.broker = broker
    shard: Any = "shard"
    initializer.send(shard, Initialize("g", 4, {T: ("t", frozenset({0, 1}))}))
    clock.run()
    assert asked == [(ShareKey("g", T, 0), 4, -1), (ShareKey("g", T, 1), 4, -1)]
    assert settled == [("g", {T: frozenset({0})}, {T: frozenset({1})})]


def test_an_order_that_is_being_carried_out_is_not_sent_again() -> None:
    """The second one would come after members have acknowledged records, and reset their state."""
    asked: list[tuple[ShareKey, int]] = []
    tasks: list[Any] = []
    settled: list[tuple[Any, ...]] = []
    answers = [True, False]

    async def initialize(key: ShareKey, state_epoch: int, start_offset: int) -> Answer:
        asked.append((key, state_epoch))
        while answers[0]:
            await Turn()
        return Answer()

    def tell(shard: object, call: Any) -> None:
        call(SimpleNamespace(shares=SimpleNamespace(settle=lambda *args: settled.append(args))), 0)

    runtime = SimpleNamespace(spawn=lambda coroutine, name: tasks.append(coroutine))
    broker: Any = SimpleNamespace(
        runtime=runtime,
        groups=SimpleNamespace(tell=tell),
        share_partitions=SimpleNamespace(store=SimpleNamespace(initialize=initialize)),
    )
    initializer = Initializer()
    initializer.broker = broker
    shard: Any = "shard"
    initializer.send(shard, Initialize("g", 4, {T: ("t", frozenset({0, 1}))}))
    for task in tasks:
        task.send(None)
    assert [each for each, _ in asked] == [ShareKey("g", T, 0), ShareKey("g", T, 1)], "one does not wait for the other"
    initializer.send(shard, Initialize("g", 5, {T: ("t", frozenset({0, 1, 2}))}))
    for task in tasks[2:]:
        task.send(None)
    assert asked[2:] == [(ShareKey("g", T, 2), 5)]
    answers[0] = False
    for task in tasks:
        with contextlib.suppress(StopIteration):
            task.send(None)
    assert len(settled) == 2
    initializer.send(shard, Initialize("g", 6, {T: ("t", frozenset({0}))}))
    assert len(tasks) == 4
    for task in tasks:
        task.close()


def test_an_order_of_many_partitions_is_carried_out_a_few_at_a_time() -> None:
    tasks: list[Any] = []
    settled: list[tuple[Any, ...]] = []
    asked: list[int] = []

    async def initialize(key: ShareKey, state_epoch: int, start_offset: int) -> Answer:
        asked.append(key.partition)
        await Turn()
        if key.partition == 3:
            raise OSError("broken")
        return Answer()

    def tell(shard: object, call: Any) -> None:
        call(SimpleNamespace(shares=SimpleNamespace(settle=lambda *args: settled.append(args))), 0)

    broker: Any = SimpleNamespace(
        runtime=SimpleNamespace(spawn=lambda coroutine, name: tasks.append(coroutine)),
        groups=SimpleNamespace(tell=tell),
        share_partitions=SimpleNamespace(store=SimpleNamespace(initialize=initialize)),
    )
    initializer = Initializer()
    initializer.broker = broker
    shard: Any = "shard"
    count = 3 * MOST_AT_ONCE + 5
    initializer.send(shard, Initialize("g", 4, {T: ("t", frozenset(range(count)))}))
    assert len(tasks) == MOST_AT_ONCE
    while tasks:
        for task in list(tasks):
            try:
                task.send(None)
            except StopIteration:
                tasks.remove(task)
    assert sorted(asked) == list(range(count)), "one that failed does not hold up those behind it"
    assert settled == [("g", {T: frozenset(range(count)) - {3}}, {T: frozenset({3})})]
