from __future__ import annotations

import asyncio
import random
import shutil
from pathlib import Path

import pytest

from tests.unit.server.controllers import CLUSTER, FS, NOW, directory_id
from tests.unit.server.several_nodes import SeveralNodes
from tidelog.model.ids import uuid_to_text
from tidelog.raft.format import FormatRequest, format_dirs


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


def test_a_node_whose_disk_was_replaced_says_that_its_vote_is_with_the_old_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise it shows only when the next controller fails."""
    world = SeveralNodes(tmp_path)
    shutil.rmtree(world.path(3))
    format_dirs(FS, FormatRequest([world.path(3)], 3, CLUSTER), rng=random.Random(99), now_ms=NOW)

    def said() -> list[str]:
        return [record.getMessage() for record in caplog.records if "this disk has no vote" in record.getMessage()]

    async def main() -> None:
        await world.start()
        await world.until(said)
        (text,) = said()
        assert "node 3" in text and f"remove-controller -i 3 -d {uuid_to_text(directory_id(3))}" in text

    world.run(main)
    world.close()
