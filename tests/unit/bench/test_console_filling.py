"""What the maker of the large cluster asks for, without a cluster."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest

from bench.console.filling import COMMIT_BY_NAME, Size, commit, create, parts
from tidelog.client.calls import Coordinator
from tidelog.model.errors import ErrorCode, KafkaError


def answered(call, answer):
    """The request of a call with one step, and its result for this answer."""
    asked = next(call)
    with pytest.raises(StopIteration) as end:
        call.send(answer)
    return asked, end.value.value


def topic(name: str, code: ErrorCode) -> SimpleNamespace:
    return SimpleNamespace(name=name, error_code=int(code), error_message="no room")


def test_partitions_are_shared_out_evenly_or_refused() -> None:
    assert Size(10, 40, 2).each == 4
    for size in (Size(10, 41, 2), Size(10, 5, 2)):
        with pytest.raises(ValueError, match="evenly"):
            _ = size.each


def test_groups_are_spread_over_all_topics() -> None:
    size = Size(10, 40, 20)
    assert Counter(size.read_by(index) for index in range(20)) == dict.fromkeys(map(size.topic, range(10)), 2)
    assert [Size(10, 40, 5).read_by(index) for index in range(5)] == [f"many-0000{index}" for index in (0, 2, 4, 6, 8)]


def test_parts_hold_everything_once() -> None:
    assert [list(each) for each in parts(range(7), 3)] == [[0, 1, 2], [3, 4, 5], [6]]


def test_topics_that_are_there_already_are_left() -> None:
    answer = SimpleNamespace(topics=[topic("a", ErrorCode.NONE), topic("b", ErrorCode.TOPIC_ALREADY_EXISTS)])
    asked, made = answered(create(["a", "b"], 4), answer)
    assert made == 1
    assert [(each.name, each.num_partitions, each.replication_factor) for each in asked.request.topics] == [
        ("a", 4, 1),
        ("b", 4, 1),
    ]


def test_a_topic_that_cannot_be_made_is_named() -> None:
    call = create(["a"], 4)
    next(call)
    with pytest.raises(KafkaError, match="topic a: no room"):
        call.send(SimpleNamespace(topics=[topic("a", ErrorCode.INVALID_REPLICATION_FACTOR)]))


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
def test_a_group_commits_in_every_partition_at_its_coordinator(code: ErrorCode) -> None:
    call = commit("readers", "a", 3)
    asked = next(call)
    assert (asked.to, asked.highest) == (Coordinator("readers"), COMMIT_BY_NAME)
    assert [each.partition_index for each in asked.request.topics[0].partitions] == [0, 1, 2]
    rows = [SimpleNamespace(partition_index=index, error_code=int(code if index == 2 else 0)) for index in range(3)]
    answer = SimpleNamespace(topics=[SimpleNamespace(partitions=rows)])
    with pytest.raises(StopIteration if code == ErrorCode.NONE else KafkaError):
        call.send(answer)
