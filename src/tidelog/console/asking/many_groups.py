"""Facts of many groups in few requests: each coordinator is asked once for all of its groups.

What is wrong with one group leaves that group out of the answer, and a coordinator that cannot be asked leaves out its own: the
caller asks for those one by one, and gets the error or, where the coordinator has moved, the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from tidelog.client.calls import Ask, Call, Each, Node, Partition, VersionOf
from tidelog.client.connection import UnsupportedByBroker
from tidelog.client.failures import NoConnection
from tidelog.console.asking.groups import (
    CLASSIC,
    CONSUMER,
    GROUPS_IN_OFFSET_FETCH_FROM,
    NAMES_IN_OFFSET_FETCH_TO,
    SHARE,
    Listed,
)
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import NO_OFFSET
from tidelog.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tidelog.protocol.messages.describe_groups import DescribeGroupsRequest
from tidelog.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

MOST_GROUPS: Final = 500
"""Of one request."""
MOST_OFFSETS: Final = 20_000
"""Of one answer, where the partitions are named."""


def committed_of(
    groups: Iterable[Listed], topic: str | None = None, partitions: Sequence[int] = ()
) -> Call[dict[str, dict[Partition, int]]]:
    """Committed offsets by group, all or of some partitions of a topic. Share groups have none."""
    length = MOST_GROUPS if topic is None else max(1, min(MOST_GROUPS, MOST_OFFSETS // max(1, len(partitions))))
    topics = None if topic is None else [OffsetFetchRequestTopics(name=topic, partition_indexes=list(partitions))]
    wanted = (each for each in groups if each.kind != SHARE)
    return _together([_offsets_at(node, ids, topics) for node, ids in _by_coordinator(wanted, length)])


def members_of(groups: Iterable[Listed]) -> Call[dict[str, int]]:
    """How many members each group of the classic and of the consumer protocol has."""
    listed = list(groups)
    calls = []
    for kind, request in ((CLASSIC, _describe_classic), (CONSUMER, _describe_consumer)):
        own = _by_coordinator((each for each in listed if each.kind == kind), MOST_GROUPS)
        calls += [_members_at(node, request(ids)) for node, ids in own]
    return _together(calls)


def _by_coordinator(groups: Iterable[Listed], length: int) -> Iterator[tuple[int, list[str]]]:
    """Coordinators, each with at most so many of its groups."""
    found: dict[int, list[str]] = {}
    for each in groups:
        found.setdefault(each.coordinator, []).append(each.group_id)
    for node, ids in found.items():
        for start in range(0, len(ids), length):
            yield node, ids[start : start + length]


def _together(calls: Sequence[Call[dict[str, Any]]]) -> Call[dict[str, Any]]:
    answers = yield Each([_or_nothing(each) for each in calls])
    return {group_id: found for answer in answers for group_id, found in answer.items()}


def _or_nothing(call: Call[dict[str, Any]]) -> Call[dict[str, Any]]:
    try:
        return (yield from call)
    except (KafkaError, NoConnection, UnsupportedByBroker):
        return {}


def _offsets_at(
    node: int, ids: list[str], topics: list[OffsetFetchRequestTopics] | None
) -> Call[dict[str, dict[Partition, int]]]:
    if (yield VersionOf(OffsetFetchRequest.API_KEY, Node(node))) < GROUPS_IN_OFFSET_FETCH_FROM:
        return {}
    asked = [OffsetFetchRequestGroup(group_id=each, topics=topics) for each in ids]
    answer = yield Ask(OffsetFetchRequest(groups=asked), Node(node), NAMES_IN_OFFSET_FETCH_TO)
    return {
        group.group_id: {
            (topic.name, part.partition_index): part.committed_offset
            for topic in group.topics
            for part in topic.partitions
            if part.error_code == ErrorCode.NONE and part.committed_offset != NO_OFFSET
        }
        for group in answer.groups
        if group.error_code == ErrorCode.NONE
    }


def _describe_classic(ids: list[str]) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=ids)


def _describe_consumer(ids: list[str]) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(group_ids=ids)


def _members_at(node: int, request: DescribeGroupsRequest | ConsumerGroupDescribeRequest) -> Call[dict[str, int]]:
    answer = yield Ask(request, Node(node))
    return {group.group_id: len(group.members) for group in answer.groups if group.error_code == ErrorCode.NONE}
