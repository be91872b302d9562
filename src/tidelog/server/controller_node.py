"""A node that is a controller and no broker (``process.roles=controller``): a member of the metadata quorum with its listener.

Start: addresses, log dir (locked), metadata log, listener, then the quorum: it votes when it can be reached. Stop: a leader hands
over, no new connections, files are closed, locks released.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import cast

from tidelog.broker import lifecycle
from tidelog.broker.context import Broker
from tidelog.broker.controller_apis import CONTROLLER_APIS
from tidelog.broker.controller_side import ControllerSide
from tidelog.config.listeners import EndPoint, address_text, parse_address
from tidelog.config.resolve import BrokerConfig
from tidelog.controller.config_rules import OptionRules
from tidelog.controller.quorum_member import MemberConfig, QuorumMember
from tidelog.model.errors import ConfigError, StorageFailure
from tidelog.model.ids import Uuid, random_uuid
from tidelog.model.ports import FileSystem
from tidelog.raft.quorum import RaftConfig
from tidelog.raft.voters import ReplicaKey, VoterSet
from tidelog.records.control import Endpoint, Voter
from tidelog.server import settings
from tidelog.server.disk import DiskFileSystem
from tidelog.server.listener import ConnectionCount, Listener, bind
from tidelog.server.raft_runner import RaftRunner
from tidelog.server.runtime import LoopRuntime
from tidelog.server.standby import Registration
from tidelog.storage.log_dir import LogDir, check_same_owner

log = logging.getLogger(__name__)

DRAIN_S = 1.0
HANDOVER_MS = 5000
"""How long a leader that stops waits for the others to hear of it."""
SNAPSHOT_CHECK_S = 5.0
REGISTRATION_S = 0.2


class ControllerNode:
    """See the module."""

    def __init__(self, config: BrokerConfig, runtime: LoopRuntime, fs: FileSystem | None = None) -> None:
        self.config = config
        self.runtime = runtime
        self.fs = fs or DiskFileSystem()
        self.listeners: list[Listener] = []
        self.failed = asyncio.Event()
        """Set when the node cannot go on: its disk failed, or the quorum has lost what was committed."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._stopping = False

    @property
    def ports(self) -> dict[str, int]:
        """The port of each listener, by listener name."""
        return {listener.name: listener.port for listener in self.listeners}

    async def start(self) -> None:
        """Returns when the listener is open and the quorum is looked for. ConfigError, StorageFailure, MetadataLogError or
        UnsupportedFeatureLevel when that cannot be."""
        config, runtime = self.config, self.runtime
        sockets = {p.listener: bind(p.listener, p.host, p.port) for p in config.controller_endpoints}
        try:
            self._open_dir()
            ports = {name: each.getsockname()[1] for name, each in sockets.items()}
            self._open_quorum(ports)
            side = ControllerSide(
                node_id=config.node_id,
                cluster_id=self.cluster_id,
                config=config,
                images=self.runner.member,
                controller=self.runner,
                quorum=self.runner,
                runtime=runtime,
                rng=runtime.rng,
                apis=CONTROLLER_APIS,
            )
            count, limits = ConnectionCount(), settings.limits(config)
            for name, listening in sockets.items():
                # A controller's handlers know that it is one: see ControllerSide.
                listener = Listener(name, listening, cast(Broker, side), runtime, limits=limits, count=count)
                listener.start()
                self.listeners.append(listener)
        except BaseException:
            for listening in sockets.values():
                listening.close()
            if hasattr(self, "_dir"):
                self._dir.release()
            raise
        self.runner.start()
        self._registration = Registration(self.runner, runtime)
        self._every("registration", REGISTRATION_S, self._registration.step)
        self._every("signs of life", config.metadata_max_idle_interval_ms / 1000, self._live)
        self._every("metadata snapshots", SNAPSHOT_CHECK_S, self.runner.snapshot_step)

    async def stop(self) -> None:
        """In order."""
        self._stopping = True
        for timer in self._timers.values():
            timer.cancel()
        self._registration.close()
        # Reachable until it has handed over: its successor wants its vote.
        await self.runner.stop(HANDOVER_MS)
        for listener in self.listeners:
            listener.stop_accepting()
        await asyncio.gather(*(listener.drain(DRAIN_S) for listener in self.listeners))
        self._dir.release()

    def ready_line(self, seconds: float) -> str:
        """What is printed once the controller can be reached."""
        points = self.config.controller_endpoints
        where = ", ".join(f"{each.listener}://{address_text(each.host, self.ports[each.listener])}" for each in points)
        return f"tidelog is ready: controller {self.config.node_id} at {where}, started in {seconds:.2f} s"

    def _open_dir(self) -> None:
        """Only the metadata's directory: a controller has no other data."""
        path = (self.config.metadata_log_dir or settings.log_dirs(self.config)[0]).rstrip("/") or "/"
        self._dir = LogDir(self.fs, path)
        try:
            self._dir.open()
            self.cluster_id = check_same_owner([self._dir], self.config.node_id, None)
            self._dir.adopt(self.cluster_id, self.config.node_id, self.runtime.rng)
        except OSError as problem:
            raise StorageFailure(path, f"cannot be opened: {problem}") from problem

    def _open_quorum(self, ports: dict[str, int]) -> None:
        config, runtime = self.config, self.runtime
        endpoints = [
            EndPoint(point.listener, point.protocol, point.host or socket.gethostname(), point.port or ports[point.listener])
            for point in config.controller_endpoints
        ]
        name = endpoints[0].listener
        configured = VoterSet.of(Voter(voter.id, bytes(16), (Endpoint(name, voter.host, voter.port),)) for voter in config.voters)
        member = QuorumMember.open(
            self.fs,
            MemberConfig(
                raft=RaftConfig(
                    ReplicaKey(config.node_id, Uuid(self._dir.directory_id)),
                    self.cluster_id,
                    tuple(Endpoint(point.listener, point.host, point.port) for point in endpoints),
                    bootstrap=tuple(
                        parse_address("controller.quorum.bootstrap.servers", each)
                        for each in config.controller_quorum_bootstrap_servers
                    ),
                    auto_join=config.controller_quorum_auto_join_enable,
                    election_timeout_ms=config.controller_quorum_election_timeout_ms,
                    fetch_timeout_ms=config.controller_quorum_fetch_timeout_ms,
                    election_backoff_max_ms=config.controller_quorum_election_backoff_max_ms,
                    answer_timeout_ms=config.controller_quorum_request_timeout_ms,
                    retry_backoff_ms=config.controller_quorum_retry_backoff_ms,
                    fetch_max_bytes=config.controller_quorum_fetch_max_bytes,
                    snapshot_max_bytes=config.controller_quorum_fetch_snapshot_max_bytes,
                ),
                log_dir=self._dir.path,
                controller=lifecycle.controller_image(config.node_id, random_uuid(runtime.rng), endpoints),
                configured=configured,
                log=settings.metadata_log_config(config),
                settings=settings.controller_settings(config),
            ),
            rng=runtime.rng,
            rules=OptionRules(config),
            now_ms=runtime.now_ms(),
            steady_ms=runtime.steady_ms(),
        )
        if not member.machine.voters.voters and not member.config.raft.bootstrap:
            raise ConfigError(
                "Nobody says who votes on metadata: set controller.quorum.bootstrap.servers, or controller.quorum.voters, or "
                "format with --standalone or --initial-controllers."
            )
        self.runner = RaftRunner(member, runtime, self._quorum_failed)

    def _live(self) -> None:
        self.runner.tell_signs_of_life(self.config.metadata_max_idle_interval_ms)

    def _every(self, name: str, interval_s: float, duty: Callable[[], None]) -> None:
        if interval_s <= 0:
            return

        def do() -> None:
            if not self._stopping:
                self._timers[name] = self.runtime.loop.call_later(interval_s, do)
                duty()

        self._timers[name] = self.runtime.loop.call_later(interval_s, do)

    def _quorum_failed(self, problem: Exception) -> None:
        log.critical("the metadata quorum's replica failed, the node stops: %s", problem)
        self.failed.set()
