"""Many groups in few requests: what each coordinator is asked, and what is left for the caller to ask one by one."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from tidelog.client.calls import Ask, Each, Node, VersionOf
from tidelog.client.connection import UnsupportedByBroker
from tidelog.console.asking import many_groups
from tidelog.console.asking.groups import CLASSIC, CONSUMER, SHARE, STREAMS, Listed
from tidelog.console.asking.many_groups import committed_of, members_of
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, Member
from tidelog.protocol.messages.consumer_group_describe import DescribedGroup as ConsumerGroup
from tidelog.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse
from tidelog.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)


def group(name: str, node: int = 1, kind: str = CLASSIC) -> Listed:
    return Listed(name, kind, "Empty", "consumer", node)


def driven(call: Generator[Any, Any, Any], answer: Callable[[Any], Any]) -> Any:
    """The result of a call whose steps are answered by this; an exception as an answer is raised in the call."""
    result: Any = None
    try:
        step = next(call)
        while True:
            found = [driven(each, answer) for each in step.calls] if isinstance(step, Each) else answer(step)
            step = call.throw(found) if isinstance(found, Exception) else call.send(found)
    except StopIteration as end:
        result = end.value
    return result


class Brokers:
    """Answers offsets of partition 0 by group; ``wrong``: the error of a group, ``broken``: nodes that refuse, and how."""

    def __init__(self, offsets: dict[str, int], version: int = 9) -> None:
        self.offsets, self.version = offsets, version
        self.wrong: dict[str, ErrorCode] = {}
        self.broken: dict[int, Exception] = {}
        self.asked: list[tuple[int, list[str]]] = []

    def __call__(self, step: Any) -> Any:
        assert isinstance(step.to, Node)
        node = step.to.node_id
        if isinstance(step, VersionOf):
            return self.version
        assert isinstance(step, Ask)
        if isinstance(step.request, ConsumerGroupDescribeRequest):
            self.asked.append((node, step.request.group_ids))
            rows = [ConsumerGroup(group_id=each, members=[Member(), Member()]) for each in step.request.group_ids]
            return self.broken.get(node) or ConsumerGroupDescribeResponse(groups=rows)
        if step.request.API_KEY == 15:
            self.asked.append((node, step.request.groups))
            classic = [
                DescribedGroup(group_id=each, error_code=int(self.wrong.get(each, 0)), members=[DescribedGroupMember()])
                for each in step.request.groups
            ]
            return self.broken.get(node) or DescribeGroupsResponse(groups=classic)
        ids = [each.group_id for each in step.request.groups]
        self.asked.append((node, ids))
        return self.broken.get(node) or OffsetFetchResponse(groups=[self._offsets(each) for each in ids])

    def _offsets(self, group_id: str) -> OffsetFetchResponseGroup:
        parts = [
            OffsetFetchResponsePartitions(partition_index=0, committed_offset=self.offsets.get(group_id, -1)),
            OffsetFetchResponsePartitions(
                partition_index=1, committed_offset=5, error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            ),
        ]
        code = int(self.wrong.get(group_id, 0))
        return OffsetFetchResponseGroup(
            group_id=group_id, error_code=code, topics=[OffsetFetchResponseTopics(name="orders", partitions=parts)]
        )


def test_a_coordinator_is_asked_once_for_all_of_its_groups() -> None:
    brokers = Brokers({"a": 7, "b": 0})
    found = driven(committed_of([group("a", 1), group("b", 2), group("c", 1, STREAMS), group("s", 1, SHARE)]), brokers)
    assert found == {"a": {("orders", 0): 7}, "b": {("orders", 0): 0}, "c": {}}
    assert brokers.asked == [(1, ["a", "c"]), (2, ["b"])]


def test_a_group_or_coordinator_in_trouble_is_left_out_and_harms_no_other() -> None:
    brokers = Brokers(dict.fromkeys("abcd", 1))
    brokers.wrong["a"] = ErrorCode.NOT_COORDINATOR
    brokers.broken = {2: KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no"), 3: UnsupportedByBroker("no")}
    groups = [group("a", 1), group("b", 1), group("c", 2), group("d", 3)]
    assert driven(committed_of(groups), brokers).keys() == {"b"}
    assert driven(members_of(groups), brokers) == {"b": 1}


def test_brokers_that_answer_one_group_at_a_time_are_left_to_the_caller() -> None:
    brokers = Brokers({"a": 7}, version=7)
    assert driven(committed_of([group("a")]), brokers) == {} and brokers.asked == []


def test_members_are_asked_for_by_the_protocol_of_the_group() -> None:
    brokers = Brokers({})
    groups = [group("a"), group("n", 1, CONSUMER), group("m", 2, CONSUMER), group("s", 1, SHARE), group("t", 1, STREAMS)]
    assert driven(members_of(groups), brokers) == {"a": 1, "n": 2, "m": 2}
    assert brokers.asked == [(1, ["a"]), (1, ["n"]), (2, ["m"])]


def test_requests_and_answers_are_bounded() -> None:
    brokers = Brokers({})
    many = [group(f"g{index}") for index in range(many_groups.MOST_GROUPS + 1)]
    driven(committed_of(many), brokers)
    assert [len(ids) for _, ids in brokers.asked] == [many_groups.MOST_GROUPS, 1]
    brokers.asked.clear()
    driven(committed_of(many[:5], "orders", range(many_groups.MOST_OFFSETS // 2)), brokers)
    assert [len(ids) for _, ids in brokers.asked] == [2, 2, 1]
