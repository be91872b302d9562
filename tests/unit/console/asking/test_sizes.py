from __future__ import annotations

from typing import Any

import pytest

from tidelog.client.admin.results import PartitionDescription
from tidelog.client.calls import Each
from tidelog.client.failures import NoConnection
from tidelog.console.asking.overview import TopicState
from tidelog.console.asking.sizes import leader_bytes
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def topic(name: str, *leaders: int | None) -> TopicState:
    parts = [PartitionDescription(index, leader, 0, (1, 2), (1, 2), ()) for index, leader in enumerate(leaders)]
    return TopicState(name, b"", False, tuple(parts))


def answered(call: Any, answer: Any) -> Any:
    """The result, where this answers each leader."""
    step = next(call)
    assert isinstance(step, Each)
    results = []
    for part in step.calls:
        asked = next(part)
        found = answer(asked.to.node_id, {row.topic: row.partitions for row in asked.request.topics})
        with pytest.raises(StopIteration) as end:
            if isinstance(found, Exception):
                part.throw(found)
            else:
                part.send(found)
        results.append(end.value.value)
    with pytest.raises(StopIteration) as last:
        call.send(results)
    return last.value.value


def dirs(wanted: dict[str, list[int]], size: int) -> DescribeLogDirsResponse:
    topics = [
        DescribeLogDirsTopic(
            name=name,
            partitions=[
                DescribeLogDirsPartition(partition_index=index, partition_size=size * (10 if future else 1), is_future_key=future)
                for index in indexes
                for future in (False, True)
            ],
        )
        for name, indexes in wanted.items()
    ]
    return DescribeLogDirsResponse(results=[DescribeLogDirsResult(log_dir="/d", topics=topics)])


def test_each_leader_is_asked_for_what_it_leads_and_moves_do_not_count() -> None:
    asked: dict[int, dict[str, list[int]]] = {}

    def answer(node: int, wanted: dict[str, list[int]]) -> DescribeLogDirsResponse:
        asked[node] = wanted
        return dirs(wanted, node)

    found = answered(leader_bytes([topic("a", 1, 2, None), topic("b", 1)]), answer)
    assert asked == {1: {"a": [0], "b": [0]}, 2: {"a": [1]}}
    assert found == {("a", 0): 1, ("a", 1): 2, ("b", 0): 1}


@pytest.mark.parametrize(
    "trouble",
    [DescribeLogDirsResponse(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)), NoConnection("no", reason="no")],
)
def test_a_broker_that_does_not_say_leaves_the_others(trouble: Any) -> None:
    found = answered(leader_bytes([topic("a", 1, 2)]), lambda node, wanted: trouble if node == 1 else dirs(wanted, 5))
    assert found == {("a", 1): 5}
