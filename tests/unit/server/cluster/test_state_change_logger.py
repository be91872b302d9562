"""What nodes of a real cluster write into their log."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.unit.server.several_nodes import SeveralNodes


@pytest.fixture(autouse=True)
def at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tidelog.server.cluster.state_change_logger")


def test_every_node_logs_topics_and_a_broker_that_stops(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = SeveralNodes(tmp_path, controllers=1, brokers=2)

    async def main() -> None:
        await world.start()
        await world.create(1, "t", partitions=3, replicas=3)
        created = "topic t is created: 3 partitions, replication factor 3"
        await world.until(lambda: caplog.messages.count(created) == 3)
        await world.stop(3)
        stopped = [line for line in caplog.messages if line.startswith("broker 3 is fenced: it stops in order")]
        assert stopped
        await world.until(lambda: "broker 3 left the ISR of 3 partitions: t-0, t-1, t-2" in caplog.messages)

    world.run(main)
    world.close()


def test_what_an_earlier_life_had_read_is_no_news(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = SeveralNodes(tmp_path, controllers=1)

    async def main() -> None:
        await world.start()
        await world.create(1, "old")
        await world.stop(1)
        caplog.clear()
        await world.start()
        await world.create(1, "new")
        await world.until(lambda: any("topic new is created" in line for line in caplog.messages))
        assert not any("topic old" in line for line in caplog.messages)

    world.run(main)
    world.close()


def test_a_node_alone_that_stops_in_order_warns_of_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = SeveralNodes(tmp_path, controllers=1)

    async def main() -> None:
        await world.start()
        await world.create(1, "t", partitions=3)
        caplog.clear()
        await world.stop(1)

    world.run(main)
    world.close()
    assert "3 partitions of leader 1 have no leader now: t-0, t-1, t-2" in caplog.messages
    assert [each.getMessage() for each in caplog.records if each.levelno > logging.INFO and "cluster" in each.name] == []


def test_the_other_nodes_warn_of_partitions_that_only_a_stopped_one_has(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = SeveralNodes(tmp_path, controllers=1, brokers=1)

    async def main() -> None:
        await world.start()
        await world.create(1, "t", partitions=4, replicas=1)
        await world.stop(2)
        await world.until(lambda: any("no leader now" in line for line in warned()))

    def warned() -> list[str]:
        return [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]

    world.run(main)
    world.close()
