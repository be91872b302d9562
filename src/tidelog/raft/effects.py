"""The effects of the Raft machine: a list of actions, to be done in this order.

Each ``Persist`` must be synced before the first later ``Send`` or reply leaves. Changes of the log come before messages about
them. The runner reports when they are synced (``RaftMachine.log_synced``), and the machine waits for that where it matters: a
leader does not count its own log, and a follower does not fetch further, before the data is on disk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tidelog.model.ids import NO_BROKER
from tidelog.model.machine import Token
from tidelog.protocol.messages.fetch import FetchResponse
from tidelog.protocol.messages.fetch_snapshot import FetchSnapshotResponse
from tidelog.raft.quorum_state import QuorumState
from tidelog.raft.snapshots import SnapshotId
from tidelog.records.control import ControlType


class Node(NamedTuple):
    """The target of a request. Ids below -1 are addresses to ask (``controller.quorum.bootstrap.servers``), not nodes."""

    id: int
    host: str
    port: int


class Persist(NamedTuple):
    """Replace and sync the quorum-state file."""

    state: QuorumState


class Truncate(NamedTuple):
    """Cut the end of the log at ``offset``, then report what is synced."""

    offset: int
    generation: int


class AppendControl(NamedTuple):
    """Append these control records as one batch, as the leader, then sync."""

    base_offset: int
    epoch: int
    records: tuple[tuple[ControlType, bytes], ...]
    generation: int


class AppendFetched(NamedTuple):
    """Append these batches as they are, then sync."""

    base_offset: int
    data: bytes
    generation: int


class ForgetLoss(NamedTuple):
    """The log has everything again that its damage took: remove ``tidelog-lost-end``, and sync that."""


class BeginSnapshot(NamedTuple):
    """Prepare for a snapshot from the leader; parts of an earlier attempt are removed."""

    snapshot_id: SnapshotId


class StoreSnapshotPart(NamedTuple):
    """Write this part of the snapshot."""

    snapshot_id: SnapshotId
    position: int
    data: bytes


class InstallSnapshot(NamedTuple):
    """The snapshot is complete: check it, sync it under its name, and continue the log after it (``snapshot_installed``)."""

    snapshot_id: SnapshotId
    size: int


class Send(NamedTuple):
    """A request to another node; its answer comes back with ``request_id``."""

    request_id: int
    to: Node
    request: Any


class Reply(NamedTuple):
    """The answer to a waiting request."""

    token: Token
    response: Any


class ReplyRecords(NamedTuple):
    """The answer to a Fetch: whole batches from ``offset`` on are put into its only partition."""

    token: Token
    response: FetchResponse
    offset: int
    max_bytes: int


class ReplySnapshotPart(NamedTuple):
    """The answer to a FetchSnapshot: bytes of the file are put into its only partition."""

    token: Token
    response: FetchSnapshotResponse
    snapshot_id: SnapshotId
    position: int
    max_bytes: int


class LeaderChanged(NamedTuple):
    """The leader (-1: unknown) of an epoch, and its first offset if it is this replica."""

    leader_id: int = NO_BROKER
    epoch: int = 0
    epoch_start: int = -1


class HighWatermarkMoved(NamedTuple):
    """Everything below is committed."""

    offset: int


class Inbound(NamedTuple):
    """A request that waits for a ``Reply``: its token, its version, and the listener on which it came."""

    token: Token
    version: int
    listener: str


Effect = (
    Persist
    | Truncate
    | AppendControl
    | AppendFetched
    | ForgetLoss
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
    """Collects effects. Consecutive Persists are merged."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[Effect] = []

    def add(self, effect: Effect) -> None:
        if isinstance(effect, Persist) and self.items and isinstance(self.items[-1], Persist):
            self.items.pop()
        self.items.append(effect)

    def take(self) -> list[Effect]:
        """Returns and clears the collected effects."""
        taken, self.items = self.items, []
        return taken
