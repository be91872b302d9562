"""Limits on what moving replicas take of the network, as dynamic settings of brokers and topics (KIP-73).

A rate at each broker that gives or takes, and per topic the replicas that it holds for. They stay until somebody takes them
away: whoever sets them here also clears them here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidelog.cli.admin_session import AdminSession, NodeConnection
from tidelog.cli.controller_session import Session
from tidelog.cli.refusal import check
from tidelog.cli.tools.reassignment_json import Partition
from tidelog.cli.tools.reassignments import Ongoing
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tidelog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

SET, DELETE = 0, 1
DYNAMIC_BROKER_SOURCE = 2
TOPIC, BROKER = 2, 4
LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS, FOLLOWER_REPLICAS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"


@dataclass(frozen=True, slots=True)
class Transfer:
    """Between which brokers a partition's data goes."""

    sources: frozenset[int]
    destinations: frozenset[int]


def transfers(
    current: Mapping[Partition, Iterable[int]],
    proposed: Mapping[Partition, Iterable[int]],
    under_way: Mapping[Partition, Ongoing],
) -> dict[Partition, Transfer]:
    """What goes on when the proposed replicas are added to the reassignments under way."""
    result: dict[Partition, Transfer] = {}
    for partition in sorted({*proposed, *under_way}):
        moving = under_way.get(partition)
        coming = frozenset(moving.adding) if moving else frozenset()
        now = frozenset(moving.replicas if moving else current.get(partition, ()))
        coming |= frozenset(proposed.get(partition, ())) - now
        result[partition] = Transfer(now - coming, coming)
    return result


def brokers_of(moves: Mapping[Partition, Transfer]) -> list[int]:
    """All brokers that give or take."""
    return sorted({broker for move in moves.values() for broker in move.sources | move.destinations})


def topic_lists(moves: Mapping[Partition, Transfer]) -> dict[str, tuple[str, str]]:
    """For each topic, the replicas that give and those that take, as the two settings write them."""
    giving: dict[str, list[str]] = {}
    taking: dict[str, list[str]] = {}
    for (topic, index), move in sorted(moves.items()):
        giving.setdefault(topic, []).extend(f"{index}:{broker}" for broker in sorted(move.sources))
        taking.setdefault(topic, []).extend(f"{index}:{broker}" for broker in sorted(move.destinations))
    return {topic: (",".join(giving[topic]), ",".join(taking[topic])) for topic in giving}


def set_rate(session: Session, moves: Mapping[Partition, Transfer], rate: int) -> None:
    """Limit these moves to ``rate`` bytes per second at each broker, in and out."""
    resources = [
        _resource(TOPIC, topic, {LEADER_REPLICAS: giving, FOLLOWER_REPLICAS: taking})
        for topic, (giving, taking) in topic_lists(moves).items()
    ]
    resources += [
        _resource(BROKER, str(broker), {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)}) for broker in brokers_of(moves)
    ]
    _alter(session, resources)


def set_log_dir_rate(session: Session, brokers: Iterable[int], rate: int) -> None:
    """Limit copying between the log dirs of these brokers to ``rate`` bytes per second."""
    _alter(session, [_resource(BROKER, str(broker), {LOG_DIR_RATE: str(rate)}) for broker in sorted(set(brokers))])


def limited_brokers(session: AdminSession) -> list[int]:
    """The brokers that have a rate set."""
    found = []
    for broker in session.brokers():
        asked = [DescribeConfigsResource(resource_type=BROKER, resource_name=str(broker), configuration_keys=[LEADER_RATE])]
        response = session.connection(broker).ask(DescribeConfigsRequest(resources=asked))
        rows = [row for result in response.results if result.error_code == ErrorCode.NONE for row in result.configs]
        if any(row.config_source == DYNAMIC_BROKER_SOURCE for row in rows):
            found.append(broker)
    return found


def clear(session: Session, brokers: Iterable[int], topics: Iterable[str]) -> None:
    """Take all limits of these brokers and topics away."""
    rates = {LEADER_RATE: None, FOLLOWER_RATE: None, LOG_DIR_RATE: None}
    resources = [_resource(BROKER, str(broker), rates) for broker in sorted(set(brokers))]
    resources += [_resource(TOPIC, topic, {LEADER_REPLICAS: None, FOLLOWER_REPLICAS: None}) for topic in sorted(set(topics))]
    _alter(session, resources)


def _resource(kind: int, name: str, settings: Mapping[str, str | None]) -> AlterConfigsResource:
    configs = [
        AlterableConfig(name=key, config_operation=DELETE if value is None else SET, value=value)
        for key, value in settings.items()
    ]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


def _alter(session: Session, resources: list[AlterConfigsResource]) -> None:
    """Brokers take settings of their own only (and where a broker is gone, its settings limit nobody); controllers take all."""
    if not isinstance(session, AdminSession):
        _ask(session, resources)
        return
    _ask(session, [each for each in resources if each.resource_type == TOPIC])
    for resource in resources:
        if resource.resource_type == BROKER and int(resource.resource_name) in session.brokers():
            _ask(session.connection(int(resource.resource_name)), [resource])


def _ask(connection: Session | NodeConnection, resources: list[AlterConfigsResource]) -> None:
    if resources:
        for result in connection.ask(IncrementalAlterConfigsRequest(resources=resources)).responses:
            if result.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # deleted meanwhile
                check(result.error_code, result.error_message)
