"""What share partitions need of the broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from tidelog.broker.ports import Node

if TYPE_CHECKING:
    from tidelog.broker.ports import OtherBrokers
    from tidelog.coordinator.shards import Shards
    from tidelog.coordinator.share.coordinator import ShareCoordinator
    from tidelog.replication.replica_manager import ReplicaManager


class ShareHost(Node, Protocol):
    """The broker."""

    @property
    def replicas(self) -> ReplicaManager: ...
    @property
    def others(self) -> OtherBrokers: ...
    @property
    def shares(self) -> Shards[ShareCoordinator]: ...
    @property
    def create_share_topic(self) -> Callable[[], None]:
        """Creates the topic of the share coordinators in the background."""
        ...
