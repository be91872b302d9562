"""RaftConfig: the identity of this replica, its listeners, and the ``controller.quorum.*`` options."""

from __future__ import annotations

import sys
from typing import NamedTuple

from tidelog.raft.voters import ReplicaKey
from tidelog.records.control import Endpoint, Voter

NEVER = sys.maxsize
"""A deadline that never comes."""


class RaftConfig(NamedTuple):
    """Times in ms, sizes in bytes."""

    key: ReplicaKey
    cluster_id: str
    endpoints: tuple[Endpoint, ...] = ()
    """This node's controller listeners, in the order of ``listeners``."""
    bootstrap: tuple[tuple[str, int], ...] = ()
    """``controller.quorum.bootstrap.servers``: where to ask for the leader."""
    can_vote: bool = True
    """Whether the process is a controller; other processes only observe."""
    auto_join: bool = False
    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    answer_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 1 << 20
    snapshot_max_bytes: int = 1 << 20
    first_listener: str = ""
    """The first of ``controller.listener.names``; empty: that of the first endpoint."""

    @property
    def voter(self) -> Voter:
        """This replica's entry in the voter set, as it should be."""
        return Voter(self.key.id, self.key.directory_id, self.endpoints)

    @property
    def listener(self) -> str:
        """The listener on which this node reaches controllers. While listeners change, others may choose another (KIP-853)."""
        return self.first_listener or (self.endpoints[0].name if self.endpoints else "CONTROLLER")
