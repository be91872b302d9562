"""What the controller must know of this broker's log dirs: which have failed, and in which one a replica is (KIP-858)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from tidelog.broker import controller_reports
from tidelog.broker.ports import Controller
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import KafkaError
from tidelog.model.ids import Uuid
from tidelog.replication.partition import Partition
from tidelog.server.cluster.broker_lifecycle import BrokerLife
from tidelog.server.log_loading import OpenLogs
from tidelog.server.runtime import LoopRuntime

log = logging.getLogger(__name__)


def cordoned(config: BrokerConfig, logs: OpenLogs) -> list[bytes]:
    """The ids of the log dirs that take no new replicas (KIP-1066)."""
    named = {path.rstrip("/") or "/" for path in config.cordoned_log_dirs}
    return [Uuid(each.directory_id) for each in logs.manager.dirs if each.meta is not None and named & {"*", each.path}]


class LogDirReports:
    """Created before the registration, which names the dirs that are online then. ``fatal`` is called when the node cannot
    continue: no dir is left, or the one of the metadata log has failed."""

    def __init__(
        self,
        config: BrokerConfig,
        logs: OpenLogs,
        controller: Controller,
        life: BrokerLife,
        runtime: LoopRuntime,
        fatal: Callable[[], None],
    ) -> None:
        self._node_id = config.node_id
        self._logs = logs
        self._controller = controller
        self._life = life
        self._runtime = runtime
        self._fatal = fatal
        self._known_offline = {each.path for each in logs.manager.dirs if not each.online}

    @property
    def several(self) -> bool:
        """Whether there is more than one log dir, so that the controller must know where replicas are."""
        return len(self._logs.manager.dirs) > 1

    def check(self) -> None:
        """Reports newly failed log dirs; called periodically."""
        manager = self._logs.manager
        offline = [each for each in manager.dirs if not each.online and each.path not in self._known_offline]
        if not offline:
            return
        self._known_offline.update(each.path for each in offline)
        if not manager.online_dirs() or self._logs.metadata_dir.path in self._known_offline:
            log.critical("log dir %s failed, and the node cannot go on without it", offline[0].path)
            self._fatal()
            return
        self._life.report_offline([Uuid(each.directory_id) for each in offline if each.meta is not None])

    def report_places(self, partitions: Iterable[Partition]) -> None:
        """Reports replicas that are in another log dir than the metadata says."""
        where = []
        for partition in partitions:
            log_dir = self._logs.manager.dir_of(partition.topic_partition) if partition.log is not None else None
            if log_dir is not None:
                where.append((partition.topic_id, partition.index, Uuid(log_dir.directory_id)))
        placement = controller_reports.placed_elsewhere(self._logs.served.image, self._node_id, where)
        if placement:
            self._runtime.spawn(self._assign(placement), "reporting in which log dirs replicas are")

    async def _assign(self, placement: controller_reports.Placement) -> None:
        try:
            await controller_reports.assign_to_dirs(self._controller, self._node_id, self._life.epoch, placement)
        except KafkaError as error:
            log.warning("log dirs of replicas were not reported to the controller, retrying: %s", error)
