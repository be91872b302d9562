"""The parts of a broker: first those that make it a member of the cluster, then those that serve clients.

Each stage takes the values of the one before and returns its parts complete; ``server.node`` starts and stops them.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from tidelog.broker.api import Route
from tidelog.broker.apis.topics.metadata_bytes import Answers
from tidelog.broker.internal_topics import create_in_background
from tidelog.broker.local_markers import write_marker
from tidelog.broker.node import Broker
from tidelog.broker.producer_ids import ProducerIds
from tidelog.client.connection_opening import SetupTimeout
from tidelog.config.listener_proxy import proxy_networks
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import SHARE_STATE_TOPIC, TopicPartition
from tidelog.model.ports import FileSystem
from tidelog.replication.marker_append import Marker
from tidelog.replication.replica_manager import ReplicaManager
from tidelog.server import component_settings
from tidelog.server.background import Background
from tidelog.server.cluster.broker_lifecycle import BrokerLife
from tidelog.server.cluster.channels import Channels
from tidelog.server.cluster.controller_link import ControllerLink
from tidelog.server.cluster.coordinators import Coordinators
from tidelog.server.cluster.log_dir_reports import LogDirReports, cordoned
from tidelog.server.cluster.metadata_publisher import MetadataPublisher
from tidelog.server.cluster.metadata_replica import MetadataReplica
from tidelog.server.cluster.node_login import to_brokers
from tidelog.server.cluster.other_brokers import ChannelsToBrokers
from tidelog.server.cluster.quorum_opening import MetadataDir, open_member
from tidelog.server.log_loading import OpenLogs
from tidelog.server.replication.replica_creation import Creating
from tidelog.server.replication.replica_fetcher_manager import Replication
from tidelog.server.runtime import LoopRuntime
from tidelog.server.serving.authenticating import sasl_of
from tidelog.server.serving.listener import Listener
from tidelog.server.upkeep.cleaner_threads import Compaction
from tidelog.server.upkeep.periodic_tasks import Housekeeping


class Membership(NamedTuple):
    """A broker in its cluster: the metadata log, the active controller, the session with it."""

    replica: MetadataReplica
    channels: Channels
    """To other brokers."""
    to_controllers: Channels
    controller: ControllerLink
    life: BrokerLife

    def close_channels(self) -> None:
        """Closes the connections to other nodes; requests without an answer fail."""
        self.channels.close()
        self.to_controllers.close()


def join_cluster(
    config: BrokerConfig,
    runtime: LoopRuntime,
    fs: FileSystem,
    logs: OpenLogs,
    *,
    ports: Mapping[str, int],
    on_failure: Callable[[Exception], None],
) -> Membership:
    """Opens the metadata log, which blocks. Nothing listens or asks yet. ``ports`` and errors: see ``open_member``."""
    partition_dir = logs.first_partition() if config.is_controller else None
    where = MetadataDir(fs, logs.metadata_dir.path, logs.metadata_dir.directory_id, logs.cluster_id)
    member = open_member(config, runtime, where, ports=ports, partition_dir=partition_dir)
    replica = MetadataReplica(config, runtime, member, logs.cluster_id, on_failure)
    tls = None if replica.tls is None or config.embedded else replica.tls.towards(config.inter_broker_listener)
    setup = SetupTimeout(config.socket_connection_setup_timeout_ms, config.socket_connection_setup_timeout_max_ms)
    channels = Channels(runtime, str(config.node_id), to_brokers(config, runtime, tls), setup)
    to_controllers = Channels(runtime, str(config.node_id), replica.controller_login, setup)
    controller = ControllerLink(replica, to_controllers, runtime, config.controller_socket_timeout_ms)
    life = BrokerLife(config, controller, replica, runtime, lambda: cordoned(config, logs))
    return Membership(replica, channels, to_controllers, controller, life)


class BrokerParts(NamedTuple):
    """What serves clients. ``publisher`` has not loaded an image yet, and nothing has been started."""

    runtime: LoopRuntime
    logs: OpenLogs
    membership: Membership
    background: Background
    broker: Broker
    coordinators: Coordinators
    replication: Replication
    creating: Creating
    listeners: tuple[Listener, ...]
    reports: LogDirReports
    publisher: MetadataPublisher
    housekeeping: Housekeeping
    compaction: Compaction


def build_broker(
    config: BrokerConfig,
    runtime: LoopRuntime,
    logs: OpenLogs,
    membership: Membership,
    reports: LogDirReports,
    *,
    apis: Mapping[int, Route],
    sockets: Mapping[str, socket.socket],
) -> BrokerParts:
    """``sockets``: the bound sockets of the listeners for clients, by name."""
    life = membership.life
    background = Background(runtime)
    replicas = ReplicaManager(
        config.node_id,
        logs.manager,
        background=background.run,
        rng=runtime.rng,
        even_ms=runtime.even_ms,
        fetch_session_slots=config.max_incremental_fetch_session_cache_slots,
    )
    broker, coordinators = _serving(config, runtime, logs, membership, replicas, apis)
    replication = Replication(replicas, membership.controller, membership.channels, runtime, config, lambda: life.epoch)
    listeners = _listeners(config, broker, runtime, membership.replica, sockets)
    publisher = MetadataPublisher(
        broker,
        logs.served,
        coordinators=coordinators,
        replication=replication,
        reports=reports,
        life=life,
        replica=membership.replica,
        listeners=listeners,
    )
    return BrokerParts(
        runtime,
        logs,
        membership,
        background,
        broker,
        coordinators,
        replication,
        Creating(replicas, runtime, publisher.created),
        listeners,
        reports,
        publisher,
        Housekeeping(broker, runtime, coordinators.prune_shares),
        Compaction(replicas, config, runtime),
    )


def _serving(
    config: BrokerConfig,
    runtime: LoopRuntime,
    logs: OpenLogs,
    membership: Membership,
    replicas: ReplicaManager,
    apis: Mapping[int, Route],
) -> tuple[Broker, Coordinators]:
    """What handlers see of the node, and its coordinators, which write transaction markers as handlers do."""
    producer_ids = ProducerIds()
    others = ChannelsToBrokers(membership.channels, lambda: logs.served.image, config.inter_broker_listener)

    def mark(where: TopicPartition, marker: Marker) -> ErrorCode | Awaitable[ErrorCode]:
        return write_marker(broker, where, marker, runtime.now_ms())

    life = membership.life
    coordinators = Coordinators(config, replicas, runtime, producer_ids.take, mark, others, lambda: life.in_touch)
    broker = Broker(
        node_id=config.node_id,
        cluster_id=logs.cluster_id,
        config=config,
        image=membership.replica.image,
        replicas=replicas,
        controller=membership.controller,
        runtime=runtime,
        rng=runtime.rng,
        producer_ids=producer_ids,
        apis=apis,
        metadata_answers=Answers(),
        groups=coordinators.groups,
        transactions=coordinators.transactions,
        shares=coordinators.shares,
        others=others,
        leads=coordinators.leads,
        quotas=membership.replica.quotas.quotas,
        tls=membership.replica.tls,
        access=membership.replica.access,
    )
    coordinators.initializer.broker = broker
    broker.create_share_topic = lambda: create_in_background(broker, SHARE_STATE_TOPIC)
    return broker, coordinators


def _listeners(
    config: BrokerConfig,
    broker: Broker,
    runtime: LoopRuntime,
    replica: MetadataReplica,
    sockets: Mapping[str, socket.socket],
) -> tuple[Listener, ...]:
    count = component_settings.connection_count(config)
    made = []
    if replica.tls is not None:
        replica.tls.adopt()
    for name, bound in sockets.items():
        sasl = sasl_of(name, broker, config, runtime, replica.audit)
        tls = None if replica.tls is None else replica.tls.listener(name)
        made.append(
            Listener(
                name,
                bound,
                broker,
                runtime,
                limits=component_settings.limits(config, name),
                count=count,
                sasl=sasl,
                tls=tls,
                audit=replica.audit,
                balancers=proxy_networks(config.static, name),
            )
        )
    if replica.session_ending is not None:
        for listener in made:
            replica.session_ending.add(listener)
    return tuple(replica.quotas.add(listener, broker) for listener in made)
