"""FollowerState: whom a replica follows, since when it has not heard of it, and what it is fetching."""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.raft.snapshots import SnapshotId
from tidelog.raft.voters import ReplicaKey
from tidelog.records.control import Endpoint


@dataclass(slots=True)
class FetchingSnapshot:
    """A snapshot that is coming from the leader: what is there is below ``position``."""

    snapshot_id: SnapshotId
    position: int = 0


@dataclass(slots=True)
class FollowerState:
    """Times in ms. ``deadline_ms``: when the leader counts as gone."""

    leader_id: int
    leader_endpoints: tuple[Endpoint, ...]
    deadline_ms: int
    update_voter_ms: int
    """When it is looked at whether the voter set says the truth of this replica (KIP-853)."""
    has_fetched: bool = False
    """Once it has, it grants no pre-vote: the leader is alive."""
    snapshot: FetchingSnapshot | None = None
    told_leader: bool = False
    """With kraft.version 0: the leader knows our endpoints and versions."""

    def fetched(self, now_ms: int, fetch_timeout_ms: int) -> None:
        """The leader answered."""
        self.deadline_ms = now_ms + fetch_timeout_ms
        self.has_fetched = True

    def grants(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        """A leader is known: no vote; a pre-vote only if nothing was ever heard from it."""
        return pre_vote and up_to_date and not self.has_fetched
