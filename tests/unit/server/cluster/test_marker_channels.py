"""Markers go to every partition, and every partition answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from tests.unit.broker.others import ScriptedBrokers
from tests.unit.coordinator.transaction.driver import P0, P1, P2
from tests.unit.server.loops import finish, run
from tidelog.coordinator.transaction.missing_markers import MarkerAnswer, WriteMarkers
from tidelog.model.errors import ErrorCode as E
from tidelog.model.errors import KafkaError
from tidelog.model.ids import TopicPartition
from tidelog.model.machine import NOTHING, Outcome
from tidelog.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from tidelog.replication.marker_append import Marker
from tidelog.server.cluster.marker_channels import MarkerCarrier
from tidelog.server.runtime import LoopRuntime, new_event_loop

REQUEST = WriteMarkers("x", 3, 7, 4, True, 2, (P0, P1, P2))


class Listening:
    """Stands for the shards, the shard and the machine: records its calls."""

    epoch = 9
    failed = False

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
    runtime = LoopRuntime(new_event_loop())
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
        markers = MarkerCarrier(runtime, write)
        markers.shards = listening  # type: ignore[assignment]
        markers.send(listening, REQUEST)  # type: ignore[arg-type]
        await listening.all_answered.wait()

    run(runtime, go, 10)
    finish(runtime)
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


# Markers to other brokers


def errors(**codes: int) -> WriteTxnMarkersResponse:
    """What a broker says of partitions of ``t``, by their numbers as text behind a ``p``."""
    partitions = [
        WritableTxnMarkerPartitionResult(partition_index=int(name[1:]), error_code=code) for name, code in codes.items()
    ]
    topics = [WritableTxnMarkerTopicResult(name=P0.topic, partitions=partitions)]
    return WriteTxnMarkersResponse(markers=[WritableTxnMarkerResult(producer_id=7, topics=topics)])


def carried(leaders: dict[TopicPartition, int], others: ScriptedBrokers) -> Listening:
    """What the coordinator hears when these brokers lead."""
    runtime = LoopRuntime(new_event_loop())
    listening = Listening()

    async def go() -> None:
        markers = MarkerCarrier(runtime, lambda where, marker: E.NONE, leaders.get, others)
        markers.shards = listening  # type: ignore[assignment]
        markers.send(listening, REQUEST)  # type: ignore[arg-type]
        await listening.all_answered.wait()

    run(runtime, go, 10)
    finish(runtime)
    return listening


def test_markers_for_one_broker_travel_together_and_those_of_this_one_not_at_all() -> None:
    others = ScriptedBrokers(errors(p0=0, p2=6))
    heard = carried({P0: 5, P2: 5}, others)
    assert {answer.partition: answer.error for answer in heard.answers} == {
        P0: E.NONE,
        P1: E.NONE,
        P2: E.NOT_LEADER_OR_FOLLOWER,
    }
    broker, purpose, request, _ = others.asked[0]
    assert (broker, purpose, len(others.asked)) == (5, "markers", 1)
    marker = request.markers[0]
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, marker.transaction_result) == (7, 4, 9, True)
    assert {topic.name: topic.partition_indexes for topic in marker.topics} == {P0.topic: [P0.partition, P2.partition]}


@pytest.mark.parametrize("code", [E.NETWORK_EXCEPTION, E.REQUEST_TIMED_OUT, E.BROKER_NOT_AVAILABLE, E.UNSUPPORTED_VERSION])
def test_a_broker_that_does_not_answer_is_an_answer_of_each_of_its_partitions(code: E) -> None:
    heard = carried({P0: 5, P1: 6, P2: 5}, ScriptedBrokers(KafkaError(code), errors(p1=0)))
    assert {answer.partition: answer.error for answer in heard.answers} == {P0: code, P1: E.NONE, P2: code}


def test_a_partition_that_the_answer_passes_over_is_asked_again() -> None:
    heard = carried({P0: 5, P1: 5}, ScriptedBrokers(errors(p0=0)))
    assert {answer.partition: answer.error for answer in heard.answers}[P1] is E.UNKNOWN_SERVER_ERROR


def test_markers_of_a_coordinator_that_has_stopped_stay_here() -> None:
    """Its epoch is over: who took over sends them."""
    others = ScriptedBrokers()
    runtime = LoopRuntime(new_event_loop())
    listening = Listening()

    async def go() -> None:
        markers = MarkerCarrier(runtime, lambda where, marker: E.NONE, {P0: 5}.get, others)
        markers.shards = listening  # type: ignore[assignment]
        markers.send(listening, REQUEST)  # type: ignore[arg-type]
        assert not listening.answers, "nothing is appended in the middle of what made the decision safe"
        listening.failed = True
        await asyncio.sleep(0)
        await asyncio.gather(*runtime._tasks)

    run(runtime, go, 10)
    finish(runtime)
    assert (others.asked, listening.answers) == ([], [])
