"""What is known of a consumer group at two instants; the evidence of every verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidelog.client.calls import Partition

EMPTY = "Empty"
REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})


@dataclass(frozen=True, slots=True)
class MemberFacts:
    """A member. ``target`` is None in the classic protocol."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None = None
    assignment: frozenset[Partition] = frozenset()
    target: frozenset[Partition] | None = None
    subscription: frozenset[str] = frozenset()
    """Topics named; a regular expression names none."""
    pattern: str | None = None

    @property
    def name(self) -> str:
        """As operators know it."""
        which = f", instance {self.instance_id}" if self.instance_id else ""
        return f"{self.client_id or self.member_id} at {self.host.lstrip('/')}{which}"


@dataclass(frozen=True, slots=True)
class HeldBy:
    """The transaction that begins at a last stable offset. ``state``, ``started_ms`` and ``timeout_ms`` are those that its
    coordinator tells, None where no coordinator knows it: then it hangs."""

    producer_id: int
    transactional_id: str | None = None
    state: str | None = None
    started_ms: int | None = None
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """A partition that the group reads or has read. Offsets are None where they could not be read, ``committed`` where the group
    committed none. ``leader`` is -1 without one."""

    leader: int = 0
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()
    min_in_sync: int = 1
    start: int | None = None
    stable: int | None = None
    """The last stable offset, where readers of committed records end."""
    end: int | None = None
    """The high watermark."""
    committed: int | None = None
    pending: bool = False
    """A transaction that is not over would set another committed offset: it waits for that."""
    only_markers: bool = False
    """Between the committed offset and the end lie markers of transactions alone, which no consumer is given."""
    held_by: HeldBy | None = None

    @property
    def lag(self) -> int:
        """Records up to the high watermark; 0 where that is not known, or where no consumer would be given one."""
        if self.only_markers:
            return 0
        return 0 if self.committed is None or self.end is None else max(0, self.end - self.committed)


@dataclass(frozen=True, slots=True)
class Sample:
    """The group at one instant. ``coordinator_error``: the name of the error with which its coordinator refuses, and then
    nothing else is known of it."""

    at_ms: int
    state: str = ""
    protocol: str = "classic"
    """classic or consumer."""
    protocol_type: str = "consumer"
    """Empty for a group that only stores offsets."""
    epoch: int | None = None
    members: tuple[MemberFacts, ...] = ()
    partitions: Mapping[Partition, PartitionFacts] = field(default_factory=dict)
    missing_topics: frozenset[str] = frozenset()
    """Topics that members subscribe to, or that offsets are for, which do not exist."""
    topics: frozenset[str] = frozenset()
    """All topics that may be described."""
    coordinator_error: str | None = None
    no_offsets_topic: bool = False
    """The coordinator refuses, and there is no __consumer_offsets."""


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """Two samples of a group, so that it shows what moves."""

    group_id: str
    first: Sample
    last: Sample

    @property
    def seconds(self) -> float:
        """The time between the two."""
        return max(0.001, (self.last.at_ms - self.first.at_ms) / 1000)

    def before(self, at: Partition) -> PartitionFacts:
        """The partition at the first look; without offsets when the group did not read it then."""
        return self.first.partitions.get(at, PartitionFacts())
