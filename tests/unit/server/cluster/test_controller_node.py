from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.server.controllers import Controllers, directory_id, setting
from tidelog.client.connection import ClientConnection
from tidelog.controller.result import ControllerResult
from tidelog.model.errors import ConfigError, ErrorCode, KafkaError
from tidelog.model.ids import METADATA_TOPIC
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from tidelog.protocol.messages.config_record import ConfigRecord
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest
from tidelog.protocol.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from tidelog.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from tidelog.server.cluster.raft_runner import RaftRunner


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Controllers]:
    world = Controllers(tmp_path)
    yield world
    world.close()


async def talk(port: int, *requests: object) -> list[object]:
    """What a client hears on a controller's listener."""
    reader, writer = await asyncio.open_connection("localhost", port)
    client = ClientConnection("test")

    async def exchange(frame: bytes) -> object:
        writer.write(frame)
        while not (found := client.receive(await reader.read(65536))):
            pass
        return found[0]

    client.welcomed(await exchange(client.hello()))  # type: ignore[arg-type]
    answers = [await exchange(client.request(each)) for each in requests]  # type: ignore[arg-type]
    writer.close()
    return answers


def test_three_controllers_elect_one_and_all_have_what_it_commits(three: Controllers) -> None:
    async def main() -> None:
        await three.start()
        assert await three.set("2") == "2"
        await three.everywhere("2")
        assert "controller 1 at CONTROLLER://localhost:" in three.nodes[1].ready_line(0.5)
        levels = {tuple(sorted(node.runner.member.image.features.items())) for node in three.nodes.values()}
        assert len(levels) == 1

    three.run(main)


def test_when_the_leader_stops_another_one_goes_on_with_all_that_was_committed(three: Controllers) -> None:
    async def main() -> None:
        await three.start()
        for round_ in range(3):
            await three.set(str(round_))
            leader = three.active()
            assert leader is not None
            await three.stop(leader)
            assert await three.until(three.active) != leader
            await three.everywhere(str(round_))
            await three.start(leader)
            await three.everywhere(str(round_))

    three.run(main)


def test_who_is_not_the_active_controller_says_so(three: Controllers) -> None:
    async def main() -> None:
        await three.start()
        active = await three.until(three.active)
        other = next(node_id for node_id in three.nodes if node_id != active)
        with pytest.raises(KafkaError) as refused:
            await three.nodes[other].runner.controller.submit(setting("3"), None)
        assert refused.value.code is ErrorCode.NOT_CONTROLLER

    three.run(main)


def test_without_a_majority_nothing_is_committed_and_who_waits_is_told(three: Controllers) -> None:
    async def main() -> None:
        await three.start()
        await three.set("1")
        active = await three.until(three.active)
        await three.stop(*(node_id for node_id in list(three.nodes) if node_id != active))
        waiting = three.nodes[active].runner.controller.submit(setting("9"), None)
        with pytest.raises(KafkaError) as refused:
            await waiting
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        assert three.value(active) == "1"

    three.run(main)


def test_clients_find_the_quorum_through_any_controller(three: Controllers) -> None:
    async def main() -> None:
        await three.start()
        active = await three.until(three.active)
        other = next(node_id for node_id in three.nodes if node_id != active)
        topic = RequestTopicData(METADATA_TOPIC, [RequestPartitionData(0)])
        cluster, not_here = await talk(
            three.ports[other], DescribeClusterRequest(endpoint_type=2), DescribeQuorumRequest(topics=[topic])
        )
        assert cluster.controller_id == active  # type: ignore[attr-defined]
        assert {each.broker_id: each.port for each in cluster.brokers} == three.ports  # type: ignore[attr-defined]
        refused = not_here.topics[0].partitions[0].error_code  # type: ignore[attr-defined]
        assert refused == ErrorCode.NOT_LEADER_OR_FOLLOWER
        (described,) = await talk(three.ports[active], DescribeQuorumRequest(topics=[topic]))
        partition = described.topics[0].partitions[0]  # type: ignore[attr-defined]
        assert (partition.leader_id, sorted(each.replica_id for each in partition.current_voters)) == (active, [1, 2, 3])
        (wrong,) = await talk(three.ports[active], DescribeClusterRequest(endpoint_type=1))
        assert wrong.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE  # type: ignore[attr-defined]

    three.run(main)


def _caught_up(runner: RaftRunner, node_id: int) -> bool:
    described = runner.controller.describe_quorum()
    return described is not None and any(each.id == node_id and each.last_caught_up_ms > 0 for each in described.observers)


def test_a_controller_joins_and_another_leaves(tmp_path: Path) -> None:
    world = Controllers(tmp_path, voters=2, spares=1)

    async def main() -> None:
        await world.start()
        await world.set("5")
        await world.everywhere("5")
        active = await world.until(world.active)
        member = world.nodes[active].runner
        await world.until(lambda: _caught_up(member, 3))
        where = Listener("CONTROLLER", "localhost", world.ports[3])
        disk = world.nodes[3].runner.member.machine.quorum.me.directory_id
        (added,) = await talk(world.ports[active], AddRaftVoterRequest(None, 2000, 3, disk, [where]))
        assert added.error_code == 0, added  # type: ignore[attr-defined]
        assert member.requests.voters.ids == (1, 2, 3)
        (left,) = await talk(world.ports[active], RemoveRaftVoterRequest(None, active, directory_id(active)))
        assert left.error_code == 0, left  # type: ignore[attr-defined]
        await world.until(lambda: world.active() not in (None, active))
        await world.set("6")
        await world.everywhere("6")

    try:
        world.run(main)
    finally:
        world.close()


def test_a_controller_that_comes_late_begins_with_a_snapshot(tmp_path: Path) -> None:
    world = Controllers(tmp_path)
    world.settings = {"metadata.log.max.record.bytes.between.snapshots": "1"}

    async def main() -> None:
        await world.start(1, 2)
        await world.set("5")
        await world.everywhere("5")
        for node in world.nodes.values():
            node.replica.snapshots.step()
        await world.until(lambda: all(node.runner.member.log.newest_snapshot for node in world.nodes.values()))
        await world.start(3)
        await world.everywhere("5")
        late = world.nodes[3].runner.member
        assert late.log.log.log_start_offset > 0, "it has no record from before"
        assert late.machine.voters.ids == (1, 2, 3)

    try:
        world.run(main)
    finally:
        world.close()


def test_a_controller_that_nobody_told_of_a_quorum_does_not_start(tmp_path: Path) -> None:
    world = Controllers(tmp_path, voters=1, spares=1)
    world.settings = {"controller.quorum.bootstrap.servers": ""}

    async def main() -> None:
        with pytest.raises(ConfigError, match="No voters of the metadata quorum"):
            await world.start(2)

    try:
        world.runtime.loop.run_until_complete(main())
    finally:
        world.close()


def test_a_controller_serves_no_client_apis() -> None:
    from tidelog.broker.table import CONTROLLER_APIS

    assert ApiKey.PRODUCE not in CONTROLLER_APIS and ApiKey.METADATA not in CONTROLLER_APIS


def test_dynamic_settings_of_the_cluster_are_the_controllers_too(three: Controllers) -> None:
    record = ConfigRecord(resource_type=4, resource_name="", name="unclean.leader.election.enable", value="true")

    async def main() -> None:
        await three.start()
        active = three.nodes[await three.until(three.active)]
        await active.runner.controller.submit(lambda controller, request, now_ms: ControllerResult.of(None, [record]), None)
        await three.until(lambda: all(node.config.unclean_leader_election_enable for node in three.nodes.values()))
        assert active.runner.member.controller is not None
        assert active.runner.member.controller._settings.unclean_leader_election_enable
        await three.stop(1)
        await three.start(1)
        await three.until(lambda: three.nodes[1].config.unclean_leader_election_enable)

    three.run(main)
