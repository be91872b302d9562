"""Replica placement: striped over racks, over the machines of each rack and their brokers, from random starts.

Each partition starts with the next rack and takes one broker of each rack in turn, the next broker in every rack. Leaders and
replicas spread evenly, and the replicas of a partition are in as many racks as possible. A rack offers its unfenced brokers
first, and the first replica, which leads, is never on a fenced one. When every unfenced broker has been first equally often,
racks and brokers are shuffled, so that partitions do not share the same brokers again and again.

Brokers that advertise the same hosts are one machine. The replicas of a partition share a machine only where there is no other in
any rack, and then each machine gets a second one before any gets a third. A record that says so would not be Kafka's; where every
broker has hosts of its own, or all have the same, the placement is that by racks alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from tidelog.metadata.image import BrokerImage
from tidelog.model.ports import Rng

T = TypeVar("T")


class InvalidReplicationFactor(Exception):
    """The available brokers cannot hold this many replicas of a partition."""


class UsableBroker(NamedTuple):
    """A broker that replicas may be placed on."""

    id: int
    rack: str | None
    fenced: bool
    machine: Hashable = None
    """Equal for brokers of one machine; within a rack."""


def usable_brokers(brokers: Iterable[BrokerImage]) -> list[UsableBroker]:
    """All registered brokers except those that are shutting down or have all log dirs cordoned; by id."""
    usable = [UsableBroker(each.id, each.rack, each.fenced, machine_of(each)) for each in brokers if _takes_replicas(each)]
    return sorted(usable, key=lambda broker: broker.id)


def machine_of(broker: BrokerImage) -> Hashable:
    """The hosts that the broker advertises, by listener. All have to be equal: brokers behind one balancer for clients have a
    listener of their own for each other."""
    return frozenset((each.name, each.host) for each in broker.endpoints.values())


def _takes_replicas(broker: BrokerImage) -> bool:
    if broker.in_controlled_shutdown and not broker.fenced:
        return False
    cordoned = broker.cordoned_directories
    return not broker.directories or cordoned is None or any(each not in cordoned for each in broker.directories)


def place(brokers: Sequence[UsableBroker], count: int, replication_factor: int, rng: Rng) -> list[tuple[int, ...]]:
    """Replica lists of ``count`` partitions, the preferred leader first. InvalidReplicationFactor when there are too few
    brokers."""
    if not any(not broker.fenced for broker in brokers):
        raise InvalidReplicationFactor("All brokers are currently fenced.")
    if replication_factor > len(brokers):
        raise InvalidReplicationFactor(
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(brokers)} broker(s) are registered or some brokers have all their log directories cordoned."
        )
    stripes = _Stripes(brokers, rng)
    return [stripes.next_replicas(replication_factor) for _ in range(count)]


class _Ring:
    """Brokers in a ring. Each partition starts one position further."""

    def __init__(self, brokers: Iterable[UsableBroker], rng: Rng) -> None:
        self._machines = {each.id: each.machine for each in sorted(brokers)}
        self._ids = self._mixed(list(self._machines))
        self._start = rng.randrange(0, len(self._ids)) if self._ids else 0
        self._partition = 0
        self._taken: set[int] = set()

    def next(self, partition: int, used: Counter[Hashable], most: int) -> int | None:
        """The next broker for the partition, on a machine that has fewer than ``most`` of its replicas; None when there is none
        left. ``used``: the replicas on each machine."""
        if not self._ids:
            return None
        if partition != self._partition:
            self._partition = partition
            self._taken.clear()
            self._start = (self._start + 1) % len(self._ids)
        for step in range(len(self._ids)):
            found = self._ids[(self._start + step) % len(self._ids)]
            machine = self._machines[found]
            if found not in self._taken and used[machine] < most:
                self._taken.add(found)
                used[machine] += 1
                return found
        return None

    def shuffle(self, rng: Rng) -> None:
        """Another order."""
        shuffle(self._ids, rng)
        self._ids = self._mixed(self._ids)

    def _mixed(self, ids: list[int]) -> list[int]:
        """The brokers of each machine evenly among the others, and in their order: neighbors are rarely on one machine, so what
        follows a leader is not always the same broker of the next machine."""
        sizes, seen = Counter(self._machines[each] for each in ids), Counter[Hashable]()
        places = {}
        for each in ids:
            machine = self._machines[each]
            places[each] = (2 * seen[machine] + 1) / sizes[machine]
            seen[machine] += 1
        return sorted(ids, key=lambda each: places[each])


class _Rack:
    def __init__(self, brokers: Sequence[UsableBroker], rng: Rng) -> None:
        self.fenced = _Ring((each for each in brokers if each.fenced), rng)
        self.unfenced = _Ring((each for each in brokers if not each.fenced), rng)

    def next(self, partition: int, used: Counter[Hashable], most: int) -> int | None:
        unfenced = self.unfenced.next(partition, used, most)
        return self.fenced.next(partition, used, most) if unfenced is None else unfenced


class _Stripes:
    def __init__(self, brokers: Sequence[UsableBroker], rng: Rng) -> None:
        by_name: dict[str, list[UsableBroker]] = {}
        for broker in brokers:
            rack = "" if broker.rack is None else broker.rack
            by_name.setdefault(rack, []).append(broker._replace(machine=(rack, broker.machine)))
        self._racks = [_Rack(by_name[name], rng) for name in sorted(by_name)]
        self._unfenced = sum(not broker.fenced for broker in brokers)
        self._rng = rng
        self._partition = 0
        self._first_rack = rng.randrange(0, len(self._racks))

    def next_replicas(self, count: int) -> tuple[int, ...]:
        if self._partition == self._unfenced and self._unfenced > 1:
            self._shuffle()
            self._partition = 0
        racks = len(self._racks)
        begin = self._first_rack % racks
        used = Counter[Hashable]()
        led_by, leader = self._leader(begin, used)
        replicas = [leader]
        place, skip_leaders_rack = begin, True
        most, in_vain = 1, 0
        while len(replicas) < count:
            if skip_leaders_rack and place == led_by:
                skip_leaders_rack = False
            elif (replica := self._racks[place].next(self._partition, used, most)) is not None:
                replicas.append(replica)
                in_vain = 0
            elif (in_vain := in_vain + 1) == racks:
                # Every machine has as many as any other: another round over all of them.
                most, in_vain = most + 1, 0
            place = (place + 1) % racks
        self._partition += 1
        self._first_rack = begin + 1
        return tuple(replicas)

    def _leader(self, begin: int, used: Counter[Hashable]) -> tuple[int, int]:
        """(rack, broker): the leader from the first rack at or after ``begin`` that has an unfenced broker."""
        for step in range(len(self._racks)):
            number = (begin + step) % len(self._racks)
            broker = self._racks[number].unfenced.next(self._partition, used, 1)
            if broker is not None:
                return number, broker
        raise AssertionError("no unfenced broker in any rack")

    def _shuffle(self) -> None:
        shuffle(self._racks, self._rng)
        for rack in self._racks:
            rack.fenced.shuffle(self._rng)
            rack.unfenced.shuffle(self._rng)


def shuffle(items: list[T], rng: Rng) -> None:
    """A uniformly random order."""
    for last in range(len(items) - 1, 0, -1):
        chosen = rng.randrange(0, last + 1)
        items[last], items[chosen] = items[chosen], items[last]
