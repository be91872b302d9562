"""Where replicas go: striped over the brokers, one rack after another, from a random start.

The brokers are lined up so that neighbours are in different racks as far as the racks allow; partition p takes the replicas
that start p places after the random start. So leaders and replicas spread evenly, a partition's replicas sit in as many racks
as possible, and fenced brokers are used only where unfenced ones do not suffice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidelog.metadata.image import BrokerImage
from tidelog.model.ports import Rng


class InvalidReplicationFactor(Exception):
    """The brokers that are there cannot hold so many replicas of a partition."""


@dataclass(frozen=True, slots=True)
class UsableBroker:
    """A broker that replicas may be placed on."""

    id: int
    rack: str | None
    fenced: bool


def usable_brokers(brokers: Iterable[BrokerImage]) -> list[UsableBroker]:
    """All registered brokers but those that are shutting down, and those whose log dirs are all cordoned; by id."""
    usable = [UsableBroker(each.id, each.rack, each.fenced) for each in brokers if _takes_replicas(each)]
    return sorted(usable, key=lambda broker: broker.id)


def _takes_replicas(broker: BrokerImage) -> bool:
    if broker.in_controlled_shutdown and not broker.fenced:
        return False
    cordoned = broker.cordoned_directories
    return not broker.directories or cordoned is None or any(each not in cordoned for each in broker.directories)


def interleave_racks(brokers: Sequence[UsableBroker]) -> list[int]:
    """Ids, taking one broker of each rack in turn; brokers without a rack count as one rack."""
    racks: dict[str, list[int]] = {}
    for broker in brokers:
        racks.setdefault(broker.rack or "", []).append(broker.id)
    lines = [racks[name] for name in sorted(racks)]
    longest = max((len(line) for line in lines), default=0)
    return [line[turn] for turn in range(longest) for line in lines if turn < len(line)]


def place(
    brokers: Sequence[UsableBroker], count: int, replication_factor: int, rng: Rng, *, start: int = 0
) -> list[tuple[int, ...]]:
    """Replicas of ``count`` partitions, the preferred leader first. InvalidReplicationFactor when there are too few brokers.

    ``start`` is the number of partitions that the topic has already: it continues the stripe.
    """
    if not any(not broker.fenced for broker in brokers):
        raise InvalidReplicationFactor("All brokers are currently fenced.")
    if replication_factor > len(brokers):
        raise InvalidReplicationFactor(
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(brokers)} broker(s) are registered or some brokers have all their log directories cordoned."
        )
    unfenced = interleave_racks([broker for broker in brokers if not broker.fenced])
    fenced = interleave_racks([broker for broker in brokers if broker.fenced])
    shift = rng.randrange(0, len(unfenced)) + start
    assignments = []
    for number in range(count):
        first = (shift + number) % len(unfenced)
        line = unfenced[first:] + unfenced[:first]
        if replication_factor > len(line):
            skip = (shift + number) % len(fenced)
            line = line + fenced[skip:] + fenced[:skip]
        assignments.append(tuple(line[:replication_factor]))
    return assignments
