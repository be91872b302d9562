"""Faults of a simulated network: nodes isolated, split, slow, connections reset. Each heals by itself after some seconds."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tidelog.testing.simulation.loop import Agenda
from tidelog.testing.simulation.machines import Machine
from tidelog.testing.simulation.network import Network


class NetworkFaults:
    """Each method begins a fault around a node and returns True."""

    def __init__(self, network: Network, agenda: Agenda, machines: Sequence[Machine], rng: random.Random) -> None:
        self.network, self.agenda, self.machines, self.rng = network, agenda, machines, rng

    def isolate(self, machine: Machine) -> bool:
        """Nothing reaches the node or leaves it."""
        hosts = [each for each in self.network.hosts if each != machine.host]
        self._cut([(machine.host, other) for other in hosts] + [(other, machine.host) for other in hosts])
        return True

    def split(self, machine: Machine) -> bool:
        """Splits the nodes in two; clients see both sides."""
        hosts = [each.host for each in self.machines]
        side = set(self.rng.sample(hosts, self.rng.randint(1, len(hosts) - 1)))
        self._cut([(a, b) for a in hosts for b in hosts if (a in side) != (b in side)])
        return True

    def one_way(self, machine: Machine) -> bool:
        """Nothing of the node reaches one of the others."""
        other = self.rng.choice([each.host for each in self.machines if each is not machine])
        self._cut([(machine.host, other)])
        return True

    def _cut(self, pairs: list[tuple[str, str]]) -> None:
        for pair in pairs:
            self.network.cut(*pair)
        self.agenda.call_later(self.rng.uniform(0.5, 8.0), self.network.heal)

    def slow(self, machine: Machine) -> bool:
        """What the node sends arrives 0.02 to 1.5 s later."""
        seconds = self.rng.uniform(0.02, 1.5)
        for host in self.network.hosts:
            self.network.slow[machine.host, host] = seconds
        self.agenda.call_later(self.rng.uniform(1.0, 6.0), self.network.heal)
        return True

    def resets(self, machine: Machine) -> bool:
        """A share of all connections is reset."""
        self.network.reset_some(self.rng.uniform(0.1, 1.0))
        return True
