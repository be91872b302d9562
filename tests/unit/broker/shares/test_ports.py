"""What share partitions need of the broker, a broker has."""

from __future__ import annotations

from tests.unit.broker.node_world import NodeWorld
from tidelog.broker.shares.ports import ShareHost


def test_a_broker_is_a_host() -> None:
    host: ShareHost = NodeWorld().broker
    assert host.node_id == 1 and host.image.cluster_id == "test-cluster"
    host.create_share_topic()
