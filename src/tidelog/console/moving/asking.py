"""Calls of moves: the layout that they are planned from, limits on their bandwidth, brokers that take no new replicas.

Limits are dynamic settings (KIP-73) and stay until they are taken away. A broker is cordoned by ``cordoned.log.dirs`` (KIP-1066).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tidelog.client.admin import cluster, configs, replicas
from tidelog.client.admin.results import LogDir, ResourceType
from tidelog.client.admin.topics import check
from tidelog.client.calls import Ask, Call, Each, Node, Partition, To
from tidelog.console.asking.overview import Overview
from tidelog.console.moving.layout import ALL_DIRS, CORDONED, Layout, Ongoing, Seen
from tidelog.console.moving.throttles import (
    FOLLOWER_RATE,
    LEADER_RATE,
    Transfer,
    brokers_of,
    rates,
    replica_lists,
    resource,
    topic_lists,
)
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.incremental_alter_configs import AlterConfigsResource, IncrementalAlterConfigsRequest

TOPICS_IN_REQUEST: Final = 500
DYNAMIC_BROKER: Final = 2
"""The source of a setting that was given to one broker while it ran."""

BrokerState = tuple[int | None, bool]
"""The limit of moves at a broker in bytes per second, and whether it takes no new replicas."""


def under_way(*, timeout_ms: int = 60_000) -> Call[dict[Partition, Ongoing]]:
    """All running reassignments."""
    found = yield from replicas.reassignments(timeout_ms=timeout_ms)
    return {at: Ongoing(each.replicas, each.adding, each.removing) for at, each in found.items()}


def layout(there: Overview, dirs: Mapping[int, Iterable[LogDir]]) -> Call[Layout]:
    """The whole layout. ``dirs``: the log dirs of brokers, for sizes. KafkaError."""
    described = yield from cluster.describe(include_fenced=True)
    moving = yield from under_way()
    up = [each for each in described.nodes if not each.fenced]
    states = yield from broker_states([each.node_id for each in up])
    sizes: dict[Partition, int] = {}
    for found in dirs.values():
        for each in found:
            for at, size in each.replicas.items():
                sizes[at] = max(sizes.get(at, 0), size)
    return Layout(
        described.cluster_id,
        {each.node_id: each.rack for each in up},
        {each.node_id: each.rack for each in described.nodes if each.fenced},
        tuple(Seen(at, part.leader, tuple(part.replicas), tuple(part.in_sync)) for at, part in there.each_partition()),
        sizes,
        moving,
        tuple(broker for broker, (_, cordoned) in sorted(states.items()) if cordoned),
        {each.node_id: each.host for each in described.nodes},
    )


def broker_states(brokers: Iterable[int]) -> Call[dict[int, BrokerState]]:
    """Limits and cordons of these brokers."""
    asked = list(brokers)
    answers: list[BrokerState] = yield Each([_state(broker) for broker in asked])
    return dict(zip(asked, answers, strict=True))


def _state(broker: int) -> Call[BrokerState]:
    keys = [LEADER_RATE, FOLLOWER_RATE, CORDONED]
    found = yield from configs.describe(ResourceType.BROKER, str(broker), keys)
    found_rates = [
        int(row.value)
        for key in (LEADER_RATE, FOLLOWER_RATE)
        if (row := found.get(key)) is not None and row.source == DYNAMIC_BROKER and row.value
    ]
    cordoned = found.get(CORDONED)
    return min(found_rates, default=None), cordoned is not None and cordoned.value == ALL_DIRS


def limit(transfers: Mapping[Partition, Transfer], rate: int) -> Call[None]:
    """Limit these transfers to ``rate`` bytes per second at each broker, in and out. KafkaError."""
    lists = topic_lists(transfers)
    yield from _alter_topics({topic: replica_lists(giving, taking) for topic, (giving, taking) in lists.items()})
    yield Each([_alter(Node(broker), [_of_broker(broker, rate)]) for broker in brokers_of(transfers)])


def unlimit(brokers: Iterable[int], topics: Iterable[str]) -> Call[None]:
    """Take away the limits of these brokers and topics. KafkaError."""
    yield Each([_alter(Node(broker), [_of_broker(broker, None)]) for broker in sorted(set(brokers))])
    yield from _alter_topics({topic: replica_lists(None, None) for topic in sorted(set(topics))})


def _of_broker(broker: int, rate: int | None) -> AlterConfigsResource:
    return resource(ResourceType.BROKER, str(broker), rates(rate))


def _alter_topics(changes: Mapping[str, Mapping[str, str | None]]) -> Call[None]:
    """Many topics in a request."""
    names = list(changes)
    for first in range(0, len(names), TOPICS_IN_REQUEST):
        part = names[first : first + TOPICS_IN_REQUEST]
        yield from _alter(None, [resource(ResourceType.TOPIC, name, changes[name]) for name in part])


def _alter(to: To, resources: list[AlterConfigsResource]) -> Call[None]:
    """KafkaError, but for a topic that was deleted meanwhile: it needs nothing."""
    for result in (yield Ask(IncrementalAlterConfigsRequest(resources=resources), to)).responses:
        if result.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            check(result.error_code, result.error_message)


def cordon(broker: int, on: bool) -> Call[None]:
    """Whether a broker takes no new replicas. KafkaError (INVALID_CONFIG) where brokers do not know the setting."""
    if on:
        yield from configs.alter(ResourceType.BROKER, str(broker), {CORDONED: ALL_DIRS})
    else:
        yield from configs.alter(ResourceType.BROKER, str(broker), remove=[CORDONED])
