from __future__ import annotations

from tests.unit.replication.world import World, led_by_us, topic_id
from tidelog.broker.apis.topics.current_leader import current_leader, node_endpoints
from tidelog.metadata.image import PartitionImage
from tidelog.model.ids import ZERO_UUID

LEADERLESS = PartitionImage((2,), (2,), -1, leader_epoch=4)


def test_a_leader_is_found_by_name_and_by_id() -> None:
    world = World()
    world.create("t", led_by_us(leader_epoch=3), LEADERLESS)
    ctx = world.context(13)
    assert current_leader(ctx, "t", ZERO_UUID, 0) == (1, 3)
    assert current_leader(ctx, None, topic_id("t"), 0) == (1, 3)


def test_nobody_is_named_where_nobody_leads() -> None:
    world = World()
    world.create("t", led_by_us(), LEADERLESS)
    ctx = world.context(13)
    for index in (1, 2, -1):
        assert current_leader(ctx, "t", ZERO_UUID, index) is None
    assert current_leader(ctx, "unknown", ZERO_UUID, 0) is None
    assert current_leader(ctx, None, topic_id("unknown"), 0) is None


def test_each_leader_has_one_address_on_the_clients_listener() -> None:
    world = World()
    ctx = world.context(13)
    assert node_endpoints(ctx, [(2, 1), (1, 0), (2, 7), (9, 0)]) == [(2, "host2", 9092, "rack"), (1, "host1", 9092, "rack")]
    ctx.session.listener = "INTERNAL"
    assert node_endpoints(ctx, [(1, 0)]) == []
