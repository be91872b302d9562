"""A process's share of the metadata quorum: the log, the Raft machine and, on a controller, the listeners.

A controller votes, or waits to become a voter; a broker only observes. ``until`` waits for a condition, which is checked after
every commit, every snapshot and every change of the leader.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping

from tidelog.broker import lifecycle
from tidelog.broker.node import ControllerSide
from tidelog.broker.table import CONTROLLER_APIS
from tidelog.config.listeners import EndPoint, parse_address
from tidelog.config.resolve import BrokerConfig
from tidelog.controller.committed import Listener as CommitListener
from tidelog.controller.config_rules import OptionRules
from tidelog.controller.quorum_member import MemberConfig, QuorumMember
from tidelog.metadata.image import ClusterImage
from tidelog.metadata.records import MetadataLogError
from tidelog.model.errors import ConfigError
from tidelog.model.ids import random_uuid, uuid_to_text
from tidelog.model.ports import FileSystem
from tidelog.raft.config import RaftConfig
from tidelog.raft.voters import ReplicaKey, VoterSet
from tidelog.records.control import Endpoint, Voter
from tidelog.server.cluster.dead_brokers import DeadBrokers
from tidelog.server.cluster.metadata_news import MetadataNews
from tidelog.server.cluster.raft_runner import RaftRunner
from tidelog.server.cluster.standby import Registration
from tidelog.server.runtime import Alarm, LoopRuntime
from tidelog.server.serving.listener import ConnectionCount, Listener
from tidelog.server.serving.quota_enforcement import QuotaEnforcement
from tidelog.server.upkeep import settings
from tidelog.server.upkeep.metadata_scrub import MetadataScrub

log = logging.getLogger(__name__)

HANDOVER_MS = 5000
"""How long a stopping leader waits for the other voters to learn that it resigns."""
DRAIN_S = 1.0
SNAPSHOT_CHECK_S = 5.0
REGISTRATION_S = 0.2


class MetadataReplica:
    """Lifecycle: ``open``, ``listen`` on a controller, ``start``, ``stop``."""

    def __init__(self, config: BrokerConfig, runtime: LoopRuntime, on_failure: Callable[[Exception], None]) -> None:
        self.config = config
        self.runtime = runtime
        self.listeners: list[Listener] = []
        self._on_failure = on_failure
        self._timers: dict[str, Alarm] = {}
        self._stopping = False
        self._told_replaced = False
        self.quotas = QuotaEnforcement(config, runtime)
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self.on_leader: list[Callable[[], None]] = []
        """Called when the leader changes, and when this process becomes the active controller."""

    def open(
        self,
        fs: FileSystem,
        log_dir: str,
        key: ReplicaKey,
        cluster_id: str,
        *,
        ports: Mapping[str, int],
        partition_dir: str | None = None,
    ) -> None:
        """Recovers the log; blocks. ``ports``: those of the controller's listeners by name, which replace port 0.
        ``partition_dir``: see ``MemberConfig``.

        ConfigError when no voters are known; MetadataLogError, UnsupportedFeatureLevel or StorageFailure as for ``QuorumMember``.
        """
        config, runtime = self.config, self.runtime
        self.cluster_id = cluster_id
        endpoints = self._advertised(ports)
        member = QuorumMember.open(
            fs,
            MemberConfig(
                raft=self._raft_config(key, cluster_id, endpoints),
                log_dir=log_dir,
                controller=lifecycle.controller_image(config.node_id, random_uuid(runtime.rng), endpoints),
                configured=self._configured(),
                log=settings.metadata_log_config(config),
                settings=settings.controller_settings(config),
                partition_dir=partition_dir,
            ),
            rng=runtime.rng,
            rules=OptionRules(config),
            now_ms=runtime.now_ms(),
            steady_ms=runtime.real_ms(),
        )
        self._check_voters(member)
        self.member = member
        self.runner = RaftRunner(member, runtime, self._failed)
        self.scrub = MetadataScrub(member, config, runtime)
        self.runner.on_leader = self._leader_changed
        self.quotas.follow(member.image)
        member.committed.listeners.append(lambda old, new, delta: self.quotas.follow(new))
        self.news = MetadataNews(member, runtime)
        member.committed.listeners.append(self.news.committed)
        member.committed.listeners.append(lambda old, new, delta: self._look())
        member.committed.listeners.append(lambda old, new, delta: self._tell_if_replaced())

    def _advertised(self, ports: Mapping[str, int]) -> list[EndPoint]:
        told = {point.listener: point for point in self.config.advertised_endpoints}
        found = [told.get(point.listener, point) for point in self.config.controller_endpoints]
        return [
            EndPoint(each.listener, each.protocol, each.host or socket.gethostname(), each.port or ports[each.listener])
            for each in found
        ]

    def _configured(self) -> VoterSet:
        """``controller.quorum.voters``. A node started without ``process.roles`` is the only voter and has no address for
        others."""
        config = self.config
        if config.embedded and not config.voters and not config.controller_quorum_bootstrap_servers:
            return VoterSet.of([Voter(config.node_id, bytes(16), ())])
        name = config.controller_listener_names[0].upper() if config.controller_listener_names else "CONTROLLER"
        return VoterSet.of(Voter(each.id, bytes(16), (Endpoint(name, each.host, each.port),)) for each in config.voters)

    def _raft_config(self, key: ReplicaKey, cluster_id: str, endpoints: list[EndPoint]) -> RaftConfig:
        config = self.config
        return RaftConfig(
            key,
            cluster_id,
            tuple(Endpoint(point.listener, point.host, point.port) for point in endpoints),
            bootstrap=tuple(
                parse_address("controller.quorum.bootstrap.servers", each) for each in config.controller_quorum_bootstrap_servers
            ),
            can_vote=config.is_controller,
            auto_join=config.is_controller and config.controller_quorum_auto_join_enable,
            election_timeout_ms=config.controller_quorum_election_timeout_ms,
            fetch_timeout_ms=config.controller_quorum_fetch_timeout_ms,
            election_backoff_max_ms=config.controller_quorum_election_backoff_max_ms,
            answer_timeout_ms=config.controller_quorum_request_timeout_ms,
            retry_backoff_ms=config.controller_quorum_retry_backoff_ms,
            fetch_max_bytes=config.controller_quorum_fetch_max_bytes,
            snapshot_max_bytes=config.controller_quorum_fetch_snapshot_max_bytes,
        )

    def _check_voters(self, member: QuorumMember) -> None:
        voters, me = member.machine.voters, member.machine.quorum.me
        if not voters.voters and not member.config.raft.bootstrap:
            raise ConfigError(
                "No voters of the metadata quorum: set controller.quorum.bootstrap.servers, or controller.quorum.voters, or "
                "format with --standalone or --initial-controllers."
            )
        if self.config.is_controller and not self.config.controller_endpoints and not member.machine.quorum.is_only_voter:
            known = ", ".join(f"{each.voter_id} ({uuid_to_text(each.directory_id)})" for each in voters.voters) or "none"
            raise MetadataLogError(
                f"the voters of the metadata quorum are {known}, not only node {me.id} with directory id "
                f"{uuid_to_text(me.directory_id)}, and this node has no listener on which they could reach it. Set "
                "process.roles, controller.listener.names and a listener of that name; or start it with the node.id and the "
                "directory it was formatted with"
            )

    def listen(self, sockets: Mapping[str, socket.socket], count: ConnectionCount | None = None) -> None:
        """Serves other controllers, brokers and admin clients on bound sockets."""
        runtime = self.runtime
        self._dead_brokers = DeadBrokers(self.member, runtime)
        self.on_leader.append(self._dead_brokers.leader_changed)
        self.add_listener(self._dead_brokers.committed)
        side = ControllerSide(
            node_id=self.config.node_id,
            cluster_id=self.cluster_id,
            config=self.config,
            images=self.member,
            controller=self.runner,
            quorum=self.runner,
            runtime=runtime,
            rng=runtime.rng,
            apis=CONTROLLER_APIS,
            lives=self._dead_brokers,
            quotas=self.quotas.quotas,
        )
        count, limits = count or ConnectionCount(), settings.limits(self.config)
        for name, listening in sockets.items():
            listener = Listener(name, listening, side, runtime, limits=limits, count=count)
            listener.start()
            self.listeners.append(self.quotas.add(listener))

    def start(self) -> None:
        """Looks for the quorum, to vote or to observe."""
        self.runner.start()
        self.scrub.start()
        self._every("metadata snapshots", SNAPSHOT_CHECK_S, self.runner.snapshot_step)
        if not self.config.is_controller:
            return
        self._registration = Registration(self.runner, self.runtime)
        self._every("registration", REGISTRATION_S, self._registration.step)
        if self.config.controller_endpoints:
            self._every("signs of life", self.config.metadata_max_idle_interval_ms / 1000, self._live)

    async def stop(self) -> None:
        """Stops. A leader hands over first and stays reachable until then, because its successor needs its vote. Then the
        files are closed."""
        self._stopping = True
        self._leader_changed()
        self.scrub.stop()
        for timer in self._timers.values():
            timer.cancel()
        if hasattr(self, "_registration"):
            self._registration.close()
        if hasattr(self, "_dead_brokers"):
            self._dead_brokers.stopped = True
        await self.runner.stop(HANDOVER_MS)
        self.news.stop()
        for listener in self.listeners:
            listener.stop_accepting()
        await asyncio.gather(*(listener.drain(DRAIN_S) for listener in self.listeners))

    # Interface for the node

    @property
    def image(self) -> ClusterImage:
        """The committed image, which requests are served from."""
        return self.member.image

    def add_listener(self, listener: CommitListener) -> None:
        """Calls ``listener`` at each change of the committed image from now on."""
        self.member.committed.listeners.append(listener)

    @property
    def stopped(self) -> bool:
        """Whether the replica is stopping or has failed; no more requests are sent."""
        return self._stopping

    async def until(self, what: Callable[[], bool]) -> None:
        """Returns when ``what()`` is true, or when this replica stops."""
        if what() or self._stopping:
            return
        entry = what, self.runtime.loop.create_future()
        self._waiting.append(entry)
        try:
            await entry[1]
        finally:
            self._waiting.remove(entry)

    def _tell_if_replaced(self) -> None:
        """Warns when the vote of this node's id belongs to another directory; otherwise that goes unnoticed until the next
        controller fails."""
        config, machine = self.config, self.member.machine
        voter, me = machine.voters.by_id(config.node_id), machine.quorum.me
        replaced = voter is not None and machine.voters.find(me) is None
        if not config.is_controller or not replaced or config.controller_quorum_auto_join_enable:
            self._told_replaced = False
        elif not self._told_replaced:
            assert voter is not None
            self._told_replaced = True
            log.warning(
                "node %d votes on metadata with directory %s, and this is directory %s: this disk has no vote. If the other one "
                "will not come back, take its vote (metadata-quorum remove-controller -i %d -d %s), then give this one a vote "
                "(metadata-quorum add-controller)",
                config.node_id,
                uuid_to_text(voter.directory_id),
                uuid_to_text(me.directory_id),
                config.node_id,
                uuid_to_text(voter.directory_id),
            )

    def _look(self) -> None:
        for what, future in self._waiting:
            if not future.done() and (self._stopping or what()):
                future.set_result(None)

    def _leader_changed(self) -> None:
        self._look()
        self._tell_if_replaced()
        for told in list(self.on_leader):
            told()

    def _live(self) -> None:
        self.runner.tell_signs_of_life(self.config.metadata_max_idle_interval_ms)

    def _every(self, name: str, interval_s: float, duty: Callable[[], None]) -> None:
        if interval_s <= 0:
            return

        def do() -> None:
            if not self._stopping:
                self._timers[name] = self.runtime.call_later(interval_s, do)
                duty()

        self._timers[name] = self.runtime.call_later(interval_s, do)

    def _failed(self, problem: Exception) -> None:
        self._stopping = True
        self._on_failure(problem)
        self._leader_changed()
