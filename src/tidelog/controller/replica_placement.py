"""Replica placement: striped over racks, and over the brokers within each rack, from random starts.

Each partition starts with the next rack and takes one broker of each rack in turn, the next broker in every rack. Leaders and
replicas spread evenly, and the replicas of a partition are in as many racks as possible. A rack offers its unfenced brokers
first, and the first replica, which leads, is never on a fenced one. When every unfenced broker has been first equally often,
racks and brokers are shuffled, so that partitions do not share the same brokers again and again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


def usable_brokers(brokers: Iterable[BrokerImage]) -> list[UsableBroker]:
    """All registered brokers except those that are shutting down or have all log dirs cordoned; by id."""
    usable = [UsableBroker(each.id, each.rack, each.fenced) for each in brokers if _takes_replicas(each)]
    return sorted(usable, key=lambda broker: broker.id)


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

    def __init__(self, ids: Iterable[int], rng: Rng) -> None:
        self.ids = sorted(ids)
        self._start = rng.randrange(0, len(self.ids)) if self.ids else 0
        self._partition = 0
        self._taken = 0

    def next(self, partition: int) -> int | None:
        """The next broker for the partition; None after a full round."""
        if not self.ids:
            return None
        if partition != self._partition:
            self._partition, self._taken = partition, 0
            self._start = (self._start + 1) % len(self.ids)
        if self._taken == len(self.ids):
            return None
        self._taken += 1
        return self.ids[(self._start + self._taken - 1) % len(self.ids)]


class _Rack:
    def __init__(self, brokers: Sequence[UsableBroker], rng: Rng) -> None:
        self.fenced = _Ring((each.id for each in brokers if each.fenced), rng)
        self.unfenced = _Ring((each.id for each in brokers if not each.fenced), rng)

    def next(self, partition: int) -> int | None:
        unfenced = self.unfenced.next(partition)
        return self.fenced.next(partition) if unfenced is None else unfenced


class _Stripes:
    def __init__(self, brokers: Sequence[UsableBroker], rng: Rng) -> None:
        by_name: dict[str, list[UsableBroker]] = {}
        for broker in brokers:
            by_name.setdefault("" if broker.rack is None else broker.rack, []).append(broker)
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
        led_by, leader = self._leader(begin)
        replicas = [leader]
        place, skip_leaders_rack = begin, True
        while len(replicas) < count:
            if skip_leaders_rack and place == led_by:
                skip_leaders_rack = False
            else:
                replica = self._racks[place].next(self._partition)
                if replica is not None:
                    replicas.append(replica)
            place = (place + 1) % racks
        self._partition += 1
        self._first_rack = begin + 1
        return tuple(replicas)

    def _leader(self, begin: int) -> tuple[int, int]:
        """(rack, broker): the leader from the first rack at or after ``begin`` that has an unfenced broker."""
        for step in range(len(self._racks)):
            number = (begin + step) % len(self._racks)
            broker = self._racks[number].unfenced.next(self._partition)
            if broker is not None:
                return number, broker
        raise AssertionError("no unfenced broker in any rack")

    def _shuffle(self) -> None:
        shuffle(self._racks, self._rng)
        for rack in self._racks:
            shuffle(rack.fenced.ids, self._rng)
            shuffle(rack.unfenced.ids, self._rng)


def shuffle(items: list[T], rng: Rng) -> None:
    """A uniformly random order."""
    for last in range(len(items) - 1, 0, -1):
        chosen = rng.randrange(0, last + 1)
        items[last], items[chosen] = items[chosen], items[last]
