"""Replication as this broker runs it: who is followed over which connection, and what the controller hears of ISRs.

``follow`` is called after each change of the metadata that this node applied: fetchers are started, changed and ended as the
partitions here say.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.broker.context import Controller
from tidelog.config.resolve import BrokerConfig
from tidelog.metadata.image import ClusterImage
from tidelog.replication.replica_manager import ReplicaManager
from tidelog.server.channels import Channels
from tidelog.server.runtime import LoopRuntime


class Replication:
    """``broker_epoch`` is asked each time: a broker that registers again gets another one."""

    def __init__(
        self,
        replicas: ReplicaManager,
        controller: Controller,
        channels: Channels,
        runtime: LoopRuntime,
        config: BrokerConfig,
        broker_epoch: Callable[[], int],
    ) -> None:
        self.replicas = replicas
        self._controller = controller
        self._channels = channels
        self._runtime = runtime
        self._config = config
        self._broker_epoch = broker_epoch
        self._running = False

    def start(self) -> None:
        """Followers fetch, and ISRs are watched, from now on."""
        self._running = True

    def follow(self, image: ClusterImage) -> None:
        """``image`` is the metadata by now, and the replicas have taken it over."""

    async def stop(self) -> None:
        """Nothing is fetched any more; what was fetched is appended or dropped."""
        self._running = False
