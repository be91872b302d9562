"""Faults in a simulated cluster: processes, machines, disks, clocks and the network, one or several at a time.

Data must survive as long as one in-sync replica does; acknowledged records of a partition with min.insync.replicas 2 are on two
disks. So at most one machine at a time loses unsynced data: an acknowledged record may be in two page caches only, and Kafka
promises no more. Processes may be killed together.
"""

from __future__ import annotations

import collections
import errno
import random
from collections.abc import Callable, Mapping, Sequence

from tidelog.testing.simulation.cluster import SimCluster
from tidelog.testing.simulation.damage import Damage
from tidelog.testing.simulation.machines import Machine
from tidelog.testing.simulation.network_faults import NetworkFaults

KINDS = (
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
    "full",
    "flip",
    "all",
    "split",
    "clock",
    "voter",
)
"""Kinds of faults, listed as often as their weight: a process killed, stopped in order or paused; a machine without power; a
node isolated, isolated in one direction, slow; nodes split in two; connections reset; a disk that fails, is full for a while,
or has a flipped bit; all processes killed; a wall clock set; a voter that loses power after its vote."""
VOTE_WITHIN_S = 10.0
"""How long after its leader's death a quorum may take to vote again, for the fault "voter"."""
ELIGIBLE_REPLICAS = "eligible.leader.replicas.version"


class Faults:
    """Begins and ends faults."""

    def __init__(self, cluster: SimCluster, seed: int, kinds: Sequence[str] = KINDS) -> None:
        unknown = sorted(set(kinds) - set(KINDS))
        if unknown:
            raise ValueError(f"no such kind of fault: {', '.join(unknown)}; there are {', '.join(dict.fromkeys(KINDS))}")
        self.cluster, self.kinds = cluster, list(kinds)
        self.agenda, self.network, self.machines = cluster.agenda, cluster.network, cluster.machines
        self.rng = random.Random(seed)
        self.done: collections.Counter[str] = collections.Counter()
        self.told: list[str] = []
        """(when, what, which node) of each fault."""
        self.damage = Damage(cluster, self.rng)
        net = NetworkFaults(cluster.network, cluster.agenda, cluster.machines, self.rng)
        self._begin: Mapping[str, Callable[[Machine], bool]] = {
            "kill": self._kill,
            "stop": self._stop,
            "power": self._power,
            "pause": self._pause,
            "isolate": net.isolate,
            "one way": net.one_way,
            "slow": net.slow,
            "resets": net.resets,
            "disk": self._disk,
            "full": self._full,
            "flip": self._flip,
            "all": self._all,
            "split": net.split,
            "clock": self._clock,
            "voter": self._voter,
        }
        """By kind: begins the fault at a node; False when it does not fit now."""
        self._on = False
        self._excused: set[int] = set()
        self._power_was_lost = False
        self._starts: dict[int, int] = {}
        """By broker: how often it had started when every replica was last known to be in sync."""
        self._losing: object | None = None
        """Stands for a fault that has begun and whose machine loses its unsynced data later."""

    def begin(self) -> None:
        """Begins faults, until ``end``."""
        self._on = bool(self.kinds)
        self.agenda.call_later(1.0, self._next)

    def end(self) -> None:
        """Heals everything except damaged files (``damage.repair``) and starts nodes that are down."""
        self._on = False
        self.network.heal()
        for machine in self.machines:
            machine.resume()
            machine.disk.heal()
            self._up(machine)

    def settled(self) -> bool:
        """Whether a machine may lose unsynced data: every partition is fully in sync, no other machine is going to lose any,
        nothing else is damaged, and a replica that lost records cannot be elected (with eligible leader replicas)."""
        eligible = self.cluster.shape.levels.get(ELIGIBLE_REPLICAS, 0) >= 1
        settled = eligible and self._losing is None and not self.damage.places and self.cluster.healthy()
        if settled:
            self._starts = {each.node_id: each.starts for each in self.cluster.brokers}
        return settled

    def _lose_power(self, machine: Machine) -> None:
        machine.lose_power()
        self._power_was_lost = True

    def _recovers(self) -> bool:
        """Whether a machine may still miss, as an ISR member, what it lost with its power. If all processes were killed before
        that is noticed, every replica would have ended uncleanly, and only the last known leader's log would be left."""
        self._power_was_lost = self._power_was_lost and not self.cluster.healthy()
        return self._power_was_lost

    def _may_end(self, machine: Machine) -> bool:
        """Whether this process may end: while a machine misses what it lost with its power, one other broker may, so that one of
        three replicas goes on. If the others end too before the controller notices, in order or not, those that are left in the
        ISR have ended uncleanly, and the one that lost its power may be the last known leader."""
        if not self._recovers():
            return True
        ended = {each.node_id for each in self.cluster.brokers if self._has_ended(each)}
        return len(ended | {machine.node_id}) <= 2

    def _has_ended(self, machine: Machine) -> bool:
        return not machine.serving or machine.disk.is_full or machine.starts != self._starts.get(machine.node_id, machine.starts)

    def explains(self, machine: Machine) -> bool:
        """Whether one of our faults explains why this node stopped."""
        return machine.node_id in self._excused

    def _next(self) -> None:
        if not self._on:
            return
        self._one()
        self.agenda.call_later(self.rng.uniform(1.0, 6.0), self._next)

    def _one(self) -> None:
        name = self.rng.choice(self.kinds)
        machine = self.rng.choice(self.machines)
        if self._begin[name](machine):
            self.done[name] += 1
            self.told.append(f"{self.agenda.now:.3f} {name} {machine.node_id}")

    def _up(self, machine: Machine) -> None:
        if not machine.running:
            self._excused.discard(machine.node_id)
            machine.start()

    def _later_up(self, machine: Machine, least: float = 0.2, most: float = 8.0) -> None:
        self.agenda.call_later(self.rng.uniform(least, most), self._up, machine)

    def _kill(self, machine: Machine) -> bool:
        if not machine.running or not self._may_end(machine):
            return False
        machine.kill()
        self._later_up(machine)
        return True

    def _stop(self, machine: Machine) -> bool:
        if not self._may_end(machine) or machine.stop() is None:
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
        self._lose_power(machine)
        self._later_up(machine, 1.0)
        return True

    def _pause(self, machine: Machine) -> bool:
        if not machine.running:
            return False
        machine.pause()
        self.agenda.call_later(self.rng.uniform(0.2, 9.0), machine.resume)
        return True

    def _all(self, machine: Machine) -> bool:
        """Kills every process at once."""
        if self.rng.random() < 0.6 or self._recovers():
            return False
        for each in self.machines:
            if each.running:
                each.kill()
                self._later_up(each, 0.2, 3.0)
        return True

    def _disk(self, machine: Machine) -> bool:
        """A disk fails once, in a write or a sync: the node takes it offline, and ends when it has no other; it comes back on
        the same disk. Unsynced data is lost as in a power loss, so the same pause holds."""
        if not machine.running or not machine.serving or not self.settled():
            return False
        self._excused.add(machine.node_id)
        self._losing = object()
        kind, number = self.rng.choice(("write", "sync", "create")), self.rng.randint(1, 20)
        machine.disk.fail(kind, number, errno.EIO, path_part=f"{self.rng.choice(self.cluster.shape.dirs)}/")

        def back() -> None:
            machine.disk.heal()
            self._losing = None
            if machine.running and self.settled():
                self._lose_power(machine)
            elif machine.running:
                machine.kill()  # another machine has lost data meanwhile
            machine.ended = None
            self._up(machine)

        self.agenda.call_later(self.rng.uniform(2.0, 6.0), back)
        return True

    def _full(self, machine: Machine) -> bool:
        """A disk is full, and later has room again. A node that ends is restarted again and again meanwhile, as supervisors
        do; one that continues on its other disk is restarted when there is room."""
        if not machine.running or machine.disk.is_full or not self._may_end(machine):
            return False
        self._excused.add(machine.node_id)
        machine.disk.fill(f"{self.rng.choice(self.cluster.shape.dirs)}/", self.rng.randrange(4096))
        until = self.agenda.now + self.rng.uniform(2.0, 10.0)

        def look() -> None:
            over = not self._on or self.agenda.now >= until
            if over:
                machine.disk.heal()
                if machine.running:
                    machine.kill()
            if not machine.running:
                machine.start()  # still excused: it may end again
            if not over:
                self.agenda.call_later(1.0, look)

        self.agenda.call_later(1.0, look)
        return True

    def _flip(self, machine: Machine) -> bool:
        """Flips a bit on a disk, in something that was synced long ago."""
        if not machine.running or not machine.serving or not self.settled():
            return False
        place = self.damage.flip(machine)
        if place is None:
            return False
        self.told.append(f"{self.agenda.now:.3f} bit in {place.path}")
        if place.killed:
            self._kill(machine)
        if place.repaired_by_wiping:
            self.agenda.call_later(self.rng.uniform(3.0, 12.0), self.damage.repair)
        return True

    def _voter(self, _: Machine) -> bool:
        """The quorum's leader dies; a voter that then votes for another node loses its power right after, while the elected
        one is isolated and the former leader is back: a vote that was not on the disk before it was given would now be given
        twice."""
        voters = [each for each in self.machines if each.is_controller and each.serving]
        leads = next((each for each in voters if each.leads_quorum), None)
        if leads is None or len(voters) < 3 or not self.settled():
            return False
        leads.kill()
        vote = self._losing = object()
        written: list[Machine] = []

        def wrote(machine: Machine, path: str) -> None:
            if self._losing is not vote or "quorum-state" not in path or machine in written or len(written) == 2:
                return
            written.append(machine)
            if len(written) == 2:
                self.agenda.call_later(self.rng.uniform(0.005, 0.05), lost)

        def lost() -> None:
            elected, voter = written
            over()
            self._begin["isolate"](elected)
            others = [each for each in self.cluster.brokers if each not in (leads, voter)]
            if voter.running and all(each.running for each in others):
                self._lose_power(voter)
            elif voter.running:
                voter.kill()  # another broker has ended meanwhile, and this one may be the last that is in sync
            self._later_up(voter, 0.01, 0.1)

        def over() -> None:
            if self._losing is vote:
                self._losing = None

        for each in voters:
            if each is not leads:
                each.disk.on_operation = lambda _number, _kind, path, each=each: wrote(each, path)
        self._later_up(leads, 0.1, 1.0)
        self.agenda.call_later(VOTE_WITHIN_S, over)
        return True

    def _clock(self, machine: Machine) -> bool:
        """Sets the wall clock, backwards or forwards."""
        machine.set_clock(self.rng.randrange(-5000, 5000))
        return True
