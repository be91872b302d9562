from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from tests.unit.replication.world import World
from tidelog.server.replica_fetching import Replication


def test_replication_stops_as_often_as_it_is_told_to() -> None:
    world = World()
    nothing: Any = SimpleNamespace()
    replication = Replication(world.manager, nothing, nothing, nothing, nothing, lambda: 7)
    replication.start()
    replication.follow(world.image)
    asyncio.run(replication.stop())
    asyncio.run(replication.stop())
