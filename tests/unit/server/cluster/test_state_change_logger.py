"""What nodes of a real cluster write into their log."""

from __future__ import annotations

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
