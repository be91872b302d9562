"""What a cluster is asked for a plan of moves, and about limits."""

from __future__ import annotations

import pytest

from tests.unit.client.scripted import Table, answered
from tidelog.client.calls import Node
from tidelog.console.moving.asking import broker_states, cordon, limit, under_way, unlimit
from tidelog.console.moving.layout import ALL_DIRS, Ongoing
from tidelog.console.moving.throttles import FOLLOWER_RATE, LEADER_RATE, Transfer
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tidelog.protocol.messages.incremental_alter_configs import AlterConfigsResourceResponse, IncrementalAlterConfigsResponse
from tidelog.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

DONE = IncrementalAlterConfigsResponse(responses=[AlterConfigsResourceResponse()])


def setting(name: str, value: str, source: int) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(name=name, value=value, config_source=source)


def test_what_is_under_way_has_a_target() -> None:
    part = OngoingPartitionReassignment(partition_index=1, replicas=[2, 1, 0], adding_replicas=[2], removing_replicas=[0])
    table = Table(ListPartitionReassignmentsResponse(topics=[OngoingTopicReassignment(name="a", partitions=[part])]))
    found = answered(under_way(), table)
    assert found == {("a", 1): Ongoing((2, 1, 0), (2,), (0,))}
    assert found["a", 1].target == (2, 1)


@pytest.mark.parametrize(
    ("rows", "state"),
    [
        ([setting(LEADER_RATE, "500", 2), setting(FOLLOWER_RATE, "400", 2)], (400, False)),
        ([setting(LEADER_RATE, "9223372036854775807", 5)], (None, False)),
        ([setting("cordoned.log.dirs", ALL_DIRS, 2)], (None, True)),
        ([setting("cordoned.log.dirs", "/one", 2)], (None, False)),
        ([], (None, False)),
    ],
)
def test_limits_and_cordons_of_brokers(rows: list[DescribeConfigsResourceResult], state: tuple[int | None, bool]) -> None:
    table = Table(DescribeConfigsResponse(results=[DescribeConfigsResult(configs=rows)]))
    assert answered(broker_states([3]), table) == {3: state}
    assert table.asked[0].to == Node(3)


def test_limits_of_topics_go_in_one_request_and_rates_to_their_brokers() -> None:
    moves = {("a", 0): Transfer(frozenset({1}), frozenset({2})), ("b", 0): Transfer(frozenset({1}), frozenset({2}))}
    table = Table(DONE)
    answered(limit(moves, 500), table)
    asked = [
        (step.to, [(each.resource_name, {row.name: row.value for row in each.configs}) for each in step.request.resources])
        for step in table.asked
    ]
    rates = {LEADER_RATE: "500", FOLLOWER_RATE: "500"}
    lists = {"leader.replication.throttled.replicas": "0:1", "follower.replication.throttled.replicas": "0:2"}
    assert asked == [(None, [("a", lists), ("b", lists)]), (Node(1), [("1", rates)]), (Node(2), [("2", rates)])]
    table = Table(DONE)
    answered(unlimit([2], ["a"]), table)
    assert [row.config_operation for step in table.asked for each in step.request.resources for row in each.configs] == [1] * 4


@pytest.mark.parametrize(("code", "raised"), [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False), (ErrorCode.INVALID_CONFIG, True)])
def test_a_topic_that_is_gone_needs_no_limit(code: ErrorCode, raised: bool) -> None:
    table = Table(IncrementalAlterConfigsResponse(responses=[AlterConfigsResourceResponse(error_code=code)]))
    if raised:
        with pytest.raises(KafkaError):
            answered(unlimit([], ["a"]), table)
    else:
        answered(unlimit([], ["a"]), table)


@pytest.mark.parametrize(("on", "value"), [(True, "*"), (False, None)])
def test_a_broker_is_cordoned_and_taken_back(on: bool, value: str | None) -> None:
    table = Table(DONE)
    answered(cordon(3, on), table)
    (step,) = table.asked
    assert step.to == Node(3)
    assert [row.value for row in step.request.resources[0].configs] == [value]
