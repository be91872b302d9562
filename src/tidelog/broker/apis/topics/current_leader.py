"""The current leader of a partition, for answers to clients that sent a request to the wrong broker (KIP-951).

It comes from the metadata image. A leader without an endpoint on the client's listener is not named.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.broker.node import BrokerContext
from tidelog.metadata.image import TopicImage
from tidelog.model.ids import NO_BROKER, Uuid
from tidelog.protocol.fastpath import NodeEndpoint


def current_leader(ctx: BrokerContext, name: str | None, topic_id: Uuid, index: int) -> tuple[int, int] | None:
    """(leader id, leader epoch) of a partition, by topic name or, if that is None, by id; None while it has no leader."""
    topics = ctx.image.topics
    topic: TopicImage | None = topics.by_id.get(topic_id) if name is None else topics.by_name.get(name)
    if topic is None or not 0 <= index < len(topic.partitions):
        return None
    partition = topic.partitions[index]
    return None if partition.leader == NO_BROKER else (partition.leader, partition.leader_epoch)


def node_endpoints(ctx: BrokerContext, leaders: Iterable[tuple[int, int]]) -> list[NodeEndpoint]:
    """The addresses of ``leaders``, each once, on the client's listener."""
    endpoints: dict[int, NodeEndpoint] = {}
    for broker_id, _ in leaders:
        broker = ctx.image.brokers.get(broker_id)
        endpoint = broker.endpoints.get(ctx.listener) if broker is not None else None
        if broker is not None and endpoint is not None:
            endpoints[broker_id] = (broker_id, endpoint.host, endpoint.port, broker.rack)
    return list(endpoints.values())
