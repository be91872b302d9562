"""Bytes of some topics' partitions: each leader is asked for its own, so that the answers are small in a large cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tidelog.client.admin.topics import check
from tidelog.client.calls import Ask, Call, Each, Node, Partition
from tidelog.client.connection import UnsupportedByBroker
from tidelog.client.failures import NoConnection
from tidelog.console.asking.overview import TopicState
from tidelog.model.errors import KafkaError
from tidelog.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest


def leader_bytes(topics: Iterable[TopicState]) -> Call[dict[Partition, int]]:
    """Bytes of each partition's leader replica; without those of brokers that do not say."""
    by_leader: dict[int, dict[str, list[int]]] = {}
    for topic in topics:
        for part in topic.partitions:
            if part.leader is not None:
                by_leader.setdefault(part.leader, {}).setdefault(topic.name, []).append(part.index)
    answers = yield Each([_at(leader, wanted) for leader, wanted in by_leader.items()])
    return {at: size for answer in answers for at, size in answer.items()}


def _at(leader: int, wanted: dict[str, list[int]]) -> Call[dict[Partition, int]]:
    rows = [DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in wanted.items()]
    try:
        answer: Any = yield Ask(DescribeLogDirsRequest(topics=rows), Node(leader))
        check(answer.error_code)
    except (KafkaError, NoConnection, UnsupportedByBroker):
        return {}
    return {
        (topic.name, part.partition_index): int(part.partition_size)
        for each in answer.results
        for topic in each.topics
        for part in topic.partitions
        if not part.is_future_key
    }
