"""Markers go to every partition, and every partition answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from tests.unit.coordinator.transaction.driver import P0, P1, P2
from tidelog.coordinator.transaction.markers import MarkerAnswer, WriteMarkers
from tidelog.model.errors import ErrorCode as E
from tidelog.model.ids import TopicPartition
from tidelog.model.machine import NOTHING, Outcome
from tidelog.replication.markers import Marker
from tidelog.server.markers import LocalMarkers
from tidelog.server.runtime import LoopRuntime

REQUEST = WriteMarkers("x", 3, 7, 4, True, 2, (P0, P1, P2))


class Listening:
    """Stands for the shards, the shard and the machine: writes down what it is told."""

    epoch = 9

    def __init__(self) -> None:
        self.answers: list[MarkerAnswer] = []
        self.all_answered = asyncio.Event()

    def tell(self, shard: Any, call: Any) -> None:
        assert shard is self
        call(self, 5)

    def marker_answered(self, answer: MarkerAnswer, now_ms: int) -> Outcome:
        self.answers.append(answer)
        if len(self.answers) == len(REQUEST.partitions):
            self.all_answered.set()
        return NOTHING


def sent(results: dict[TopicPartition, Any]) -> tuple[list[tuple[TopicPartition, Marker]], list[tuple[TopicPartition, E]]]:
    """What the partitions got, and what the coordinator heard, in the order in which it did."""
    loop = asyncio.new_event_loop()
    runtime = LoopRuntime(loop)
    written: list[tuple[TopicPartition, Marker]] = []
    listening = Listening()

    def write(where: TopicPartition, marker: Marker) -> E | Awaitable[E]:
        written.append((where, marker))
        result = results[where]
        if isinstance(result, Exception):
            raise result
        return later(result[0]) if isinstance(result, list) else result

    async def later(result: Any) -> E:
        await asyncio.sleep(0)
        if isinstance(result, Exception):
            raise result
        assert isinstance(result, E)
        return result

    async def go() -> None:
        markers = LocalMarkers(runtime, write)
        markers.shards = listening  # type: ignore[assignment]
        markers.send(listening, REQUEST)  # type: ignore[arg-type]
        await listening.all_answered.wait()

    loop.run_until_complete(asyncio.wait_for(go(), 10))
    loop.run_until_complete(runtime.close())
    loop.close()
    assert {answer.round for answer in listening.answers} == {3}
    return written, [(answer.partition, answer.error) for answer in listening.answers]


def test_the_marker_carries_the_epoch_of_the_coordinator_and_answers_come_as_they_are_known() -> None:
    written, answers = sent({P0: [E.NONE], P1: E.NONE, P2: E.NOT_LEADER_OR_FOLLOWER})
    assert written == [(partition, Marker(7, 4, True, 9, 2)) for partition in (P0, P1, P2)]
    assert answers == [(P1, E.NONE), (P2, E.NOT_LEADER_OR_FOLLOWER), (P0, E.NONE)]


@pytest.mark.parametrize("failure", [ValueError("a bug"), [ValueError("a bug")]])
def test_a_failure_in_one_partition_is_an_answer_and_leaves_the_others_alone(failure: Any) -> None:
    _, answers = sent({P0: failure, P1: E.NONE, P2: [E.NONE]})
    assert sorted(answers) == [(P0, E.UNKNOWN_SERVER_ERROR), (P1, E.NONE), (P2, E.NONE)]
