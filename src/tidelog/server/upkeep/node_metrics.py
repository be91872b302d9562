"""Connects each metric of the catalogue to its source in a running node.

Two registries: ``on_loop`` reads state that the loop changes, in one pass over the partitions; ``in_thread`` asks the operating
system, which may block (a log dir may be on an unreachable network file system).
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from tidelog import __version__
from tidelog.broker.quotas.limits import Kind
from tidelog.config.listeners import address_text
from tidelog.coordinator.group.streams.streams_state import StreamsGroupState
from tidelog.coordinator.transaction.describing import count_by_state, open_transactions
from tidelog.coordinator.transaction.state import NAMES
from tidelog.metrics import catalog
from tidelog.metrics.registry import Registry, Sample
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_BROKER
from tidelog.raft.election import Role
from tidelog.server import posix
from tidelog.server.upkeep.request_metrics import watch_requests, watch_syncs

if TYPE_CHECKING:
    from tidelog.broker.access_control import AclAccessControl
    from tidelog.metadata.image import ClusterImage
    from tidelog.model.ports import FileSystem
    from tidelog.replication.partition import Partition
    from tidelog.server.broker_parts import BrokerParts
    from tidelog.server.cluster.metadata_replica import MetadataReplica
    from tidelog.server.replication.replica_fetcher import Following
    from tidelog.server.runtime import LoopRuntime
    from tidelog.server.serving.listener import Listener
    from tidelog.server.serving.node_tls import NodeTls
    from tidelog.server.serving.tls_listener import TlsListener
    from tidelog.server.upkeep.metadata_scrub import MetadataScrub
    from tidelog.server.upkeep.scrubbing import Scrubbing
    from tidelog.server.upkeep.share_metrics import ShareMetrics
    from tidelog.storage.log_dir import LogDir

MINUTE_S: Final = 60
STREAMS: Final = "streams"
"""The kind of group that ``_streams_groups`` counts."""
RUNNING: Final = 3
"""The number that Kafka reports for a running broker."""

_TOPIC_COUNTERS: Final = (
    (catalog.MESSAGES_IN, "messages_in"),
    (catalog.BYTES_IN, "bytes_in"),
    (catalog.BYTES_OUT, "bytes_out"),
    (catalog.REPLICATION_BYTES_IN, "replication_bytes_in"),
    (catalog.REPLICATION_BYTES_OUT, "replication_bytes_out"),
    (catalog.BYTES_REJECTED, "bytes_rejected"),
    (catalog.TOTAL_PRODUCE_REQUESTS, "total_produce_requests"),
    (catalog.FAILED_PRODUCE_REQUESTS, "failed_produce_requests"),
    (catalog.TOTAL_FETCH_REQUESTS, "total_fetch_requests"),
    (catalog.FAILED_FETCH_REQUESTS, "failed_fetch_requests"),
)
_PER_PARTITION: Final = (
    catalog.LOG_SIZE,
    catalog.LOG_START_OFFSET,
    catalog.LOG_END_OFFSET,
    catalog.LOG_SEGMENTS,
    catalog.TOPIC_CURRENT_OFFSET,
    catalog.TOPIC_OLDEST_OFFSET,
    catalog.LAST_STABLE_OFFSET_LAG,
    catalog.PARTITION_UNDER_MIN_ISR,
    catalog.PARTITION_AT_MIN_ISR,
    catalog.PARTITION_REPLICAS,
    catalog.TOPIC_REPLICAS,
    catalog.TOPIC_IN_SYNC,
    catalog.TOPIC_LEADER,
    catalog.TOPIC_PREFERRED,
    catalog.TOPIC_UNDER_REPLICATED,
)
_REPLICA_MANAGER: Final = (
    catalog.PARTITION_COUNT,
    catalog.LEADER_COUNT,
    catalog.OFFLINE_REPLICA_COUNT,
    catalog.UNDER_REPLICATED,
    catalog.UNDER_MIN_ISR_COUNT,
    catalog.AT_MIN_ISR_COUNT,
    catalog.FETCH_SESSIONS,
    catalog.FETCH_SESSION_PARTITIONS,
)
_TRANSACTIONS: Final = (catalog.TRANSACTIONAL_IDS, catalog.OLDEST_TRANSACTION, catalog.MISSING_MARKERS)
_QUOTAS: Final = {
    Kind.PRODUCE: (catalog.PRODUCE_BYTE_RATE, catalog.PRODUCE_THROTTLE_TIME),
    Kind.FETCH: (catalog.FETCH_BYTE_RATE, catalog.FETCH_THROTTLE_TIME),
    Kind.REQUEST: (catalog.REQUEST_TIME, catalog.REQUEST_THROTTLE_TIME),
}
_CLUSTER: Final = (
    catalog.OFFLINE_PARTITIONS,
    catalog.GLOBAL_TOPICS,
    catalog.GLOBAL_PARTITIONS,
    catalog.ACTIVE_BROKERS,
    catalog.FENCED_BROKERS,
    catalog.PREFERRED_IMBALANCE,
)


def _watch_scrub(registry: Registry, scrubs: Callable[[], tuple[Scrubbing | MetadataScrub, ...]]) -> None:
    registry.watch(catalog.DAMAGED, lambda: sum(each.damaged for each in scrubs()))
    registry.watch(catalog.SCRUB_BYTES, lambda: sum(each.bytes for each in scrubs()))
    registry.watch(catalog.SCRUB_FOUND, lambda: sum(each.found for each in scrubs()))
    registry.watch(catalog.SCRUB_PASS, lambda: max(each.pass_s for each in scrubs()))
    registry.watch(catalog.SCRUB_ENDED, lambda: min(each.ended_ms for each in scrubs()) / 1000)


def on_loop(parts: BrokerParts) -> Registry:
    """Metrics of the node's own objects; call ``collect`` on the loop."""
    registry = Registry()
    broker = parts.broker
    registry.watch_group([metric for metric, _ in _TOPIC_COUNTERS], lambda: _topic_counters(parts))
    registry.watch_group(_PER_PARTITION, lambda: _partitions(broker.replicas.partitions()))
    registry.watch_group(_REPLICA_MANAGER, lambda: _single(map(broker.replicas.gauges().__getitem__, _names(_REPLICA_MANAGER))))
    _watch_replication(registry, parts)
    registry.watch(catalog.LATE_TRANSACTIONS, lambda: parts.housekeeping.late.count)
    _watch_scrub(registry, lambda: (parts.housekeeping.scrubbing, parts.membership.replica.scrub))
    registry.watch(catalog.MENDED, lambda: parts.replication.repairing.mended)
    registry.watch(
        catalog.PRODUCER_IDS, lambda: sum(len(p.log.producers.entries) for p in broker.replicas.partitions() if p.log is not None)
    )
    registry.watch_group((catalog.GROUP_OFFSET, catalog.GROUP_LAG, catalog.GROUP_MEMBERS), lambda: _groups(parts))
    _watch_shares(registry, parts)
    registry.watch_group((catalog.STREAMS_GROUPS,), lambda: [_streams_groups(parts)])
    registry.watch(catalog.STREAMS_REBALANCES, lambda: broker.streams_rebalances)
    registry.watch_group(_TRANSACTIONS, lambda: _transactions(parts))
    registry.watch_group([metric for pair in _QUOTAS.values() for metric in pair], lambda: _quotas(parts))
    replica = parts.membership.replica
    _watch_quorum(registry, replica)
    _watch_dirs(registry, parts.logs.manager.dirs)
    watch_syncs(registry, parts.logs.manager.fs)
    registry.watch(catalog.BROKER_STATE, lambda: RUNNING)
    _watch_process(registry, parts.runtime, replica, lambda: [*parts.listeners, *replica.listeners])
    return registry


def of_controller(replica: MetadataReplica, log_dir: LogDir, fs: FileSystem) -> Registry:
    """Metrics of a process that is only a controller."""
    registry = Registry()
    _watch_quorum(registry, replica)
    _watch_scrub(registry, lambda: (replica.scrub,))
    _watch_dirs(registry, [log_dir])
    watch_syncs(registry, fs)
    _watch_process(registry, replica.runtime, replica, lambda: replica.listeners)
    return registry


def _watch_replication(registry: Registry, parts: BrokerParts) -> None:
    changes = parts.broker.replicas.isr_changes
    registry.watch(catalog.ISR_SHRINKS, lambda: changes.shrinks)
    registry.watch(catalog.ISR_EXPANDS, lambda: changes.expansions)
    registry.watch(catalog.FAILED_ISR_UPDATES, lambda: changes.failures)
    registry.watch_group(
        (catalog.FETCHER_LAG, catalog.FETCHER_MAX_LAG, catalog.FETCHER_FAILED),
        lambda: _fetchers(parts.replication.fetchers.values()),
    )


def _watch_shares(registry: Registry, parts: BrokerParts) -> None:
    """Nothing is read, and no module imported for it, before a cluster has share groups."""
    shares = parts.broker.shares

    @cache
    def metrics() -> ShareMetrics:
        from tidelog.server.upkeep.share_metrics import ShareMetrics

        return ShareMetrics(parts.broker)

    registry.watch_group(catalog.SHARES, lambda: metrics().look() if shares.exists else [()] * len(catalog.SHARES))
    registry.watch_summaries([catalog.SHARE_LOAD_TIME], lambda: [metrics().load_times() if shares.exists else []])


def _fetchers(fetchers: Iterable[Following]) -> list[list[Sample]]:
    lags: list[Sample] = []
    greatest = failed = 0
    for fetcher in fetchers:
        client = f"ReplicaFetcherThread-{fetcher.number}-{fetcher.leader}"
        for partition, lag in fetcher.machine.lags():
            lags.append(((client, partition.topic, str(partition.index)), lag))
            greatest = max(greatest, lag)
        failed += fetcher.machine.failed_partitions
    return [lags, [(("Replica",), greatest)], [(("Replica",), failed)]]


def in_thread(log_dirs: Iterable[str]) -> Registry:
    """The operating system's metrics of this process and its disks; call ``collect`` where blocking is allowed."""
    registry = Registry()
    paths = tuple(log_dirs)
    registry.watch(catalog.LOG_DIR_FREE, lambda: list(_free_space(paths)))
    registry.watch(catalog.DISK_READ, lambda: _disk_bytes("read_bytes"))
    registry.watch(catalog.DISK_WRITE, lambda: _disk_bytes("write_bytes"))
    return registry


def _names(metrics: Iterable[catalog.Metric]) -> list[str]:
    return [metric.name for metric in metrics]


def _single(values: Iterable[float]) -> list[list[Sample]]:
    """Samples of metrics without labels."""
    return [[((), value)] for value in values]


def _topic_counters(parts: BrokerParts) -> list[list[Sample]]:
    replicas = parts.broker.replicas
    rows = [("", replicas.hosted.totals()), *replicas.hosted.topic_stats().items()]
    return [[((topic,), getattr(stats, name)) for topic, stats in rows] for _, name in _TOPIC_COUNTERS]


def _partitions(partitions: Iterator[Partition]) -> list[list[Sample]]:
    samples: list[list[Sample]] = [[] for _ in _PER_PARTITION]
    size, start, end, segments, current, oldest, unstable, *others = samples
    under_min, at_min, replicas, all_replicas, in_sync, leader, preferred, under = others
    for partition in partitions:
        labels = (partition.topic, str(partition.index))
        log = partition.log
        if log is not None:
            size.append((labels, log.files.segments.size_bytes))
            start.append((labels, log.log_start_offset))
            end.append((labels, log.log_end_offset))
            segments.append((labels, len(log.segments)))
            current.append((labels, log.high_watermark))
            oldest.append((labels, log.log_start_offset))
            unstable.append((labels, log.high_watermark - log.last_stable_offset))
        under_min.append((labels, int(partition.spare_in_sync < 0)))
        at_min.append((labels, int(partition.spare_in_sync == 0)))
        count = len(partition.replicas)
        replicas.append((labels, count))
        all_replicas.append((labels, count))
        in_sync.append((labels, len(partition.isr)))
        leader.append((labels, partition.leader))
        preferred.append((labels, int(bool(count) and partition.leader == partition.replicas[0])))
        under.append((labels, int(len(partition.isr) < count)))
    return samples


def _groups(parts: BrokerParts) -> list[list[Sample]]:
    """Committed offsets, lag and members of the groups whose coordinator is here; lag only for partitions that have a replica
    here."""
    offsets: list[Sample] = []
    lags: list[Sample] = []
    members: list[Sample] = []
    machines = parts.broker.groups.machines()
    for machine in [] if isinstance(machines, ErrorCode) else machines:
        members += [((group_id,), len(group.members)) for group_id, group in machine.groups.items()]
        for group_id in machine.offsets.stored.group_ids():
            for (topic, index), committed in machine.offsets.stored.of(group_id).items():
                labels = (group_id, topic, str(index))
                offsets.append((labels, committed.offset))
                partition = parts.broker.replicas.by_name(topic, index)
                if not isinstance(partition, ErrorCode) and partition.log is not None:
                    lags.append((labels, max(0, partition.log.high_watermark - committed.offset)))
    return [offsets, lags, members]


def _streams_groups(parts: BrokerParts) -> list[Sample]:
    """Streams groups whose coordinator is here, by state."""
    machines = parts.broker.groups.machines()
    found = Counter(dict.fromkeys(StreamsGroupState, 0))
    for machine in [] if isinstance(machines, ErrorCode) else machines:
        for group in machine.groups.values():
            kind = machine.kind_of(group)
            if kind.name == STREAMS:
                found[StreamsGroupState(kind.state_name(group))] += 1
    return [((state.value,), count) for state, count in found.items()]


def _transactions(parts: BrokerParts) -> list[list[Sample]]:
    """Transaction counts of this node's coordinators, in the order of ``_TRANSACTIONS``."""
    machines = parts.broker.transactions.machines()
    if isinstance(machines, ErrorCode):
        return [[] for _ in _TRANSACTIONS]
    states: list[Sample] = [((NAMES[state],), count) for state, count in count_by_state(machines).items()]
    started = [known.start_ms for known in open_transactions(machines)[:1]]
    age_s = max(0, parts.runtime.even_ms() - started[0]) / 1000 if started else 0
    missing = sum(machine.missing_markers for machine in machines)
    return [states, [((), age_s)], [((), missing)]]


def _quotas(parts: BrokerParts) -> list[list[Sample]]:
    samples: dict[Kind, tuple[list[Sample], list[Sample]]] = {kind: ([], []) for kind in _QUOTAS}
    for seen in parts.broker.quotas.observe(parts.runtime.even_ms()):
        rates, waits = samples[seen.kind]
        rates.append((tuple(seen.client), seen.rate))
        waits.append((tuple(seen.client), seen.throttle_ms))
    return [each for pair in samples.values() for each in pair]


def _cluster(image: ClusterImage) -> tuple[int, ...]:
    """The values of ``_CLUSTER``, in its order."""
    offline = imbalanced = partitions = 0
    for topic in image.topics.by_name.values():
        partitions += len(topic.partitions)
        for partition in topic.partitions:
            offline += partition.leader == NO_BROKER
            imbalanced += bool(partition.replicas) and partition.leader != partition.replicas[0]
    fenced = sum(broker.fenced for broker in image.brokers.values())
    return offline, len(image.topics.by_name), partitions, len(image.brokers) - fenced, fenced, imbalanced


def _broker_info(image: ClusterImage) -> list[Sample]:
    samples: list[Sample] = []
    for broker in image.brokers.values():
        endpoint = next(iter(broker.endpoints.values()), None)
        address = address_text(endpoint.host, endpoint.port) if endpoint is not None else ""
        samples.append(((str(broker.id), address), 1))
    return samples


def _watch_quorum(registry: Registry, replica: MetadataReplica) -> None:
    """Metrics of the metadata quorum, and of the cluster as its log describes it."""
    member = replica.member
    raft = member.machine
    registry.watch(catalog.ACTIVE_CONTROLLER, lambda: int(member.controller is not None))
    registry.watch(catalog.RAFT_STATE, lambda: [((role.value,), int(raft.role is role)) for role in Role])
    registry.watch(catalog.RAFT_LEADER, lambda: raft.leader_id)
    registry.watch(catalog.RAFT_EPOCH, lambda: raft.epoch)
    registry.watch(catalog.RAFT_HIGH_WATERMARK, lambda: raft.high_watermark)
    registry.watch(catalog.RAFT_LOG_END, lambda: member.log.end_offset)
    registry.watch_group(_CLUSTER, lambda: _single(_cluster(replica.image)))
    registry.watch(
        catalog.TOPIC_PARTITIONS, lambda: [((t.name,), len(t.partitions)) for t in replica.image.topics.by_name.values()]
    )
    news = replica.news.partitions
    registry.watch(catalog.ELECTIONS, lambda: news.elections)
    registry.watch(catalog.UNCLEAN_ELECTIONS, lambda: news.unclean_elections)
    registry.watch(catalog.ELIGIBLE_ELECTIONS, lambda: news.eligible_elections)
    registry.watch(catalog.BROKERS, lambda: len(replica.image.brokers))
    registry.watch(catalog.BROKER_INFO, lambda: _broker_info(replica.image))


def _watch_dirs(registry: Registry, dirs: Sequence[LogDir]) -> None:
    registry.watch(catalog.OFFLINE_LOG_DIRS, lambda: sum(not each.online for each in dirs))
    registry.watch(catalog.LOG_DIR_OFFLINE, lambda: [((each.path,), int(not each.online)) for each in dirs])


def _watch_process(
    registry: Registry, runtime: LoopRuntime, replica: MetadataReplica, listeners: Callable[[], list[Listener]]
) -> None:
    loop = runtime.loop
    began = loop.time()
    idle = IdleShare(loop.time, time.thread_time)
    registry.watch_group((catalog.LOOP_IDLE_NETWORK, catalog.LOOP_IDLE_HANDLERS), lambda: _single([idle.look()] * 2))
    registry.watch(catalog.CONNECTIONS, lambda: [((each.name,), len(each.connections)) for each in listeners()])
    registry.watch(catalog.REFUSED_CONNECTIONS, lambda: [((each.name,), each.refused) for each in listeners()])
    registry.watch(catalog.VIOLATIONS, lambda: [((each.name,), each.violations.total) for each in listeners()])
    _watch_tls(registry, replica, listeners)
    watch_requests(registry, runtime, listeners)
    registry.watch_group((*catalog.AUTHORIZATIONS, catalog.ACLS), Authorizations(replica.access, loop.time).look)
    dry_run = None if replica.access is None else replica.access.dry_run
    registry.watch(catalog.DRY_RUN_DENIALS, lambda: [] if dry_run is None else dry_run.denials)
    audit = replica.audit
    registry.watch(catalog.AUDIT_EVENTS, lambda: [] if audit is None else audit.written)
    registry.watch(
        catalog.AUDIT_LEFT_OUT,
        lambda: [] if audit is None else [((reason,), count) for reason, count in audit.left_out._asdict().items()],
    )
    registry.watch(catalog.UPTIME, lambda: loop.time() - began)
    registry.watch(catalog.INFO, lambda: [((__version__, str(replica.config.node_id), replica.cluster_id), 1)])


class Authorizations:
    """What the authorizer was asked, a minute, under Kafka's names; nothing on a node without one."""

    _LABELS: Final = ("authorizer.class.name", "StandardAuthorizer")

    def __init__(self, access: AclAccessControl | None, now: Callable[[], float]) -> None:
        self._access = access
        self._now = now
        self._looks: deque[tuple[float, int, int]] = deque([(now(), 0, 0)])
        """(time, allowed, denied) of the last minute's looks, and of one before."""

    def look(self) -> list[list[Sample]]:
        """Samples of requests, allowed, denied and ACLs."""
        access = self._access
        if access is None:
            return [[], [], [], []]
        at = self._now()
        self._looks.append((at, access.allowed, access.denied))
        while len(self._looks) > 2 and self._looks[1][0] <= at - MINUTE_S:
            self._looks.popleft()
        began, allowed, denied = self._looks[0]
        minutes = max(at - began, 1) / MINUTE_S
        rates = (access.allowed - allowed) / minutes, (access.denied - denied) / minutes
        return [[(self._LABELS, value)] for value in (sum(rates), *rates, access.acls)]


def _watch_tls(registry: Registry, replica: MetadataReplica, listeners: Callable[[], list[Listener]]) -> None:
    def secured() -> list[tuple[tuple[str], TlsListener]]:
        return [((each.name,), each.tls) for each in listeners() if each.tls is not None]

    registry.watch(catalog.TLS_HANDSHAKES, lambda: [(labels, each.completed) for labels, each in secured()])
    registry.watch(catalog.TLS_FAILED, lambda: [(labels, each.failures) for labels, each in secured()])
    registry.watch(catalog.TLS_PLAIN, lambda: [(labels, each.plain_bytes) for labels, each in secured()])
    registry.watch(catalog.TLS_EXPIRY, lambda: [] if replica.tls is None else _expiries(replica.tls))


def _expiries(tls: NodeTls) -> list[Sample]:
    return [((name,), end_ms / 1000) for name, end_ms in tls.expiries().items()]


class IdleShare:
    """The share of time in which a thread was idle since the last call of ``look``, which that thread must make."""

    def __init__(self, wall: Callable[[], float], busy: Callable[[], float]) -> None:
        """``wall`` and ``busy``: seconds passed, and seconds of CPU that the thread used."""
        self._wall = wall
        self._busy = busy
        self._last = (wall(), busy())
        self._share = 1.0

    def look(self) -> float:
        """From 0 (always busy) to 1."""
        now = (self._wall(), self._busy())
        passed = now[0] - self._last[0]
        if passed > 0:
            self._share = min(1.0, max(0.0, 1 - (now[1] - self._last[1]) / passed))
            self._last = now
        return self._share


def _free_space(paths: Iterable[str]) -> Iterator[Sample]:
    for path in paths:
        try:
            _, free = posix.space(path)
        except OSError:
            continue  # another metric reports offline dirs
        yield (path,), free


def _disk_bytes(field: str) -> list[Sample]:
    """Linux's I/O counters of this process; empty on other systems."""
    try:
        with open("/proc/self/io", encoding="ascii") as file:
            lines = dict(line.rstrip().split(": ") for line in file)
    except OSError:
        return []
    return [((), int(lines[field]))]
