"""What the Raft machine wants done: a list of effects, to be done one after another, in this order.

Before the first ``Send`` or reply of a list leaves, each ``Persist`` before it is synced. The log's changes come before what
speaks of them; whether they are synced is reported back (``RaftMachine.log_synced``), and the machine itself waits for that
where it matters: a leader does not count itself, a follower does not ask for more, before their disks have what they have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidelog.model.ids import NO_BROKER
from tidelog.model.machine import Token
from tidelog.protocol.messages.fetch import FetchResponse
from tidelog.protocol.messages.fetch_snapshot import FetchSnapshotResponse
from tidelog.raft.quorum_state import QuorumState
from tidelog.raft.snapshots import SnapshotId
from tidelog.records.control import ControlType


@dataclass(frozen=True, slots=True)
class Node:
    """Where a request goes. Ids below -1 are places to ask (``controller.quorum.bootstrap.servers``), not nodes."""

    id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Persist:
    """Replace the quorum-state file, and sync it."""

    state: QuorumState


@dataclass(frozen=True, slots=True)
class Truncate:
    """Cut the log's end at ``offset``, then report what is synced."""

    offset: int
    generation: int


@dataclass(frozen=True, slots=True)
class AppendControl:
    """Append these control records as one batch, as the leader, then sync."""

    base_offset: int
    epoch: int
    records: tuple[tuple[ControlType, bytes], ...]
    generation: int


@dataclass(frozen=True, slots=True)
class AppendFetched:
    """Append these batches as they are, then sync."""

    base_offset: int
    data: bytes
    generation: int


@dataclass(frozen=True, slots=True)
class BeginSnapshot:
    """Make room for a snapshot that comes from the leader; parts of an earlier attempt go."""

    snapshot_id: SnapshotId


@dataclass(frozen=True, slots=True)
class StoreSnapshotPart:
    """Write this piece of it."""

    snapshot_id: SnapshotId
    position: int
    data: bytes


@dataclass(frozen=True, slots=True)
class InstallSnapshot:
    """All of it is there: check it, sync it under its name, and let the log go on behind it (``snapshot_installed``)."""

    snapshot_id: SnapshotId
    size: int


@dataclass(frozen=True, slots=True)
class Send:
    """A request to another node; its answer comes back with ``request_id``."""

    request_id: int
    to: Node
    request: Any


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a waiting request."""

    token: Token
    response: Any


@dataclass(frozen=True, slots=True)
class ReplyRecords:
    """The same, to a Fetch: records from ``offset`` on, whole batches, are put into its only partition."""

    token: Token
    response: FetchResponse
    offset: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class ReplySnapshotPart:
    """The same, to a FetchSnapshot: bytes of the file are put into its only partition."""

    token: Token
    response: FetchSnapshotResponse
    snapshot_id: SnapshotId
    position: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """Who leads (-1: nobody known) in which epoch, and from which offset on if it is this replica."""

    leader_id: int = NO_BROKER
    epoch: int = 0
    epoch_start: int = -1


@dataclass(frozen=True, slots=True)
class HighWatermarkMoved:
    """Everything below is committed."""

    offset: int


@dataclass(frozen=True, slots=True)
class Inbound:
    """A request that waits for a ``Reply``: its token, its version, and the listener on which it came."""

    token: Token
    version: int
    listener: str


Effect = (
    Persist
    | Truncate
    | AppendControl
    | AppendFetched
    | BeginSnapshot
    | StoreSnapshotPart
    | InstallSnapshot
    | Send
    | Reply
    | ReplyRecords
    | ReplySnapshotPart
    | LeaderChanged
    | HighWatermarkMoved
)


class Effects:
    """Collects them. What is persisted twice in a row is persisted once."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[Effect] = []

    def add(self, effect: Effect) -> None:
        if isinstance(effect, Persist) and self.items and isinstance(self.items[-1], Persist):
            self.items.pop()
        self.items.append(effect)

    def take(self) -> list[Effect]:
        """All that was collected."""
        taken, self.items = self.items, []
        return taken
