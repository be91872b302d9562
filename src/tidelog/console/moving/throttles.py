"""Which replicas a bandwidth limit for moves applies to, in the form of Kafka's settings (KIP-73): a rate at each sending or
receiving broker, and per topic the replicas that it holds for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidelog.client.admin.configs import DELETE, SET
from tidelog.console.moving.balance_plan import Partition
from tidelog.console.moving.layout import Ongoing
from tidelog.protocol.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADER_REPLICAS, FOLLOWER_REPLICAS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"


@dataclass(frozen=True, slots=True)
class Transfer:
    """The source and target brokers of a partition's data."""

    sources: frozenset[int]
    destinations: frozenset[int]


def transfers(
    current: Mapping[Partition, Iterable[int]],
    proposed: Mapping[Partition, Iterable[int]],
    under_way: Mapping[Partition, Ongoing],
) -> dict[Partition, Transfer]:
    """The transfers of the proposed moves together with the running reassignments."""
    result: dict[Partition, Transfer] = {}
    for partition in sorted({*proposed, *under_way}):
        moving = under_way.get(partition)
        coming = frozenset(moving.adding) if moving else frozenset()
        now = frozenset(moving.replicas if moving else current.get(partition, ()))
        coming |= frozenset(proposed.get(partition, ())) - now
        result[partition] = Transfer(now - coming, coming)
    return result


def brokers_of(moves: Mapping[Partition, Transfer]) -> list[int]:
    """All sending and receiving brokers."""
    return sorted({broker for move in moves.values() for broker in move.sources | move.destinations})


def topic_lists(moves: Mapping[Partition, Transfer]) -> dict[str, tuple[str, str]]:
    """For each topic, the sending and the receiving replicas, in the form of the two settings."""
    giving: dict[str, list[str]] = {}
    taking: dict[str, list[str]] = {}
    for (topic, index), move in sorted(moves.items()):
        giving.setdefault(topic, []).extend(f"{index}:{broker}" for broker in sorted(move.sources))
        taking.setdefault(topic, []).extend(f"{index}:{broker}" for broker in sorted(move.destinations))
    return {topic: (",".join(giving[topic]), ",".join(taking[topic])) for topic in giving}


def rates(rate: int | None) -> dict[str, str | None]:
    """The settings of a broker for ``rate`` bytes per second, in and out; None takes them away."""
    value = None if rate is None else str(rate)
    return {LEADER_RATE: value, FOLLOWER_RATE: value}


def replica_lists(giving: str | None, taking: str | None) -> dict[str, str | None]:
    """The settings of a topic; None takes them away."""
    return {LEADER_REPLICAS: giving, FOLLOWER_REPLICAS: taking}


def resource(kind: int, name: str, settings: Mapping[str, str | None]) -> AlterConfigsResource:
    """A change of settings; None takes one away."""
    rows = [
        AlterableConfig(name=key, config_operation=DELETE if value is None else SET, value=value)
        for key, value in settings.items()
    ]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=rows)
