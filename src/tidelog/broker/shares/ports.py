"""What share partitions need of the broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tidelog.broker.ports import OtherBrokers, Runtime
    from tidelog.config.resolve import BrokerConfig
    from tidelog.coordinator.shards import Shards
    from tidelog.coordinator.share.coordinator import ShareCoordinator
    from tidelog.metadata.image import ClusterImage


class ShareHost(Protocol):
    """The broker."""

    @property
    def node_id(self) -> int: ...
    @property
    def config(self) -> BrokerConfig: ...
    @property
    def image(self) -> ClusterImage: ...
    @property
    def runtime(self) -> Runtime: ...
    @property
    def others(self) -> OtherBrokers: ...
    @property
    def shares(self) -> Shards[ShareCoordinator]: ...
    @property
    def create_share_topic(self) -> Callable[[], None]:
        """Creates the topic of the share coordinators in the background."""
        ...
