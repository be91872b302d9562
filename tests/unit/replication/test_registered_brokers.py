from __future__ import annotations

from dataclasses import replace

from tests.unit.replication.world import World
from tidelog.replication.registered_brokers import RegisteredBrokers


def test_brokers_are_alive_may_join_and_are_replaced_as_the_newest_image_says() -> None:
    world = World()
    brokers = RegisteredBrokers()
    brokers.follow(world.image)
    assert brokers.is_alive(2) and brokers.may_join_isr(2, 5) and brokers.may_join_isr(2, -1) and not brokers.may_join_isr(2, 4)
    assert brokers.is_replaced(2, 4) and not brokers.is_replaced(2, 5) and not brokers.is_replaced(2, -1)
    fenced = world.image.brokers[2]._replace(fenced=True)
    brokers.follow(replace(world.image, brokers={**world.image.brokers, 2: fenced}))
    assert not brokers.is_alive(2) and not brokers.may_join_isr(2, 5)
    assert not brokers.is_alive(7) and not brokers.is_replaced(7, 0)
