"""The layout of a cluster: what plans of moves are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidelog.console.moving.balance_plan import Held, Partition

CORDONED, ALL_DIRS = "cordoned.log.dirs", "*"
"""The setting of a broker that takes no new replicas (KIP-1066), and its value for all log dirs."""


@dataclass(frozen=True, slots=True)
class Ongoing:
    """A running reassignment: all current replicas, those being added, those being removed."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas after the reassignment."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)


@dataclass(frozen=True, slots=True)
class Seen:
    """A partition as the cluster reports it; ``leader`` is None without a leader."""

    partition: Partition
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """A cluster: its live brokers with their racks, brokers that are down, partitions, and running reassignments.

    ``cordoned``: brokers that take no new replicas (KIP-1066), because they are being drained or were.
    """

    cluster_id: str
    racks: Mapping[int, str | None]
    down: Mapping[int, str | None]
    seen: tuple[Seen, ...]
    sizes: Mapping[Partition, int]
    under_way: Mapping[Partition, Ongoing]
    cordoned: tuple[int, ...] = ()
    hosts: Mapping[int, str] | None = None
    """The host that each broker advertises: brokers with the same one are processes of one machine."""

    def held(self) -> list[Held]:
        """For the planner: partitions that are being moved count as moved."""
        return [
            Held(
                each.partition,
                self.under_way[each.partition].target if each.partition in self.under_way else each.replicas,
                self.sizes.get(each.partition, 0),
            )
            for each in self.seen
        ]


def drifted(seen: Seen) -> bool:
    """Whether the preferred leader is in sync but does not lead."""
    return seen.leader != seen.replicas[0] and seen.replicas[0] in seen.in_sync
