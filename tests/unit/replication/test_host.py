from __future__ import annotations

from dataclasses import replace

from tests.unit.replication.world import World
from tidelog.replication.host import PartitionHost


def test_a_replica_manager_says_who_is_alive_who_may_join_and_who_was_replaced() -> None:
    world = World()
    host: PartitionHost = world.manager
    assert host.is_alive(2) and host.may_join_isr(2, 5) and host.may_join_isr(2, -1) and not host.may_join_isr(2, 4)
    assert host.is_replaced(2, 4) and not host.is_replaced(2, 5) and not host.is_replaced(2, -1)
    fenced = replace(world.image.brokers[2], fenced=True)
    world.manager.image = replace(world.image, brokers={**world.image.brokers, 2: fenced})
    assert not host.is_alive(2) and not host.may_join_isr(2, 5)
    assert not host.is_alive(7) and not host.is_replaced(7, 0)
