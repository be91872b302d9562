from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.unit.server.controllers import FS
from tests.unit.server.several_nodes import SeveralNodes
from tidelog.config.resolve import BrokerConfig
from tidelog.metadata.records import MetadataLogError
from tidelog.server.node import Node


def test_who_waits_is_told_when_it_has_come_true_or_the_replica_stops(tmp_path: Path) -> None:
    world = SeveralNodes(tmp_path, controllers=1)

    async def main() -> None:
        await world.start()
        replica = world.nodes[1].replica
        there = asyncio.ensure_future(replica.until(lambda: "t" in replica.image.topics.by_name))
        never = asyncio.ensure_future(replica.until(lambda: False))
        await asyncio.sleep(0)
        assert not there.done()
        await world.create(1, "t")
        await there
        assert not never.done()
        await world.stop(1)
        await never
        assert replica.stopped

    world.run(main)
    world.close()


def test_a_directory_of_a_larger_quorum_is_refused_by_a_node_that_nobody_could_reach(tmp_path: Path) -> None:
    world = SeveralNodes(tmp_path)

    async def main() -> None:
        config = BrokerConfig.from_properties({"listeners": "PLAINTEXT://localhost:0", "log.dirs": world.path(1)})
        assert config.embedded
        node = Node(config, world.runtime, FS)
        with pytest.raises(MetadataLogError, match=r"no listener on which they could reach it"):
            await node.start()

    world.run(main)
    world.close()
