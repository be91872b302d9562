"""A node that is only a controller (``process.roles=controller``): a member of the metadata quorum with its listener.

Start: bind addresses, lock the log dir, open the metadata log and the listener, then join the quorum, so that it votes only when
it can be reached. Stop: a leader hands over, no new connections are accepted, files are closed, locks released.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.config.listeners import address_text
from tidelog.config.resolve import BrokerConfig
from tidelog.controller.quorum_member import QuorumMember
from tidelog.metadata.image import ClusterImage
from tidelog.model.errors import ConfigError, StorageFailure
from tidelog.model.ports import FileSystem
from tidelog.server import component_settings
from tidelog.server.cluster.metadata_replica import MetadataReplica
from tidelog.server.cluster.quorum_opening import MetadataDir, open_member
from tidelog.server.cluster.raft_runner import RaftRunner
from tidelog.server.disk import DiskFileSystem
from tidelog.server.runtime import LoopRuntime
from tidelog.server.serving.listener import Listener
from tidelog.server.upkeep.unmonitored import monitoring_of
from tidelog.storage.log_dir import LogDir, check_same_owner

if TYPE_CHECKING:
    from tidelog.metrics.registry import Registry
    from tidelog.server.upkeep.facts_page import FactsPage

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ControllerParts:
    """What a started controller consists of."""

    log_dir: LogDir
    replica: MetadataReplica


class ControllerNode:
    def __init__(self, config: BrokerConfig, runtime: LoopRuntime, fs: FileSystem | None = None) -> None:
        self.config = config
        self.runtime = runtime
        self.failed = asyncio.Event()
        """Set when the node cannot continue: its disk failed, or the quorum has lost committed records."""
        self.monitoring = monitoring_of(self)
        self._fs = fs or DiskFileSystem()
        self._parts: ControllerParts | None = None

    @property
    def parts(self) -> ControllerParts:
        """The parts of a controller that has started. RuntimeError before that."""
        if self._parts is None:
            raise RuntimeError("the controller has not started")
        return self._parts

    @property
    def member(self) -> QuorumMember | None:
        """This node's member of the metadata quorum; None before the start."""
        return None if self._parts is None else self._parts.replica.member

    @property
    def replica(self) -> MetadataReplica:
        """This node's part in the metadata quorum."""
        return self.parts.replica

    @property
    def listeners(self) -> list[Listener]:
        return self.replica.listeners

    @property
    def runner(self) -> RaftRunner:
        return self.replica.runner

    @property
    def ports(self) -> dict[str, int]:
        """The port of each listener, by listener name."""
        return {listener.name: listener.port for listener in self.listeners}

    async def start(self) -> None:
        """Returns when the listener is open and the node looks for the quorum. ConfigError, StorageFailure, MetadataLogError
        or UnsupportedFeatureLevel when that fails; then all that was opened is closed."""
        async with AsyncExitStack() as undo:
            parts = await self._start(undo)
            undo.pop_all()
        self._parts = parts
        parts.replica.start()

    async def _start(self, undo: AsyncExitStack) -> ControllerParts:
        config, runtime = self.config, self.runtime
        sockets = {p.listener: runtime.bind(p.listener, p.host, p.port) for p in config.controller_endpoints}
        for each in sockets.values():
            undo.callback(each.close)
        undo.push_async_callback(self.monitoring.stop)
        await self.monitoring.listen()
        log_dir, cluster_id = self._open_dir(undo)
        ports = {name: each.getsockname()[1] for name, each in sockets.items()}
        where = MetadataDir(self._fs, log_dir.path, log_dir.directory_id, cluster_id)
        replica = MetadataReplica(
            config, runtime, open_member(config, runtime, where, ports=ports), cluster_id, self._quorum_failed
        )
        self._follow_settings(replica, replica.image)
        if replica.tls is not None:
            replica.tls.adopt()
        replica.add_listener(lambda old, new, delta: self._committed(replica, old, new))
        replica.listen(sockets)
        for listener in replica.listeners:
            undo.callback(listener.stop_accepting)
        self.monitoring.serve(
            lambda: self._metrics(replica, log_dir), lambda: self._facts(replica), [log_dir], lambda: _why_not_ready(replica)
        )
        return ControllerParts(log_dir, replica)

    async def stop(self) -> None:
        """Stops cleanly."""
        await self.monitoring.stop()
        await self.parts.replica.stop()
        self.parts.log_dir.release()

    def ready_line(self, seconds: float) -> str:
        """Printed once the controller can be reached."""
        points = self.config.controller_endpoints
        where = ", ".join(f"{each.listener}://{address_text(each.host, self.ports[each.listener])}" for each in points)
        return f"tidelog is ready: controller {self.config.node_id} at {where}, started in {seconds:.2f} s"

    def _metrics(self, replica: MetadataReplica, log_dir: LogDir) -> Registry:
        from tidelog.server.upkeep.node_metrics import of_controller  # Only a node that is monitored.

        return of_controller(replica, log_dir, self._fs)

    def _facts(self, replica: MetadataReplica) -> FactsPage:
        from tidelog.server.upkeep.facts_page import FactsPage  # Only a node that is monitored.
        from tidelog.server.upkeep.node_facts import NodeFacts

        return FactsPage(NodeFacts(self.runtime, replica, lambda: replica.listeners, None), self.runtime, replica.access)

    def _open_dir(self, undo: AsyncExitStack) -> tuple[LogDir, str]:
        """Opens only the metadata log's directory: a controller has no other data. Returns it with the cluster id."""
        path = (self.config.metadata_log_dir or component_settings.log_dirs(self.config)[0]).rstrip("/") or "/"
        log_dir = LogDir(self._fs, path)
        undo.callback(log_dir.release)
        try:
            log_dir.open()
            cluster_id = check_same_owner([log_dir], self.config.node_id, None)
            log_dir.adopt(cluster_id, self.config.node_id, self.runtime.rng)
        except OSError as problem:
            raise StorageFailure(path, f"cannot be opened: {problem}") from problem
        return log_dir, cluster_id

    def _committed(self, replica: MetadataReplica, old: ClusterImage, new: ClusterImage) -> None:
        node_id = self.config.node_id
        if old.cluster_configs != new.cluster_configs or old.broker_configs(node_id) != new.broker_configs(node_id):
            self._follow_settings(replica, new)

    def _follow_settings(self, replica: MetadataReplica, image: ClusterImage) -> None:
        """Applies dynamic settings; the controller's decisions depend on them."""
        try:
            self.config.apply_dynamic(image.cluster_configs, image.broker_configs(self.config.node_id))
        except ConfigError as error:
            log.error("dynamic settings are not taken over: %s", error)
        else:
            replica.member.set_settings(component_settings.controller_settings(self.config))
            replica.follow_limits()
            if replica.tls is not None and self._parts is not None:
                replica.tls.follow()

    def _quorum_failed(self, problem: Exception) -> None:
        log.critical("the metadata quorum's replica failed, the node stops: %s", problem)
        self.failed.set()


def _why_not_ready(replica: MetadataReplica) -> str | None:
    return None if replica.runner.leader_id >= 0 else "no leader of the metadata quorum is known"
