"""A broker node: starts its parts in order, and stops them in order.

Start: bind addresses, lock the log dirs, open the metadata log and the controller listener, register, read this broker's
metadata, load partition logs, open listeners; then the controller unfences the broker. A start that fails undoes its
steps, the last one first. Stop: move leaderships away, accept no new connections, answer requests in flight, hand over the
controller, flush logs and mark them clean, release locks.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from tidelog.broker import controller_reports
from tidelog.broker.api import Route
from tidelog.broker.node import Broker
from tidelog.broker.table import BROKER_APIS
from tidelog.config.listeners import EndPoint
from tidelog.config.resolve import BrokerConfig
from tidelog.controller.quorum_member import QuorumMember
from tidelog.model.errors import ConfigError, StorageFailure
from tidelog.model.ids import Uuid, random_uuid
from tidelog.model.ports import FileSystem
from tidelog.protocol.messages.broker_registration import BrokerRegistrationRequest
from tidelog.server.broker_parts import BrokerParts, Membership, build_broker, join_cluster
from tidelog.server.cluster.broker_lifecycle import BrokerLife
from tidelog.server.cluster.controller_link import ControllerLink
from tidelog.server.cluster.log_dir_reports import LogDirReports
from tidelog.server.cluster.metadata_replica import MetadataReplica
from tidelog.server.disk import DiskFileSystem
from tidelog.server.log_loading import OpenLogs, close_logs, load_logs, open_logs
from tidelog.server.runtime import LoopRuntime
from tidelog.server.serving.listener import Listener
from tidelog.server.upkeep.unmonitored import monitoring_of
from tidelog.storage.log_dir import previous_broker_epoch
from tidelog.storage.log_manager import LogManager

if TYPE_CHECKING:
    from tidelog.metadata.sparing import Sparing
    from tidelog.metrics.registry import Registry
    from tidelog.server.upkeep.facts_page import FactsPage

log = logging.getLogger(__name__)

DRAIN_S = 5.0
"""How long requests in flight may take when the node stops, in seconds; longer than a usual long poll."""
ACCEPT_WITHIN_S = 2.0
"""How long clients of a starting broker wait for it to be unfenced; after that they are served by a fenced broker."""
WATCH_DIRS_MS = 1000
REPORT_PLACES_MS = 10_000


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
        self.config = config
        self.runtime = runtime
        self.failed = asyncio.Event()
        """Set when the node cannot continue: the disk of its metadata log failed, or all of its log dirs did."""
        self.monitoring = monitoring_of(self)
        self._apis = apis
        self._fs = fs or DiskFileSystem()
        self._failure: Exception | None = None
        self._membership: Membership | None = None
        self._parts: BrokerParts | None = None

    @property
    def member(self) -> QuorumMember | None:
        """This node's member of the metadata quorum, from the moment when its log is open."""
        return None if self._membership is None else self._membership.replica.member

    @property
    def parts(self) -> BrokerParts:
        """The parts of a node that has started. RuntimeError before that."""
        if self._parts is None:
            raise RuntimeError("the node has not started")
        return self._parts

    @property
    def broker(self) -> Broker:
        """What handlers of requests see of this node."""
        return self.parts.broker

    @property
    def logs(self) -> LogManager:
        """The log dirs and the logs in them."""
        return self.parts.logs.manager

    @property
    def replica(self) -> MetadataReplica:
        """This node's part in the metadata quorum."""
        return self.parts.membership.replica

    @property
    def controller(self) -> ControllerLink:
        """The active controller, wherever it is."""
        return self.parts.membership.controller

    @property
    def life(self) -> BrokerLife:
        """The session with the active controller."""
        return self.parts.membership.life

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The listeners for clients."""
        return self.parts.listeners

    @property
    def ports(self) -> dict[str, int]:
        """The port of each client listener, by listener name."""
        return {listener.name: listener.port for listener in self.listeners}

    async def start(self) -> None:
        """Returns when clients are served. ConfigError, StorageFailure, MetadataLogError or UnsupportedFeatureLevel when the
        node cannot start; KafkaError when the cluster refuses this broker."""
        async with AsyncExitStack() as undo:
            parts = await self._start(undo)
            undo.pop_all()
        self._parts = parts
        parts.reports.report_places(parts.broker.replicas.partitions())
        housekeeping = parts.housekeeping
        housekeeping.start()
        housekeeping.every("log dirs", WATCH_DIRS_MS, parts.reports.check)
        if parts.reports.several:
            # The controller may have lost an earlier report when it failed.
            housekeeping.every(
                "places of replicas",
                REPORT_PLACES_MS,
                lambda: parts.reports.report_places(parts.broker.replicas.partitions()),
            )
        parts.compaction.start()

    async def _start(self, undo: AsyncExitStack) -> BrokerParts:
        """``undo`` gets what undoes each step."""
        config = self.config
        sockets = {p.listener: self.runtime.bind(p.listener, p.host, p.port) for p in config.endpoints}
        for each in sockets.values():
            undo.callback(each.close)
        undo.push_async_callback(self.monitoring.stop)
        await self.monitoring.listen()
        logs = open_logs(config, self.runtime, self._fs)
        undo.callback(logs.release)
        ports = {name: each.getsockname()[1] for name, each in sockets.items()}
        advertised = config.advertised(ports, _hostname())
        membership = join_cluster(config, self.runtime, self._fs, logs, ports=ports, on_failure=self._metadata_failed)
        self._membership = membership
        undo.callback(membership.close_channels)
        undo.push_async_callback(membership.replica.stop)
        undo.callback(membership.life.stop)
        membership.replica.listen({p.listener: sockets[p.listener] for p in config.controller_endpoints})
        membership.replica.start()
        reports = LogDirReports(config, logs, membership.controller, membership.life, self.runtime, self.failed.set)
        await self._checked(membership.life.register(self._registration(logs, advertised)))
        image = logs.served.image = membership.replica.image
        try:
            config.apply_dynamic(image.cluster_configs, image.broker_configs(config.node_id))
        except ConfigError as error:  # the way out is a change, which needs a node that runs
            log.error("dynamic settings are not taken over: %s", error)
        await self._checked(load_logs(logs, config, self.runtime))
        for_clients = {p.listener: sockets[p.listener] for p in config.broker_endpoints}
        parts = build_broker(config, self.runtime, logs, membership, reports, apis=self._apis, sockets=for_clients)
        await self._serve(parts, undo)
        return parts

    async def _serve(self, parts: BrokerParts, undo: AsyncExitStack) -> None:
        """From complete parts to clients that are served."""
        membership = parts.membership
        undo.callback(parts.coordinators.stop)
        undo.push_async_callback(parts.replication.stop)
        undo.callback(parts.creating.stop)
        undo.callback(parts.publisher.stop)
        membership.replica.add_listener(parts.publisher.committed)
        parts.publisher.load(membership.replica.image)
        parts.replication.start()
        if membership.replica.auditing is not None:
            membership.replica.auditing.serve(parts.broker)
        self.monitoring.serve(
            lambda: _metrics(parts), lambda: _facts(parts), parts.logs.manager.dirs, membership.life.why_not_ready
        )
        for listener in parts.listeners:
            undo.callback(listener.stop_accepting)
            listener.open()
        accepting = self.runtime.loop.call_later(ACCEPT_WITHIN_S, _accept, parts.listeners)
        try:
            await self._checked(membership.life.serve())
        finally:
            accepting.cancel()
        _accept(parts.listeners)

    async def _checked(self, step: Coroutine[Any, Any, None]) -> None:
        """Runs a step of the start; fails when the metadata log has failed."""
        await step
        if self._failure is not None:
            raise self._failure

    def _registration(self, logs: OpenLogs, advertised: Iterable[EndPoint]) -> BrokerRegistrationRequest:
        return controller_reports.registration(
            self.config.node_id,
            logs.cluster_id,
            random_uuid(self.runtime.rng),
            endpoints=advertised,
            rack=self.config.broker_rack,
            log_dirs=sorted(Uuid(each.directory_id) for each in logs.manager.online_dirs()),
            previous_broker_epoch=previous_broker_epoch(logs.manager.dirs),
        )

    def sparing(self) -> Sparing:
        """Which partitions lack this node, and which cannot do without it."""
        from tidelog.metadata.sparing import sparing  # Only one of several processes.

        image, config = self.broker.image, self.config
        return sparing(image, config.node_id, lambda topic: config.topic_config(image.topic_configs(topic)).min_insync_replicas)

    def accept_shared(self, sockets: Mapping[str, socket.socket]) -> None:
        """Accepts clients from sockets that other processes accept from, too, by listener name."""
        for listener in self.listeners:
            if listener.name in sockets:
                listener.accept_also(sockets[listener.name])

    async def stop(self) -> None:
        """Stops the components in order; errors are logged and the stop continues."""
        parts = self.parts
        membership = parts.membership
        parts.publisher.stop()
        parts.creating.stop()
        parts.housekeeping.stop()
        await parts.compaction.stop()
        await self.monitoring.stop()
        if not self.failed.is_set():
            if membership.replica.auditing is not None:
                await membership.replica.auditing.flush()
            await membership.life.shut_down()
        for listener in parts.listeners:
            listener.stop_accepting()
        parts.coordinators.stop()
        await asyncio.gather(*(listener.drain(DRAIN_S) for listener in parts.listeners))
        await parts.replication.stop()
        await _leave(membership)
        parts.broker.replicas.moves.stop(self.runtime.even_ms())
        # A log with a flush in flight cannot be closed.
        await parts.background.drained()
        await close_logs(parts.logs.manager, self.runtime, membership.life.epoch)

    def _metadata_failed(self, problem: Exception) -> None:
        self._failure = problem
        if self._parts is not None:
            log.critical("the metadata log failed, the node stops: %s", problem)
        self.failed.set()


def _metrics(parts: BrokerParts) -> Registry:
    from tidelog.server.upkeep.node_metrics import on_loop  # Only a node that is monitored.

    return on_loop(parts)


def _facts(parts: BrokerParts) -> FactsPage:
    from tidelog.server.upkeep.facts_page import FactsPage  # Only a node that is monitored.
    from tidelog.server.upkeep.node_facts import NodeFacts

    replica = parts.membership.replica
    facts = NodeFacts(parts.runtime, replica, lambda: [*parts.listeners, *replica.listeners], parts)
    return FactsPage(facts, parts.runtime, replica.access, parts.broker)


def _accept(listeners: Iterable[Listener]) -> None:
    """Called once unfenced, or late: a fenced broker does not list itself, so clients see partitions without leaders."""
    for listener in listeners:
        listener.start()


async def _leave(membership: Membership) -> None:
    membership.life.stop()
    try:
        await membership.replica.stop()
    except StorageFailure as failure:
        log.error("the metadata log was not closed in order: %s", failure)
    membership.close_channels()


def _hostname() -> str:
    """The name under which others may reach this machine when none is configured."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "localhost"
    return name


def ready_line(node: Node, seconds: float, *, alone: bool = True) -> str:
    """Printed once clients are served; ``alone``: by this node, and not by an installation that has a line of its own."""
    where = ", ".join(str(point) for point in node.config.advertised(node.ports, _hostname()))
    dirs = ", ".join(os.path.relpath(each.path) if not each.path.startswith("/") else each.path for each in node.logs.dirs)
    if not alone:
        return f"node {node.config.node_id} serves at {where}, with its data in {dirs}, after {seconds:.2f} s"
    return f"tidelog is ready: {where} (node {node.config.node_id}, data in {dirs}, started in {seconds:.2f} s)"
