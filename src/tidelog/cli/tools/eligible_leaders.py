"""Eligible leader replicas of partitions for ``topics --describe`` (KIP-966), requested page by page if brokers support it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidelog.cli.broker_connection import BrokerConnection
from tidelog.client.connection import UnsupportedByBroker
from tidelog.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    RequestCursor,
    TopicRequest,
)

PAGE_PARTITIONS = 2000


@dataclass(frozen=True, slots=True)
class Eligible:
    """Replicas outside the ISR that have all committed records, and the last known ones."""

    replicas: tuple[int, ...]
    last_known: tuple[int, ...]


def eligible_leaders(
    broker: BrokerConnection, topics: Sequence[str], page: int = PAGE_PARTITIONS
) -> Mapping[tuple[str, int], Eligible] | None:
    """By partition, at most ``page`` of them in a response; None when brokers do not support it."""
    try:
        broker.version_of(DescribeTopicPartitionsRequest.API_KEY)
    except UnsupportedByBroker:
        return None
    found: dict[tuple[str, int], Eligible] = {}
    cursor: RequestCursor | None = None
    while topics:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in sorted(topics)],
            response_partition_limit=page,
            cursor=cursor,
        )
        response = broker.ask(request)
        found |= {
            (topic.name or "", part.partition_index): Eligible(
                tuple(part.eligible_leader_replicas or ()), tuple(part.last_known_elr or ())
            )
            for topic in response.topics
            for part in topic.partitions
        }
        if response.next_cursor is None or not response.topics:
            break
        cursor = RequestCursor(topic_name=response.next_cursor.topic_name, partition_index=response.next_cursor.partition_index)
    return found


def columns(eligible: Mapping[tuple[str, int], Eligible] | None, partition: tuple[str, int]) -> str:
    """The last two columns of a line; ``N/A`` when brokers do not report them."""
    if eligible is None:
        return "\tElr: N/A\tLastKnownElr: N/A"
    each = eligible.get(partition, Eligible((), ()))
    return f"\tElr: {','.join(map(str, each.replicas))}\tLastKnownElr: {','.join(map(str, each.last_known))}"
