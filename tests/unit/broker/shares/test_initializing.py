"""Initializer: an order is carried out, and its outcome told to the group's shard."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.unit.broker.shares.hosted import Clock
from tidelog.broker.shares.initializing import Initializer
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
