from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.server.several_nodes import SeveralNodes
from tidelog.server.cluster.dead_brokers import AT_ONCE, DeadBrokers
from tidelog.server.node import Node
from tidelog.server.runtime import LoopRuntime


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SeveralNodes]:
    # A session so long that no silence ends it while a test runs.
    made = SeveralNodes(tmp_path, controllers=1, brokers=1, broker_session_timeout_ms="600000")
    yield made
    made.close()


def die(node: Node, *, keep_listening: bool = False) -> None:
    """What others see of a process that is killed: it says nothing any more, and closes."""
    node.life.stop()
    node.parts.membership.close_channels()
    if not keep_listening:
        for listener in node.listeners:
            listener.stop_accepting()


def fenced(world: SeveralNodes) -> bool:
    return world.nodes[1].broker.image.brokers[2].fenced


def test_a_broker_that_hung_up_and_listens_no_more_is_fenced_at_once_and_may_come_back_at_once(world: SeveralNodes) -> None:
    async def main() -> None:
        await world.start()
        assert not fenced(world)
        die(world.nodes[2])
        await world.until(lambda: fenced(world))
        controller = world.nodes[1].replica.member.controller
        assert controller is not None
        assert not controller.heartbeats.has_session(2, world.nodes[2].life.epoch)

    world.run(main)


def test_a_broker_that_still_listens_keeps_its_session(world: SeveralNodes) -> None:
    async def main() -> None:
        await world.start()
        controller = world.nodes[1].replica.member.controller
        assert controller is not None
        dead_brokers = world.nodes[1].replica.dead_brokers
        die(world.nodes[2], keep_listening=True)
        await world.until(lambda: dead_brokers._asking)
        await world.until(lambda: not dead_brokers._asking)
        assert not fenced(world)
        assert controller.heartbeats.has_session(2, world.nodes[2].life.epoch)

    world.run(main)


def test_who_names_a_broker_that_lives_does_it_no_harm(world: SeveralNodes) -> None:
    async def main() -> None:
        await world.start()
        dead_brokers = world.nodes[1].replica.dead_brokers
        epoch = world.nodes[2].life.epoch
        for broker_id, said in ((2, epoch), (2, epoch - 1), (7, 1), (1, world.nodes[1].life.epoch)):
            dead_brokers.hung_up(broker_id, said)
        assert dead_brokers._asking == {2}
        await world.until(lambda: not dead_brokers._asking)
        assert not fenced(world)
        with socket.create_connection(("localhost", world.ports[2])):
            pass

    world.run(main)


def test_a_new_controller_looks_who_lives(tmp_path: Path) -> None:
    world = SeveralNodes(tmp_path, broker_session_timeout_ms="600000")

    async def main() -> None:
        await world.start()
        first = world.active()
        assert first is not None
        killed = world.nodes.pop(first)
        die(killed)
        for listener in killed.replica.listeners:
            listener.stop_accepting()
        await killed.replica.runner.stop(1)
        await world.everywhere(lambda node: node.broker.image.brokers[first].fenced)

    world.run(main)
    world.close()


def test_a_broker_that_goes_on_with_its_heartbeats_lives_wherever_its_address_leads(world: SeveralNodes) -> None:
    async def main() -> None:
        await world.start()
        dead_brokers = world.nodes[1].replica.dead_brokers
        node = world.nodes[2]
        for listener in node.listeners:
            # As behind an address that leads elsewhere from where the controller is.
            listener.stop_accepting()
        dead_brokers.hung_up(2, node.life.epoch)
        await world.until(lambda: not dead_brokers._asking)
        assert not fenced(world)

    world.settings["broker.heartbeat.interval.ms"] = "20"
    world.run(main)


class Elsewhere:
    """A controller's view of brokers on other machines, behind a network that ``accepts`` or refuses by address."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, hosts: list[str]) -> None:
        self.accepts = set(hosts)
        self.gone: set[int] = set()
        points = {str(n): SimpleNamespace(host=host, port=9092) for n, host in enumerate(hosts)}
        self.brokers = {7: SimpleNamespace(id=7, epoch=5, fenced=False, endpoints=points)}
        monkeypatch.setattr(DeadBrokers, "_knock", self._knock)
        monkeypatch.setattr("tidelog.server.cluster.dead_brokers.PAUSE_S", 0)

    async def _knock(self, host: str, port: int) -> None:
        await asyncio.sleep(0)
        if host not in self.accepts:
            raise ConnectionRefusedError

    async def run(self, *, refused_before: bool = False) -> None:
        """The broker is unfenced, then its connection ends and all addresses refuse."""
        runtime = LoopRuntime(asyncio.get_running_loop())
        image = SimpleNamespace(brokers=self.brokers)
        heartbeats = SimpleNamespace(gone=lambda broker_id, epoch: self.gone.add(broker_id))
        controller = SimpleNamespace(image=image, heartbeats=heartbeats)
        own = SimpleNamespace(controller=SimpleNamespace(id=999, endpoints={"C": SimpleNamespace(host="10.0.0.1", port=9093)}))
        member = SimpleNamespace(controller=controller, machine=SimpleNamespace(epoch=1), config=own)
        dead_brokers = DeadBrokers(member, runtime)  # type: ignore[arg-type]
        if refused_before:
            self.accepts = set()
        dead_brokers.committed(image, image, None)  # type: ignore[arg-type]
        for _ in range(20):
            await asyncio.sleep(0)
        self.accepts = set()
        dead_brokers.hung_up(7, 5)
        while dead_brokers._asking:  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0)
        await runtime.close()


def test_refusals_of_an_address_that_was_never_reached_are_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a firewall resets what comes from the controllers."""
    world = Elsewhere(monkeypatch, ["10.0.0.7"])
    asyncio.run(world.run(refused_before=True))
    assert world.gone == set()


def test_refusals_of_an_address_that_accepted_before_are_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Elsewhere(monkeypatch, ["10.0.0.7", "192.168.0.7"])
    asyncio.run(world.run())
    assert world.gone == {7}


@pytest.mark.parametrize("host", ["10.0.0.1", "127.0.0.1", "::1", "localhost"])
def test_refusals_of_the_same_machine_are_evidence(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = Elsewhere(monkeypatch, [host])
    asyncio.run(world.run(refused_before=True))
    assert world.gone == {7}


def test_a_new_controller_of_hundreds_of_brokers_knocks_at_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    under_way, most, gone = 0, 0, set[int]()

    async def knock(dead_brokers: DeadBrokers, host: str, port: int) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        raise ConnectionRefusedError

    async def main() -> None:
        runtime = LoopRuntime(asyncio.get_running_loop())
        place = SimpleNamespace(host="127.0.0.1", port=1)
        image = {n: SimpleNamespace(id=n, epoch=5, fenced=False, endpoints={"P": place}) for n in range(3 * AT_ONCE)}
        heartbeats = SimpleNamespace(gone=lambda broker_id, epoch: gone.add(broker_id))
        controller = SimpleNamespace(image=SimpleNamespace(brokers=image), heartbeats=heartbeats)
        own = SimpleNamespace(controller=SimpleNamespace(id=999))
        member = SimpleNamespace(controller=controller, machine=SimpleNamespace(epoch=1), config=own)
        dead_brokers = DeadBrokers(member, runtime)  # type: ignore[arg-type]
        dead_brokers.leader_changed()
        while dead_brokers._asking:  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(0.001)
        await runtime.close()

    monkeypatch.setattr(DeadBrokers, "_knock", knock)
    monkeypatch.setattr("tidelog.server.cluster.dead_brokers.PAUSE_S", 0)
    asyncio.run(main())
    assert gone == set(range(3 * AT_ONCE)) and most == AT_ONCE
