"""Where a partition's leader is, for answers that tell a client who came to the wrong broker (KIP-951).

What is decided here: that the metadata image is what clients are told, and that a leader without an endpoint on the client's
listener is not named.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.broker.node import BrokerContext
from tidelog.metadata.image import TopicImage
from tidelog.model.ids import NO_BROKER, Uuid
from tidelog.protocol.fastpath import NodeEndpoint


def current_leader(ctx: BrokerContext, name: str | None, topic_id: Uuid, index: int) -> tuple[int, int] | None:
    """(leader's id, leader epoch) of a partition named by name or, when that is None, by id; None while nobody leads it."""
    topics = ctx.image.topics
    topic: TopicImage | None = topics.by_id.get(topic_id) if name is None else topics.by_name.get(name)
    if topic is None or not 0 <= index < len(topic.partitions):
        return None
    partition = topic.partitions[index]
    return None if partition.leader == NO_BROKER else (partition.leader, partition.leader_epoch)


def node_endpoints(ctx: BrokerContext, leaders: Iterable[tuple[int, int]]) -> list[NodeEndpoint]:
    """The addresses of ``leaders``, each once, on the listener that the client came in on."""
    endpoints: dict[int, NodeEndpoint] = {}
    for broker_id, _ in leaders:
        broker = ctx.image.brokers.get(broker_id)
        endpoint = broker.endpoints.get(ctx.listener) if broker is not None else None
        if broker is not None and endpoint is not None:
            endpoints[broker_id] = (broker_id, endpoint.host, endpoint.port, broker.rack)
    return list(endpoints.values())
