"""A broker node: assembles all components, starts them in order, and stops them in order.

Start: bind addresses, lock the log dirs, open the metadata log and the controller listener, register, read this broker's
metadata, load partition logs, open listeners; then the controller unfences the broker. Stop: move leaderships away, accept no new
connections, answer requests in flight, hand over the controller, flush logs and mark them clean, release locks.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any

from tidelog.broker import lifecycle
from tidelog.broker.api import Route
from tidelog.broker.apis.topics.metadata_bytes import Answers
from tidelog.broker.node import Broker
from tidelog.broker.producer_ids import ProducerIds
from tidelog.broker.table import BROKER_APIS
from tidelog.broker.transaction_markers import write_marker
from tidelog.config.listeners import EndPoint
from tidelog.config.resolve import BrokerConfig
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import EMPTY_IMAGE, ClusterImage
from tidelog.model.errors import ConfigError, KafkaError, StorageFailure
from tidelog.model.ids import Uuid, random_uuid
from tidelog.model.ports import FileSystem
from tidelog.protocol.messages.broker_registration import BrokerRegistrationRequest
from tidelog.raft.format import FormatRequest, format_dirs
from tidelog.raft.voters import ReplicaKey
from tidelog.replication.partition import Partition
from tidelog.replication.replica_manager import ReplicaManager
from tidelog.server.cluster.broker_life import BrokerLife
from tidelog.server.cluster.channels import Channels
from tidelog.server.cluster.controller_link import ControllerLink
from tidelog.server.cluster.coordinators import Coordinators
from tidelog.server.cluster.metadata_replica import MetadataReplica
from tidelog.server.cluster.other_brokers import ChannelsToBrokers
from tidelog.server.disk import DiskFileSystem
from tidelog.server.replication.creating import Creating
from tidelog.server.replication.replica_fetching import Replication
from tidelog.server.runtime import LoopRuntime
from tidelog.server.serving.listener import ConnectionCount, Listener
from tidelog.server.upkeep import settings
from tidelog.server.upkeep.compaction import Compaction
from tidelog.server.upkeep.housekeeping import Housekeeping
from tidelog.server.upkeep.monitoring import Monitoring
from tidelog.server.upkeep.node_metrics import on_loop
from tidelog.storage.checkpoints import META_PROPERTIES
from tidelog.storage.log_config import LogConfig
from tidelog.storage.log_dir import find_partition_dir, previous_broker_epoch
from tidelog.storage.log_manager import LogManager

log = logging.getLogger(__name__)

DRAIN_S = 5.0
"""How long requests in flight may take when the node stops, in seconds; longer than a usual long poll."""
LOAD_THREADS = 4
CLOSE_THREADS = 16
ACCEPT_WITHIN_S = 2.0
"""How long clients of a starting broker wait for it to be unfenced; after that they are served by a fenced broker."""
TELL_DIRS_MS = 10_000
PROGRESS_MS = 5000
"""How often a long recovery logs its progress."""


class Node:
    """A broker process, with its controller where process.roles says so."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: LoopRuntime,
        fs: FileSystem | None = None,
        *,
        apis: Mapping[int, Route] = BROKER_APIS,
    ) -> None:
        self.apis = apis
        self.config = config
        self.runtime = runtime
        self.fs = fs or DiskFileSystem()
        self.listeners: list[Listener] = []
        self.failed = asyncio.Event()
        """Set when the node cannot continue: the disk of its metadata log failed, or all of its log dirs did."""
        self.channels = Channels(runtime, str(config.node_id))
        self.replica = MetadataReplica(config, runtime, self._metadata_failed)
        self.controller = ControllerLink(self.replica, self.channels, runtime, config.controller_socket_timeout_ms)
        self.life = BrokerLife(config, self.controller, self.replica, runtime)
        self.life.cordoned = self._cordoned
        self._failure: Exception | None = None
        self._image = EMPTY_IMAGE
        self._serving = False
        self._stopping = False
        self._in_flight: set[asyncio.Future[None]] = set()
        self._known_offline: set[str] = set()
        self.monitoring = Monitoring(self)

    @property
    def ports(self) -> dict[str, int]:
        """The port of each client listener, by listener name."""
        return {listener.name: listener.port for listener in self.listeners}

    async def start(self) -> None:
        """Returns when clients are served. ConfigError, StorageFailure, MetadataLogError or UnsupportedFeatureLevel when the
        node cannot start; KafkaError when the cluster refuses this broker."""
        config, runtime = self.config, self.runtime
        sockets = {p.listener: runtime.bind(p.listener, p.host, p.port) for p in config.endpoints}
        try:
            await self.monitoring.listen()
            self._open_logs()
            ports = {name: each.getsockname()[1] for name, each in sockets.items()}
            advertised = config.advertised(ports, _hostname())
            self._start_metadata(ports, {p.listener: sockets[p.listener] for p in config.controller_endpoints})
            await self._checked(self.life.register(self._registration(random_uuid(runtime.rng), advertised)))
            self._image = self.replica.image
            config.apply_dynamic(self._image.cluster_configs, self._image.broker_configs(config.node_id))
            await self._checked(self._load_logs())
            self._check_dirs()
            self._make_broker()
            self.monitoring.serve(on_loop(self), self.logs.dirs, self.life.why_not_ready)
            self._listen({p.listener: sockets[p.listener] for p in config.broker_endpoints})
            accepting = runtime.loop.call_later(ACCEPT_WITHIN_S, self._accept)
            try:
                await self._checked(self.life.serve())
            finally:
                accepting.cancel()
            self._accept()
        except BaseException:
            await self._abandon(sockets.values())
            raise
        self._tell_dirs(self.broker.replicas.partitions())
        self.housekeeping = Housekeeping(self.broker, runtime)
        self.housekeeping.start()
        self.housekeeping.every("log dirs", 1000, self._watch_dirs)
        if len(self.logs.dirs) > 1:
            # The controller may have lost an earlier report when it failed.
            self.housekeeping.every("log dirs told", TELL_DIRS_MS, lambda: self._tell_dirs(self.broker.replicas.partitions()))
        self.compaction = Compaction(self.broker.replicas, config, runtime)
        self.compaction.start()

    async def _checked(self, step: Coroutine[Any, Any, None]) -> None:
        """Runs a step of the start; fails when the metadata log has failed."""
        await step
        if self._failure is not None:
            raise self._failure

    async def _abandon(self, sockets: Iterable[socket.socket]) -> None:
        """Cleans up after a failed start."""
        self._stopping = True
        self.life.stop()
        for listener in self.listeners:
            listener.stop_accepting()
        if self._serving:
            self.creating.stop()
            await self.replication.stop()
            self.coordinators.stop()
        if hasattr(self.replica, "member"):
            await self.replica.stop()
        self.channels.close()
        await self.monitoring.stop()
        for listening in sockets:
            listening.close()
        if hasattr(self, "logs"):
            for log_dir in self.logs.dirs:
                log_dir.release()

    async def stop(self) -> None:
        """Stops the components in order; errors are logged and the stop continues."""
        self._stopping = True
        self.creating.stop()
        self.housekeeping.stop()
        await self.compaction.stop()
        await self.monitoring.stop()
        if not self.failed.is_set():
            await self.life.shut_down()
        for listener in self.listeners:
            listener.stop_accepting()
        self.coordinators.stop()
        await asyncio.gather(*(listener.drain(DRAIN_S) for listener in self.listeners))
        await self.replication.stop()
        self.life.stop()
        try:
            await self.replica.stop()
        except StorageFailure as failure:
            log.error("the metadata log was not closed in order: %s", failure)
        self.channels.close()
        self.broker.replicas.moves.stop(self.runtime.even_ms())
        while self._in_flight:
            # A log with a flush in flight cannot be closed; the end of one flush may start the next.
            await asyncio.wait(self._in_flight)
        await self.runtime.run_blocking(self._close_logs)

    def _close_logs(self) -> None:
        """Blocks. Many concurrent syncs cost a file system little more than one."""
        jobs = self.logs.closing_jobs()
        self.runtime.in_parallel([job.run for _, job in jobs], CLOSE_THREADS, "close")
        self.logs.finish_closing(jobs, self.life.epoch)

    # Starting

    def _open_logs(self) -> None:
        config, dirs = self.config, settings.log_dirs(self.config)
        if config.embedded and not any(self.fs.exists(f"{path}/{META_PROPERTIES}") for path in dirs):
            self._format(dirs)
        self.logs = LogManager(
            self.fs,
            dirs,
            node_id=config.node_id,
            rng=self.runtime.rng,
            config_for=self._log_config,
            producer_expiration_ms=config.producer_id_expiration_ms,
        )
        self.logs.open_dirs()

    def _format(self, dirs: tuple[str, ...]) -> None:
        """Formats a new cluster of one node, but only without ``process.roles``. Other nodes are formatted by their operator,
        so that a mistyped path does not start a second cluster."""
        request = FormatRequest(dirs, self.config.node_id, metadata_log_dir=self.config.metadata_log_dir or "")
        try:
            for path in dirs:
                if (found := find_partition_dir(self.fs, path)) is not None:
                    raise ConfigError(
                        f"log.dirs: {path} has no {META_PROPERTIES}, but holds {found}: a new cluster would lose it. "
                        f"Restore {META_PROPERTIES}, or move the directory away."
                    )
            result = format_dirs(self.fs, request, rng=self.runtime.rng, now_ms=self.runtime.now_ms())
        except OSError as problem:
            raise StorageFailure(dirs[0], f"cannot be formatted: {problem}") from problem
        log.info("formatted %s for a new cluster, %s", ", ".join(dirs), result.cluster_id)

    def _start_metadata(self, ports: Mapping[str, int], sockets: Mapping[str, socket.socket]) -> None:
        config = self.config
        wanted = (config.metadata_log_dir or self.logs.dirs[0].path).rstrip("/") or "/"
        metadata_dir = next((each for each in self.logs.dirs if each.path == wanted), None)
        if metadata_dir is None:
            raise ConfigError(f"metadata.log.dir is {wanted}, which is not among log.dirs. Name one of them.")
        if metadata_dir.failure is not None:
            raise metadata_dir.failure
        assert self.logs.cluster_id is not None
        self._metadata_dir = metadata_dir.path
        key = ReplicaKey(config.node_id, Uuid(metadata_dir.directory_id))
        partition_dir = self._first_partition() if config.is_controller else None
        self.replica.open(self.fs, metadata_dir.path, key, self.logs.cluster_id, ports=ports, partition_dir=partition_dir)
        self.replica.add_listener(self._committed)
        self.replica.listen(sockets)
        self.replica.start()

    def _registration(self, incarnation_id: Uuid, advertised: Iterable[EndPoint]) -> BrokerRegistrationRequest:
        online = self.logs.online_dirs()
        self._known_offline = {each.path for each in self.logs.dirs if not each.online}
        assert self.logs.cluster_id is not None
        return lifecycle.registration(
            self.config.node_id,
            self.logs.cluster_id,
            incarnation_id,
            endpoints=advertised,
            rack=self.config.broker_rack,
            log_dirs=sorted(Uuid(each.directory_id) for each in online),
            previous_broker_epoch=previous_broker_epoch(self.logs.dirs),
        )

    def _cordoned(self) -> list[bytes]:
        """The ids of the log dirs that take no new replicas."""
        named = {path.rstrip("/") or "/" for path in self.config.cordoned_log_dirs}
        return [Uuid(each.directory_id) for each in self.logs.dirs if each.meta is not None and named & {"*", each.path}]

    def _listen(self, sockets: Mapping[str, socket.socket]) -> None:
        count, limits = ConnectionCount(), settings.limits(self.config)
        for name, listening in sockets.items():
            listener = Listener(name, listening, self.broker, self.runtime, limits=limits, count=count)
            listener.open()
            self.listeners.append(self.replica.quotas.add(listener, self.broker))

    def _accept(self) -> None:
        """Called once unfenced, or late: a fenced broker does not list itself, so clients see partitions without leaders."""
        for listener in self.listeners:
            listener.start()

    def _first_partition(self) -> str | None:
        """The directory of any one partition, in any log dir."""
        for log_dir in self.logs.online_dirs():
            try:
                found = log_dir.first_partition()
            except OSError as problem:
                raise StorageFailure(log_dir.path, f"cannot be listed: {problem}") from problem
            if found is not None:
                return found
        return None

    async def _load_logs(self) -> None:
        """Loads the logs of all partitions, several in parallel; heartbeats and the metadata quorum continue meanwhile."""
        jobs = self.logs.load_jobs()
        if not jobs:
            return
        even_ms = self.runtime.even_ms()
        started = told = self.runtime.real_ms()

        def tell(done: int) -> None:
            nonlocal told
            now = self.runtime.real_ms()
            if now - told >= PROGRESS_MS:
                told = now
                log.info("loading logs: %d of %d partitions, %.0f s", done, len(jobs), (now - started) / 1000)

        threads = min(LOAD_THREADS, max(1, self.config.num_recovery_threads_per_data_dir) * len(self.logs.dirs))
        await self.runtime.run_long(
            lambda: self.runtime.in_parallel([partial(j.run, even_ms) for j in jobs], threads, "load", tell)
        )
        for job in jobs:
            self.logs.loaded(job)

    def _check_dirs(self) -> None:
        """StorageFailure when loading took the metadata log's dir or all dirs offline."""
        for log_dir in self.logs.dirs:
            if log_dir.failure is not None and (log_dir.path == self._metadata_dir or not self.logs.online_dirs()):
                raise log_dir.failure

    def _make_broker(self) -> None:
        config, runtime, self._image = self.config, self.runtime, self.replica.image
        replicas = ReplicaManager(
            config.node_id,
            self.logs,
            background=self._in_background,
            rng=runtime.rng,
            even_ms=runtime.even_ms,
            fetch_session_slots=config.max_incremental_fetch_session_cache_slots,
        )
        producer_ids, others = ProducerIds(), ChannelsToBrokers(self.channels, lambda: self._image, config.inter_broker_listener)
        self.coordinators = Coordinators(
            config,
            replicas,
            runtime,
            producer_ids.take,
            lambda where, marker: write_marker(self.broker, where, marker, runtime.now_ms()),
            others,
            lambda: self.life.in_touch,
        )
        assert self.logs.cluster_id is not None
        self.broker = Broker(
            node_id=config.node_id,
            cluster_id=self.logs.cluster_id,
            config=config,
            image=self._image,
            replicas=replicas,
            controller=self.controller,
            runtime=runtime,
            rng=runtime.rng,
            producer_ids=producer_ids,
            apis=self.apis,
            metadata_answers=Answers(),
            groups=self.coordinators.groups,
            transactions=self.coordinators.transactions,
            others=others,
            leads=self.coordinators.leads,
            quotas=self.replica.quotas.quotas,
        )
        self.replication = Replication(replicas, self.controller, self.channels, runtime, config, lambda: self.life.epoch)
        self.creating = Creating(replicas, runtime, self._created)
        self._serving = True
        self._load(self._image)
        self.replication.start()

    # Running

    def _committed(self, old: ClusterImage, new: ClusterImage, delta: ClusterDelta | None) -> None:
        """Applies a committed image; without ``delta`` it was replaced by a snapshot."""
        if not self._serving:
            # The whole image is loaded when this broker begins to serve.
            return
        self._image = new
        node_id = self.config.node_id
        if old.cluster_configs != new.cluster_configs or old.broker_configs(node_id) != new.broker_configs(node_id):
            self._follow_settings(new)
        if delta is None:
            self._load(new)
        else:
            self._apply(new, delta)
        if node_id in old.brokers and node_id not in new.brokers and new.offset >= self.life.epoch and not self._stopping:
            self.life.unregistered()

    def _load(self, image: ClusterImage) -> None:
        """Loads an image in which anything may have changed."""
        self.broker.image = image
        self.broker.replicas.load(image, self.runtime.even_ms())
        for partition in self.broker.replicas.partitions():
            partition.set_config(self.logs.config_for(partition.topic))
        self.coordinators.follow()
        self.replication.follow(image)
        if len(self.logs.dirs) > 1:
            self._tell_dirs(self.broker.replicas.partitions())

    def _apply(self, image: ClusterImage, delta: ClusterDelta) -> None:
        self.broker.image = image
        self.broker.replicas.apply(delta, image, self.runtime.even_ms())
        self.coordinators.follow(delta)
        self.replication.follow(image)
        if len(self.logs.dirs) > 1:
            found = (
                self.broker.replicas.by_id(topic_id, index)
                for topic_id, changed in delta.topics.changed.items()
                for index in sorted(changed.changed)
            )
            self._tell_dirs(partition for partition in found if isinstance(partition, Partition))

    def _created(self, partitions: Iterable[Partition]) -> None:
        self.replication.follow(self._image)
        if len(self.logs.dirs) > 1:
            self._tell_dirs(partitions)

    def _follow_settings(self, image: ClusterImage) -> None:
        try:
            changed = self.config.apply_dynamic(image.cluster_configs, image.broker_configs(self.config.node_id))
        except ConfigError as error:
            log.error("dynamic settings are not taken over: %s", error)
        else:
            (log.info if changed else log.debug)("dynamic settings changed: %s", ", ".join(sorted(changed)))
            self._take_over_settings()
            self.life.poke()

    def _take_over_settings(self) -> None:
        """Passes new settings to components that cache them; all others read ``config`` each time."""
        self.replica.member.set_settings(settings.controller_settings(self.config))
        limits = settings.limits(self.config)
        for listener in self.listeners:
            listener.change_limits(limits)
        self.logs.change_producer_expiration(self.config.producer_id_expiration_ms)

    def _tell_dirs(self, partitions: Iterable[Partition]) -> None:
        """Reports replicas to the controller that are in another log dir than the metadata says."""
        where = []
        for partition in partitions:
            log_dir = self.logs.dir_of(partition.topic_partition) if partition.log is not None else None
            if log_dir is not None:
                where.append((partition.topic_id, partition.index, Uuid(log_dir.directory_id)))
        placement = lifecycle.placed_elsewhere(self._image, self.config.node_id, where)
        if placement:
            self.runtime.spawn(self._assign_to_dirs(placement), "telling in which log dirs replicas lie")

    async def _assign_to_dirs(self, placement: lifecycle.Placement) -> None:
        try:
            await lifecycle.assign_to_dirs(self.controller, self.config.node_id, self.life.epoch, placement)
        except KafkaError as error:
            log.warning("log dirs of replicas were not reported to the controller, retrying: %s", error)

    def _log_config(self, topic: str) -> LogConfig:
        return settings.log_config(self.config.topic_config(self._image.topic_configs(topic)))

    def _in_background(self, job: Callable[[], None], done: Callable[[int], None]) -> None:
        def finished(future: asyncio.Future[None]) -> None:
            self._in_flight.discard(future)
            if not future.cancelled():
                future.result()
                done(self.runtime.even_ms())

        future = self.runtime.run_blocking(job)
        self._in_flight.add(future)
        future.add_done_callback(finished)

    def _metadata_failed(self, problem: Exception) -> None:
        self._failure = problem
        if self._serving:
            log.critical("the metadata log failed, the node stops: %s", problem)
        self.failed.set()

    def _watch_dirs(self) -> None:
        """Reports newly failed log dirs to the controller; stops the node without any, or without the metadata log's."""
        offline = [each for each in self.logs.dirs if not each.online and each.path not in self._known_offline]
        if not offline:
            return
        self._known_offline.update(each.path for each in offline)
        if not self.logs.online_dirs() or self._metadata_dir in self._known_offline:
            log.critical("log dir %s failed, and the node cannot go on without it", offline[0].path)
            self.failed.set()
            return
        self.life.report_offline([Uuid(each.directory_id) for each in offline if each.meta is not None])


def _hostname() -> str:
    """The name under which others may reach this machine when none is configured."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "localhost"
    return name


def ready_line(node: Node, seconds: float) -> str:
    """Printed once clients are served."""
    where = ", ".join(str(point) for point in node.config.advertised(node.ports, _hostname()))
    dirs = ", ".join(os.path.relpath(each.path) if not each.path.startswith("/") else each.path for each in node.logs.dirs)
    return f"tidelog is ready: {where} (node {node.config.node_id}, data in {dirs}, started in {seconds:.2f} s)"
