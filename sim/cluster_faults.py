"""What goes wrong in a simulated cluster: processes, machines, disks, clocks and the network, one thing or several at a time.

Data is promised to survive as long as one in-sync replica does; acknowledged records of a partition with min.insync.replicas 2
are on two disks. So at most one machine at a time loses what was not synced: a record that is acknowledged may be in two page
caches only, and Kafka promises no more. Processes may be killed together.
"""

from __future__ import annotations

import collections
import errno
import random
from collections.abc import Callable

from sim.disk import UNLIMITED
from sim.loop import Agenda
from sim.machines import Machine
from sim.network import Network


class Faults:
    """Begins faults, and ends them."""

    def __init__(self, agenda: Agenda, network: Network, machines: list[Machine], seed: int) -> None:
        self.agenda, self.network, self.machines = agenda, network, machines
        self.rng = random.Random(seed)
        self.done: collections.Counter[str] = collections.Counter()
        self.told: list[str] = []
        """When, what, to whom."""
        self.settled: Callable[[], bool] = lambda: True
        """Whether a machine may lose its power now: every partition is fully in sync, and there are eligible leader replicas."""
        self._on = False
        self._until = 0.0
        self._excused: set[int] = set()

    def begin(self, seconds: float) -> None:
        self._on, self._until = True, self.agenda.now + seconds
        self.agenda.call_later(1.0, self._next)

    def end(self) -> None:
        """Everything is healed; who is down starts."""
        self._on = False
        self.network.heal()
        for machine in self.machines:
            machine.resume()
            machine.disk.heal()
            machine.disk.capacity = UNLIMITED
            self._up(machine)

    def explains(self, machine: Machine) -> bool:
        """Whether a fault of ours is why this node could not go on."""
        return machine.node_id in self._excused

    def _next(self) -> None:
        if not self._on:
            return
        self._one()
        self.agenda.call_later(self.rng.uniform(1.0, 6.0), self._next)

    def _one(self) -> None:
        names = (
            "kill",
            "kill",
            "kill",
            "stop",
            "power",
            "pause",
            "isolate",
            "one way",
            "slow",
            "resets",
            "disk",
            "all",
            "split",
            "clock",
            "voter",
        )
        name = self.rng.choice(names)
        machine = self.rng.choice(self.machines)
        if getattr(self, f"_{name.replace(' ', '_')}")(machine):
            self.done[name] += 1
            self.told.append(f"{self.agenda.now:.3f} {name} {machine.node_id}")

    def _up(self, machine: Machine) -> None:
        if not machine.running:
            self._excused.discard(machine.node_id)
            machine.start()

    def _later_up(self, machine: Machine, least: float = 0.2, most: float = 8.0) -> None:
        self.agenda.call_later(self.rng.uniform(least, most), self._up, machine)

    def _kill(self, machine: Machine) -> bool:
        if not machine.running:
            return False
        machine.kill()
        self._later_up(machine)
        return True

    def _stop(self, machine: Machine) -> bool:
        task = machine.stop()
        if task is None:
            return False

        def check() -> None:
            if machine.running and not machine.serving:
                self.agenda.call_later(0.5, check)
            else:
                self._later_up(machine)

        self.agenda.call_later(0.5, check)
        return True

    def _power(self, machine: Machine) -> bool:
        if not machine.running or not self.settled():
            return False
        machine.lose_power()
        self._later_up(machine, 1.0)
        return True

    def _pause(self, machine: Machine) -> bool:
        if not machine.running:
            return False
        machine.pause()
        self.agenda.call_later(self.rng.uniform(0.2, 9.0), machine.resume)
        return True

    def _all(self, machine: Machine) -> bool:
        """Every process is killed at once."""
        if self.rng.random() < 0.6:
            return False
        for each in self.machines:
            if each.running:
                each.kill()
                self._later_up(each, 0.2, 3.0)
        return True

    def _isolate(self, machine: Machine) -> bool:
        hosts = [each for each in self.network.hosts if each != machine.host]
        self._cut([(machine.host, other) for other in hosts] + [(other, machine.host) for other in hosts])
        return True

    def _split(self, machine: Machine) -> bool:
        """Between nodes only: clients see both sides."""
        hosts = [each.host for each in self.machines]
        side = set(self.rng.sample(hosts, self.rng.randint(1, len(hosts) - 1)))
        self._cut([(a, b) for a in hosts for b in hosts if (a in side) != (b in side)])
        return True

    def _one_way(self, machine: Machine) -> bool:
        other = self.rng.choice([each.host for each in self.machines if each is not machine])
        self._cut([(machine.host, other)])
        return True

    def _cut(self, pairs: list[tuple[str, str]]) -> None:
        for pair in pairs:
            self.network.cut(*pair)
        self.agenda.call_later(self.rng.uniform(0.5, 8.0), self.network.heal)

    def _slow(self, machine: Machine) -> bool:
        seconds = self.rng.uniform(0.02, 1.5)
        for host in self.network.hosts:
            self.network.slow[machine.host, host] = seconds
        self.agenda.call_later(self.rng.uniform(1.0, 6.0), self.network.heal)
        return True

    def _resets(self, machine: Machine) -> bool:
        self.network.reset_some(self.rng.uniform(0.1, 1.0))
        return True

    def _disk(self, machine: Machine) -> bool:
        """The disk fails once, in a write or a sync: the node takes it offline and ends; it comes back on the same disk. What was
        not synced is lost as with a power loss, so the same pause holds."""
        if not machine.running or not machine.serving or not self.settled():
            return False
        self._excused.add(machine.node_id)
        machine.disk.fail(self.rng.choice(("write", "sync", "create")), self.rng.randint(1, 20), errno.EIO)

        def back() -> None:
            machine.disk.heal()
            if machine.running:
                machine.lose_power()
            machine.ended = None
            self._up(machine)

        self.agenda.call_later(self.rng.uniform(2.0, 6.0), back)
        return True

    def _voter(self, _: Machine) -> bool:
        """The quorum's leader dies; who then votes for another loses its power right after, while the elected one is cut off and
        the former leader is back: a vote that was not on the disk before it was given would now be given twice."""
        voters = [each for each in self.machines if each.is_controller and each.serving]
        leads = next((each for each in voters if each.leads_quorum), None)
        if leads is None or len(voters) < 3 or not self.settled():
            return False
        leads.kill()
        written: list[Machine] = []

        def wrote(machine: Machine, path: str) -> None:
            if "quorum-state" not in path or machine in written or len(written) == 2:
                return
            written.append(machine)
            if len(written) == 2:
                self.agenda.call_later(self.rng.uniform(0.005, 0.05), lost)

        def lost() -> None:
            elected, voter = written
            hosts = [each for each in self.network.hosts if each != elected.host]
            self._cut([(elected.host, other) for other in hosts] + [(other, elected.host) for other in hosts])
            if voter.running:
                voter.lose_power()
            self._later_up(voter, 0.01, 0.1)

        for each in voters:
            if each is not leads:
                each.disk.on_operation = lambda _number, _kind, path, each=each: wrote(each, path)
        self._later_up(leads, 0.1, 1.0)
        return True

    def _clock(self, machine: Machine) -> bool:
        """The wall clock is set, backwards or forwards."""
        machine.set_clock(self.rng.randrange(-5000, 5000))
        return True
