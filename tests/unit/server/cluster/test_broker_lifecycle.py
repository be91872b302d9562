from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.server.several_nodes import SeveralNodes
from tidelog.controller.quorum_controller import QuorumController
from tidelog.metadata.image import BROKER_RESOURCE
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tidelog.protocol.messages.unregister_broker import UnregisterBrokerRequest


def test_every_broker_is_registered_and_unfenced_when_its_start_returns(three: SeveralNodes) -> None:
    async def main() -> None:
        await three.start()
        for node_id, node in three.nodes.items():
            assert not node.life.fenced
            active = three.nodes[three.active() or 0]
            mine = active.replica.image.brokers[node_id]
            assert (mine.epoch, mine.fenced) == (node.life.epoch, False)

    three.run(main)


def test_a_broker_that_was_unregistered_registers_again(three: SeveralNodes) -> None:
    async def main() -> None:
        await three.start()
        chosen = three.passive()
        node = three.nodes[chosen]
        before = node.life.epoch
        await node.controller.submit(QuorumController.unregister_broker, UnregisterBrokerRequest(broker_id=chosen))
        await three.until(lambda: node.life.epoch > before)
        await three.everywhere(lambda each: chosen in each.broker.image.brokers and not each.broker.image.brokers[chosen].fenced)

    three.run(main)


def test_a_broker_without_a_quorum_says_so_and_ends(tmp_path: Path) -> None:
    world = SeveralNodes(tmp_path, controllers=1, brokers=1, initial_broker_registration_timeout_ms="200")

    async def main() -> None:
        with pytest.raises(KafkaError, match="not registered within 200 ms") as refused:
            await world.start(2)
        assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT
        world.nodes.clear()

    world.run(main)
    world.close()


def test_a_broker_that_stops_leads_nothing_any_more_before_it_ends(three: SeveralNodes) -> None:
    async def main() -> None:
        await three.start()
        for number in range(6):
            await three.create(1, f"t{number}")
        leaving = three.passive()
        await three.stop(leaving)
        await three.everywhere(lambda node: node.broker.image.brokers[leaving].fenced)

        def led(node_id: int) -> int:
            topics = three.nodes[three.passive()].broker.image.topics.by_name.values()
            return sum(partition.leader == node_id for topic in topics for partition in topic.partitions)

        assert led(leaving) == 0

    three.run(main)


def test_the_last_broker_does_not_wait_for_a_controller_that_is_gone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = SeveralNodes(tmp_path, controllers=1, brokers=1, broker_session_timeout_ms="600000")

    async def main() -> None:
        await world.start()
        last = world.nodes[2]
        # First the broker alone: a controller that ends at once may end before the other node has read the record.
        await world.nodes[1].life.shut_down()
        await world.until(lambda: last.replica.image.brokers[1].fenced)
        await world.stop(1)
        with caplog.at_level("INFO"):
            await world.stop(2)
        assert "no other broker is left to take leaderships over" in caplog.text
        assert "without the controller's consent" not in caplog.text

    world.run(main)
    world.close()


def test_a_broker_only_observes_and_serves(tmp_path: Path) -> None:
    world = SeveralNodes(tmp_path, controllers=1, brokers=1)

    async def main() -> None:
        await world.start()
        assert await world.create(2, "t", partitions=4) == ErrorCode.NONE
        await world.everywhere(lambda node: "t" in node.broker.image.topics.by_name)
        assert not world.nodes[2].replica.listeners
        assert world.nodes[2].replica.member.machine.voters.ids == (1,)

    world.run(main)
    world.close()


def test_a_broker_knows_that_the_controller_may_have_given_it_up(tmp_path: Path) -> None:
    """Its session counts from when the heartbeat was sent that was answered last."""
    world = SeveralNodes(tmp_path, controllers=1, brokers=1, broker_session_timeout_ms="400")

    async def main() -> None:
        await world.start()
        assert world.nodes[2].life.in_touch
        await world.nodes[1].stop()
        await world.until(lambda: not world.nodes[2].life.in_touch)

    world.run(main)
    world.close()


def test_cordoned_log_dirs_are_told_when_the_setting_changes(tmp_path: Path) -> None:
    world = SeveralNodes(tmp_path, controllers=1, brokers=1, broker_heartbeat_interval_ms="1400")

    def cordon(value: str | None) -> IncrementalAlterConfigsRequest:
        change = AlterableConfig("cordoned.log.dirs", 0 if value else 1, value)
        return IncrementalAlterConfigsRequest([AlterConfigsResource(BROKER_RESOURCE, "2", [change])])

    async def main() -> None:
        await world.start()
        for value, count in ((world.path(2), 1), (None, 0), ("*", 1)):
            await world.nodes[2].controller.submit(QuorumController.incremental_alter_configs, cordon(value))
            await world.until(
                lambda count=count: len(world.nodes[1].replica.image.brokers[2].cordoned_directories or ()) == count
            )

    world.run(main)
    world.close()


def test_a_controller_whose_errors_nobody_knows_ends_no_heartbeats(three: SeveralNodes, caplog: pytest.LogCaptureFixture) -> None:
    """One of a later version, in the middle of a rolling upgrade."""

    async def main() -> None:
        await three.start()
        life = three.nodes[three.passive()].life
        attempt, lies = life._attempt, 2

        async def ask(handler: Any, request: Any) -> Any:
            nonlocal lies
            response = await attempt(handler, request)
            if lies > 0:
                lies -= 1
                response.error_code = 500
            return response

        life._attempt = ask  # type: ignore[method-assign]
        life.poke()
        await three.until(lambda: not lies)
        heard = life._heard_ms
        await three.until(lambda: life._heard_ms > heard)

    three.run(main)
    assert "a heartbeat was refused: UNKNOWN_SERVER_ERROR" in caplog.text
