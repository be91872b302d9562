"""A process's share of the metadata quorum: the log, the Raft machine and, on a controller, the listeners.

A controller votes, or waits to become a voter; a broker only observes. ``until`` waits for a condition, which is checked after
every commit, every snapshot and every change of the leader.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tidelog.broker.node import ControllerSide
from tidelog.broker.table import CONTROLLER_APIS
from tidelog.config.listener_proxy import proxy_networks
from tidelog.config.resolve import BrokerConfig
from tidelog.controller.committed_image import Listener as CommitListener
from tidelog.controller.quorum_member import QuorumMember
from tidelog.metadata.image import ClusterImage
from tidelog.model.ids import uuid_to_text
from tidelog.server import component_settings
from tidelog.server.cluster.authorizing import access_control, audit_of
from tidelog.server.cluster.dead_brokers import DeadBrokers
from tidelog.server.cluster.metadata_snapshots import SnapshotWriting
from tidelog.server.cluster.node_login import to_controllers
from tidelog.server.cluster.raft_runner import RaftRunner
from tidelog.server.cluster.standby_registration import Registration
from tidelog.server.cluster.state_change_logger import MetadataNews
from tidelog.server.runtime import Alarm, LoopRuntime
from tidelog.server.serving.authenticating import sasl_of, session_ending
from tidelog.server.serving.listener import ConnectionCount, Listener
from tidelog.server.serving.quota_enforcement import QuotaEnforcement
from tidelog.server.serving.securing import node_tls
from tidelog.server.upkeep.metadata_scrub import MetadataScrub

if TYPE_CHECKING:
    from tidelog.server.serving.node_tls import TlsClient

log = logging.getLogger(__name__)

HANDOVER_MS = 5000
"""How long a stopping leader waits for the other voters to learn that it resigns."""
DRAIN_S = 1.0
SNAPSHOT_CHECK_S = 5.0
REGISTRATION_S = 0.2
STORES_CHECK_S = 5.0
DRY_RUN_S = 60.0


class MetadataReplica:
    """Lifecycle: ``listen`` on a controller, ``start``, ``stop``."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: LoopRuntime,
        member: QuorumMember,
        cluster_id: str,
        on_failure: Callable[[Exception], None],
    ) -> None:
        """``on_failure`` is called once when the metadata log has failed; no more requests are sent then."""
        self.config = config
        self.runtime = runtime
        self.member = member
        self.cluster_id = cluster_id
        self.listeners: list[Listener] = []
        self.dead_brokers = DeadBrokers(member, runtime)
        self.on_leader: list[Callable[[], None]] = [self.dead_brokers.leader_changed]
        """Called when the leader changes, and when this process becomes the active controller."""
        self.quotas = QuotaEnforcement(config, runtime)
        self.tls = node_tls(config, runtime, member.image.broker_configs(config.node_id))
        """The TLS of this node's listeners and connections; None without any."""
        self.controller_login = to_controllers(config, runtime, self._tls_to_controllers())
        """What the controllers' listener asks of this node."""
        self.runner = RaftRunner(member, runtime, self._failed, self._leader_changed, self.controller_login)
        self.snapshots = SnapshotWriting(member, runtime, self.runner)
        self._on_failure = on_failure
        self._timers: dict[str, Alarm] = {}
        self._stopping = False
        self._told_replaced = False
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self._ends: list[Callable[[], None]] = []
        """Ends what ``start`` began."""
        self.news = MetadataNews(member, runtime, config.node_id)
        self.scrub = MetadataScrub(member, config, runtime, self.runner.do)
        self.quotas.follow(member.image)
        self.auditing = audit_of(config, runtime)
        """Keeps who did what; None without an audit."""
        self.audit = None if self.auditing is None else self.auditing.log
        self.access = access_control(config, member, runtime, self.audit)
        """Decides what clients of this process's listeners may do; None without an authorizer."""
        self.session_ending = session_ending(config)
        """Ends the sessions of users whose credential changes; None where that is not asked for."""
        if self.session_ending is not None:
            member.committed.listeners.append(self.session_ending.follow)
        member.committed.listeners += [
            lambda old, new, delta: self.quotas.follow(new),
            self.news.committed,
            lambda old, new, delta: self._look(),
            lambda old, new, delta: self._tell_if_replaced(),
        ]

    def listen(self, sockets: Mapping[str, socket.socket], count: ConnectionCount | None = None) -> None:
        """Serves other controllers, brokers and admin clients on bound sockets."""
        runtime = self.runtime
        if self.config.is_controller:
            self.add_listener(self.dead_brokers.committed)
        side = ControllerSide(
            node_id=self.config.node_id,
            cluster_id=self.cluster_id,
            config=self.config,
            images=self.member,
            controller=self.runner.controller,
            quorum=self.runner.requests,
            runtime=runtime,
            rng=runtime.rng,
            apis=CONTROLLER_APIS,
            lives=self.dead_brokers,
            quotas=self.quotas.quotas,
            access=self.access,
        )
        count = count or component_settings.connection_count(self.config)
        for name, listening in sockets.items():
            sasl = sasl_of(name, side, self.config, runtime, self.audit)
            tls = None if self.tls is None else self.tls.listener(name)
            listener = Listener(
                name,
                listening,
                side,
                runtime,
                limits=component_settings.limits(self.config, name),
                count=count,
                sasl=sasl,
                tls=tls,
                audit=self.audit,
                balancers=proxy_networks(self.config.static, name),
            )
            listener.start()
            self.listeners.append(self.quotas.add(listener))
            if self.session_ending is not None:
                self.session_ending.add(listener)

    def follow_limits(self) -> None:
        """Dynamic settings have changed."""
        for listener in self.listeners:
            listener.change_limits(component_settings.limits(self.config, listener.name))

    def start(self) -> None:
        """Looks for the quorum, to vote or to observe."""
        self.runner.start()
        self.scrub.start()
        if self.auditing is not None:
            self.auditing.start()
        if self.access is not None and self.access.dry_run is not None:
            dry_run = self.access.dry_run
            log.warning("%s", dry_run.warning())
            self._every("dry run", DRY_RUN_S, lambda: log.warning("%s", dry_run.warning()))
        self._every("metadata snapshots", SNAPSHOT_CHECK_S, self.snapshots.step)
        if self.tls is not None:
            self._every("TLS stores", STORES_CHECK_S, self.tls.step)
        if not self.config.is_controller:
            return
        registration = Registration(self.runner, self.runtime, self.controller_login)
        self._ends.append(registration.close)
        self._every("registration", REGISTRATION_S, registration.step)
        if self.config.controller_endpoints:
            self._every("signs of life", self.config.metadata_max_idle_interval_ms / 1000, self._live)

    async def stop(self) -> None:
        """Stops. A leader hands over first and stays reachable until then, because its successor needs its vote. Then the
        files are closed."""
        self._stopping = True
        self._leader_changed()
        for timer in self._timers.values():
            timer.cancel()
        self.scrub.stop()
        for end in self._ends:
            end()
        self.dead_brokers.stop()
        await self.runner.stop(HANDOVER_MS)
        self.news.stop()
        for listener in self.listeners:
            listener.stop_accepting()
        await asyncio.gather(*(listener.drain(DRAIN_S) for listener in self.listeners))
        if self.auditing is not None:
            await self.auditing.stop()

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

    def _tls_to_controllers(self) -> TlsClient | None:
        names = self.config.controller_listener_names
        return None if self.tls is None or self.config.embedded or not names else self.tls.towards(names[0].upper())

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
        self.runner.controller.tell_signs_of_life(self.config.metadata_max_idle_interval_ms)

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
