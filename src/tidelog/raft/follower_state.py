"""FollowerState: the leader that a replica follows, when it last answered, and what is being fetched."""

from __future__ import annotations

from typing import NamedTuple

from tidelog.raft.snapshots import SnapshotId
from tidelog.raft.voters import ReplicaKey
from tidelog.records.control import Endpoint


class FetchingSnapshot(NamedTuple):
    """A snapshot being fetched from the leader; bytes below ``position`` are there."""

    snapshot_id: SnapshotId
    position: int = 0


class FollowerState(NamedTuple):
    """Times in ms. ``deadline_ms``: when the leader counts as dead."""

    leader_id: int
    leader_endpoints: tuple[Endpoint, ...]
    deadline_ms: int
    update_voter_ms: int
    """When to check that the voter set has the right data about this replica (KIP-853)."""
    has_fetched: bool = False
    """Once it has fetched, it grants no pre-vote, because the leader is alive."""
    snapshot: FetchingSnapshot | None = None
    told_leader: bool = False
    """With kraft.version 0: the leader knows our endpoints and versions."""

    def fetched(self, now_ms: int, fetch_timeout_ms: int) -> FollowerState:
        """The leader answered."""
        return self._replace(deadline_ms=now_ms + fetch_timeout_ms, has_fetched=True)

    def leader_gone(self, deadline_ms: int) -> FollowerState:
        """The leader resigned or is unreachable: an election is due at ``deadline_ms``."""
        return self._replace(deadline_ms=deadline_ms, has_fetched=False)

    def grants(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        """A leader is known: no vote is granted, and a pre-vote only if the leader has never answered."""
        return pre_vote and up_to_date and not self.has_fetched
