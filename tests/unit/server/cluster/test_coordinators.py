from __future__ import annotations

from pathlib import Path

from tests.unit.server.several_nodes import SeveralNodes
from tidelog.config.resolve import BrokerConfig
from tidelog.coordinator.shard import Shard
from tidelog.coordinator.transaction.settings import TransactionSettings
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import OFFSETS_TOPIC
from tidelog.server.cluster.coordinators import LoopWorld, group_settings, transaction_settings
from tidelog.server.runtime import LoopRuntime
from tidelog.testing import Broker


def test_settings_of_groups_come_from_the_nodes_settings() -> None:
    config = BrokerConfig.from_properties(
        {"group.min.session.timeout.ms": "10", "group.max.size": "7", "offsets.retention.minutes": "2"}
    )
    settings = group_settings(config)
    assert (settings.min_session_timeout_ms, settings.max_size, settings.offsets_retention_ms) == (10, 7, 120_000)


def test_a_groups_record_is_as_large_as_a_batch_and_a_segment_of_the_offsets_topic_take() -> None:
    for name in ("message.max.bytes", "offsets.topic.segment.bytes"):
        assert group_settings(BrokerConfig.from_properties({name: "100000"})).max_record_bytes == 98_976


def test_what_a_stopping_node_hears_of_the_cluster_loads_nothing() -> None:
    with Broker() as broker:

        def stopped() -> bool:
            coordinators = broker._host.thread.running().parts.coordinators
            coordinators.stop()
            coordinators.follow()
            return coordinators.groups.running or coordinators.transactions.running

        assert broker._host.thread.call(stopped) is False


def test_settings_of_transactions_come_from_the_nodes_settings() -> None:
    config = BrokerConfig.from_properties(
        {
            "transaction.max.timeout.ms": "11",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "12",
            "transactional.id.expiration.ms": "13",
            "transaction.remove.expired.transaction.cleanup.interval.ms": "14",
        }
    )
    assert transaction_settings(config) == TransactionSettings(11, 12, 13, 14)


def test_an_alarm_rings_once_and_a_later_call_replaces_it(runtime: LoopRuntime) -> None:
    world = LoopWorld(runtime)
    rung: list[str] = []
    done = runtime.loop.create_future()

    def bell() -> None:
        rung.append("bell")
        done.set_result(None)

    def silent() -> None:
        rung.append("silent")

    world.wake_at(world.even_ms() + 3_600_000, bell)
    world.wake_at(world.even_ms(), bell)
    world.wake_at(world.even_ms() + 3_600_000, silent)
    runtime.loop.run_until_complete(done)
    world.stop()
    assert rung == ["bell"]


def test_the_clock_of_the_groups_goes_on_where_the_wall_clock_is_set(runtime: LoopRuntime) -> None:
    wall, steady = 1_000_000_000, 5_000
    runtime.now_ms = lambda: wall
    runtime.steady_ms = lambda: steady  # type: ignore[method-assign]
    world = LoopWorld(runtime)
    assert world.even_ms() == wall
    wall, steady = wall - 3_600_000, steady + 200
    assert 1_000_000_180 <= world.even_ms() <= 1_000_000_200
    wall, steady = wall + 7_200_000, steady + 1000
    assert 1_000_001_200 - 120 <= world.even_ms() <= 1_000_001_200 + 120


def test_without_controllers_a_coordinator_goes_on_while_it_is_followed_and_falls_silent_when_it_is_not(tmp_path: Path) -> None:
    """No leader is elected without a controller, which the followers would reach; a broker that reaches none cannot know."""
    world = SeveralNodes(tmp_path, controllers=1, brokers=2, broker_session_timeout_ms="600", replica_fetch_wait_max_ms="50")

    async def main() -> None:
        await world.start()
        assert await world.create(2, OFFSETS_TOPIC, partitions=6, replicas=3) == ErrorCode.NONE
        await world.stop(1)
        groups = world.nodes[2].parts.coordinators.groups
        name = await world.until(lambda: next((each for each in "abcdefghijkl" if isinstance(groups.find(each), Shard)), None))
        await world.until(lambda: not world.nodes[2].life.in_touch)
        assert isinstance(groups.find(name), Shard) and not groups.doubts(name)
        await world.stop(3)
        await world.until(lambda: groups.find(name) is ErrorCode.NOT_COORDINATOR)
        assert groups.doubts(name)

    world.run(main)
    world.close()
