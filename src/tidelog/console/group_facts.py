"""What is known of a group at two instants; the evidence of every verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidelog.client.calls import Partition
from tidelog.console.audit_events import Denial
from tidelog.console.next_record import NextRecord
from tidelog.console.node_facts import NodeFacts

EMPTY = "Empty"
SHARE, STREAMS = "share", "streams"
ACTIVE = "active"
"""The phase of a share partition whose state its leader has loaded."""
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
class ShareWindow:
    """What the leader of a partition tells on its page of facts about a share group there. ``phase`` other than active: its state
    is not loaded, and then nothing else is known."""

    phase: str
    error: str | None = None
    start: int = 0
    end: int = -1
    """The last offset that was delivered."""
    in_flight: int = 0
    """Offsets from ``start`` to ``end``."""
    finished_above: int = 0
    """Records above ``start`` that are finished."""
    first_state: str | None = None
    """Of the record at ``start``: acquired, available, archiving, ..., None when it was never delivered."""
    first_deliveries: int = 0
    first_member: str | None = None
    lock_left_ms: int = 0
    lock_timeouts: float | None = None
    """Records whose lock timed out since the partition was loaded; None where the node's metrics were not read."""


@dataclass(frozen=True, slots=True)
class ShareProgress:
    """A partition in a share group. ``start``: as stored, None while the group has acknowledged nothing; ``lag``: records not
    finished, None where that is not known."""

    initialized: bool = False
    """The group's coordinator has a state for it."""
    error: str | None = None
    """With which the share coordinator refuses."""
    start: int | None = None
    lag: int | None = None
    window: ShareWindow | None = None
    """None where no page of the leader was read, or no member fetches there."""
    leader_seen: bool = False
    """A page of its leader was read."""


@dataclass(frozen=True, slots=True)
class ShareLimits:
    """Settings of a share group, and of its coordinator's broker (``max_size``, ``max_sessions``; None where not readable)."""

    deliveries: int = 5
    locks: int = 2000
    lock_ms: int = 30_000
    reset: str = "latest"
    committed_only: bool = False
    max_size: int | None = None
    max_sessions: int | None = None


@dataclass(frozen=True, slots=True)
class StreamsFacts:
    """The topology of a streams group. ``stale``: names of members with another topology epoch."""

    topology_epoch: int = -1
    subtopologies: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Each one's id and source topics."""
    sources: frozenset[str] = frozenset()
    """Topics that have to be there."""
    internal: frozenset[str] = frozenset()
    """Repartition and changelog topics, which the brokers make."""
    stale: tuple[str, ...] = ()


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
    committed_epoch: int = -1
    """The leader epoch of the committed offset, -1 where the client did not send one."""
    epoch_end: tuple[int, int] | None = None
    """Where that epoch, or the last one before it, ended in the log: (epoch, offset)."""
    log_end: int | None = None
    """The end of the leader's log, of which the high watermark may lack the last records."""
    retention_ms: int | None = None
    """retention.ms where the topic is not compacted."""
    next: NextRecord | None = None
    """What is read next, where there is a lag and records may be read."""
    unreachable: str | None = None
    """Why its leader could not be asked."""
    share: ShareProgress | None = None
    """Of share groups, whose ``committed`` is the start offset as far as it is known."""

    @property
    def lag(self) -> int:
        """Records up to the high watermark; 0 where that is not known, or where no consumer would be given one. For share groups
        those that are not finished."""
        if self.share is not None:
            return self._share_lag(self.share)
        if self.only_markers:
            return 0
        return 0 if self.committed is None or self.end is None else max(0, self.end - self.committed)

    def _share_lag(self, share: ShareProgress) -> int:
        window = share.window
        if window is not None and window.phase == ACTIVE and self.end is not None:
            return max(0, self.end - window.start - window.finished_above)
        return share.lag or 0


@dataclass(frozen=True, slots=True)
class Sample:
    """The group at one instant. ``coordinator_error``: the name of the error with which its coordinator refuses, and then
    nothing else is known of it."""

    at_ms: int
    state: str = ""
    protocol: str = "classic"
    """classic, consumer, share or streams."""
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
    out_of_reach: bool = False
    """The coordinator did not refuse: there was no connection to it."""
    no_offsets_topic: bool = False
    """The coordinator refuses, and there is no __consumer_offsets."""
    leaderless_offsets: tuple[int, ...] = ()
    """The coordinator refuses: partitions of __consumer_offsets without a leader."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Partitions of the topics."""
    limits: ShareLimits | None = None
    """Of share groups."""
    state_topic_fault: str | None = None
    """What is wrong with __share_group_state, where share groups keep their state."""
    streams: StreamsFacts | None = None
    nodes: tuple[NodeFacts, ...] = ()
    """What the pages of nodes say that were read."""
    denials: tuple[Denial, ...] = ()
    """Of the last minute, from the audit of the nodes."""
    unread: tuple[str, ...] = ()
    """Pages that could not be read, and why."""


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """Two samples of a group, so that it shows what moves."""

    group_id: str
    first: Sample
    last: Sample
    between: tuple[Sample, ...] = ()
    """Looks at the members alone, in between."""

    @property
    def seconds(self) -> float:
        """The time between the two."""
        return max(0.001, (self.last.at_ms - self.first.at_ms) / 1000)

    def before(self, at: Partition) -> PartitionFacts:
        """The partition at the first look; without offsets when the group did not read it then."""
        return self.first.partitions.get(at, PartitionFacts())
