from collections.abc import Callable
from typing import Any

import pytest

from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest


@pytest.fixture
def grown(make_cluster: Callable[..., Any]) -> Any:
    """Topic t with two partitions of two replicas, on brokers 1 and 2."""
    cluster = make_cluster(1, 2)
    request = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=2, replication_factor=2)])
    cluster.ask(QuorumController.create_topics, request)
    return cluster


def add(cluster: Any, name: str, count: int, assignments: list[list[int]] | None = None, **more: Any) -> tuple[int, str]:
    wanted = None if assignments is None else [CreatePartitionsAssignment(broker_ids=ids) for ids in assignments]
    request = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=name, count=count, assignments=wanted)], **more)
    result = cluster.ask(QuorumController.create_partitions, request).results[0]
    return result.error_code, result.error_message or ""


def test_partitions_are_added_behind_those_that_are_there(grown: Any) -> None:
    assert add(grown, "t", 5) == (0, "")
    assert [record.partition_id for record in grown.records] == [2, 3, 4]
    partitions = grown.image.topics.by_name["t"].partitions
    assert len(partitions) == 5
    assert {len(each.replicas) for each in partitions} == {2}


def test_partitions_are_added_where_the_request_wants_them(grown: Any) -> None:
    assert add(grown, "t", 4, [[2, 1], [1, 2]]) == (0, "")
    assert [each.replicas for each in grown.image.topics.by_name["t"].partitions[2:]] == [(2, 1), (1, 2)]


@pytest.mark.parametrize(
    ("name", "count", "assignments", "code", "says"),
    [
        ("x", 5, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        ("t", 2, None, ErrorCode.INVALID_PARTITIONS, "already has 2 partition(s)."),
        ("t", 1, None, ErrorCode.INVALID_PARTITIONS, "is not more"),
        (
            "t",
            4,
            [[1, 2]],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "2 partition(s) are to be added, but the request assigns replicas to 1",
        ),
        ("t", 3, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "not consistent"),
        ("t", 3, [[1, 9]], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 9"),
        ("t", 20_000, None, ErrorCode.POLICY_VIOLATION, "Excessively large"),
    ],
)
def test_what_cannot_be_added_is_refused(grown: Any, name: str, count: int, assignments: Any, code: ErrorCode, says: str) -> None:
    error, message = add(grown, name, count, assignments)
    assert error == code
    assert says in message
    assert grown.records == []


def test_validate_only_answers_and_writes_nothing(grown: Any) -> None:
    assert add(grown, "t", 5, validate_only=True) == (0, "")
    assert len(grown.image.topics.by_name["t"].partitions) == 2


def test_a_topic_named_twice_is_refused_once(grown: Any) -> None:
    topics = [CreatePartitionsTopic(name="t", count=3), CreatePartitionsTopic(name="t", count=4)]
    response = grown.ask(QuorumController.create_partitions, CreatePartitionsRequest(topics=topics))
    assert [(each.name, each.error_code) for each in response.results] == [("t", ErrorCode.INVALID_REQUEST)]
    assert grown.records == []


def test_too_few_brokers_in_service_are_said_to_be_too_few(grown: Any) -> None:
    for broker_id in (1, 2):
        grown.heartbeat(broker_id, want_fence=True)
    error, message = add(grown, "t", 3)
    assert error == ErrorCode.INVALID_REPLICATION_FACTOR
    assert "All brokers are currently fenced" in message
