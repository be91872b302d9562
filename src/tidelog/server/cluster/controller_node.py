"""A node that is only a controller (``process.roles=controller``): a member of the metadata quorum with its listener.

Start: bind addresses, lock the log dir, open the metadata log and the listener, then join the quorum, so that it votes only when
it can be reached. Stop: a leader hands over, no new connections are accepted, files are closed, locks released.
"""

from __future__ import annotations

import asyncio
import logging

from tidelog.config.listeners import address_text
from tidelog.config.resolve import BrokerConfig
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import ClusterImage
from tidelog.model.errors import ConfigError, StorageFailure
from tidelog.model.ids import Uuid
from tidelog.model.ports import FileSystem
from tidelog.raft.voters import ReplicaKey
from tidelog.server.cluster.metadata_replica import MetadataReplica
from tidelog.server.cluster.raft_runner import RaftRunner
from tidelog.server.disk import DiskFileSystem
from tidelog.server.runtime import LoopRuntime
from tidelog.server.serving.listener import Listener
from tidelog.server.upkeep import settings
from tidelog.server.upkeep.monitoring import Monitoring
from tidelog.server.upkeep.node_metrics import of_controller
from tidelog.storage.log_dir import LogDir, check_same_owner

log = logging.getLogger(__name__)


class ControllerNode:
    def __init__(self, config: BrokerConfig, runtime: LoopRuntime, fs: FileSystem | None = None) -> None:
        self.config = config
        self.runtime = runtime
        self.fs = fs or DiskFileSystem()
        self.failed = asyncio.Event()
        """Set when the node cannot continue: its disk failed, or the quorum has lost committed records."""
        self.monitoring = Monitoring(self)

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
        or UnsupportedFeatureLevel when that fails."""
        config, runtime = self.config, self.runtime
        sockets = {p.listener: runtime.bind(p.listener, p.host, p.port) for p in config.controller_endpoints}
        try:
            await self.monitoring.listen()
            self._open_dir()
            ports = {name: each.getsockname()[1] for name, each in sockets.items()}
            self.replica = MetadataReplica(config, runtime, self._quorum_failed)
            key = ReplicaKey(config.node_id, Uuid(self._dir.directory_id))
            self.replica.open(self.fs, self._dir.path, key, self.cluster_id, ports=ports)
            self._follow_settings(self.replica.image)
            self.replica.add_listener(self._committed)
            self.replica.listen(sockets)
            self.monitoring.serve(of_controller(self.replica, self._dir, self.fs), [self._dir], self._why_not_ready)
        except BaseException:
            for listener in self.replica.listeners if hasattr(self, "replica") else ():
                listener.stop_accepting()
            await self.monitoring.stop()
            for listening in sockets.values():
                listening.close()
            if hasattr(self, "_dir"):
                self._dir.release()
            raise
        self.replica.start()

    async def stop(self) -> None:
        """Stops cleanly."""
        await self.monitoring.stop()
        await self.replica.stop()
        self._dir.release()

    def _why_not_ready(self) -> str | None:
        return None if self.runner.leader_id >= 0 else "no leader of the metadata quorum is known"

    def ready_line(self, seconds: float) -> str:
        """Printed once the controller can be reached."""
        points = self.config.controller_endpoints
        where = ", ".join(f"{each.listener}://{address_text(each.host, self.ports[each.listener])}" for each in points)
        return f"tidelog is ready: controller {self.config.node_id} at {where}, started in {seconds:.2f} s"

    def _open_dir(self) -> None:
        """Opens only the metadata log's directory: a controller has no other data."""
        path = (self.config.metadata_log_dir or settings.log_dirs(self.config)[0]).rstrip("/") or "/"
        self._dir = LogDir(self.fs, path)
        try:
            self._dir.open()
            self.cluster_id = check_same_owner([self._dir], self.config.node_id, None)
            self._dir.adopt(self.cluster_id, self.config.node_id, self.runtime.rng)
        except OSError as problem:
            raise StorageFailure(path, f"cannot be opened: {problem}") from problem

    def _committed(self, old: ClusterImage, new: ClusterImage, delta: ClusterDelta | None) -> None:
        node_id = self.config.node_id
        if old.cluster_configs != new.cluster_configs or old.broker_configs(node_id) != new.broker_configs(node_id):
            self._follow_settings(new)

    def _follow_settings(self, image: ClusterImage) -> None:
        """Applies dynamic settings; the controller's decisions depend on them."""
        try:
            self.config.apply_dynamic(image.cluster_configs, image.broker_configs(self.config.node_id))
        except ConfigError as error:
            log.error("dynamic settings are not taken over: %s", error)
        else:
            self.replica.member.set_settings(settings.controller_settings(self.config))

    def _quorum_failed(self, problem: Exception) -> None:
        log.critical("the metadata quorum's replica failed, the node stops: %s", problem)
        self.failed.set()
