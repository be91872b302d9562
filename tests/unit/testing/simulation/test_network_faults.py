"""What is cut off by a fault of the network, without nodes."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from tidelog.testing.simulation.loop import Agenda
from tidelog.testing.simulation.network import Network
from tidelog.testing.simulation.network_faults import NetworkFaults


class World:
    def __init__(self) -> None:
        self.agenda = Agenda(1)
        self.network = Network(self.agenda, 1)
        self.machines: list[Any] = [SimpleNamespace(host=f"n{number}") for number in range(3)]
        loops: Any = dict.fromkeys(("n0", "n1", "n2", "client"))
        self.network.hosts = loops
        self.faults = NetworkFaults(self.network, self.agenda, self.machines, random.Random(1))


def test_nothing_reaches_an_isolated_node_until_the_network_heals() -> None:
    world = World()
    assert world.faults.isolate(world.machines[0])
    others = ("n1", "n2", "client")
    assert world.network.cuts == {("n0", other) for other in others} | {(other, "n0") for other in others}
    assert world.agenda.run_until(lambda: not world.network.cuts, 9.0)


def test_a_split_leaves_clients_on_both_sides() -> None:
    world = World()
    assert world.faults.split(world.machines[0])
    assert world.network.cuts and not any("client" in pair for pair in world.network.cuts)
    assert world.network.cuts == {(b, a) for a, b in world.network.cuts}


def test_one_way_is_one_way() -> None:
    world = World()
    assert world.faults.one_way(world.machines[1])
    ((source, target),) = world.network.cuts
    assert source == "n1" and target in ("n0", "n2")


def test_what_a_slow_node_sends_is_late_everywhere() -> None:
    world = World()
    assert world.faults.slow(world.machines[2])
    assert {source for source, _ in world.network.slow} == {"n2"}
    assert all(0.02 <= seconds <= 1.5 for seconds in world.network.slow.values())
