"""The partitions of this broker.

Decided here: which partitions exist here (``apply`` follows the metadata log), what a failed log dir takes offline, and when logs
are flushed and cleaned. Failures of one partition are returned as values.

Invariants: a partition is hosted exactly while the metadata log places a replica here; at most one flush per partition runs at a
time, and a flush requested meanwhile is done by the next one.

Elsewhere: finding partitions (``hosted_partitions``), their rules (``partition``), moves between log dirs (``log_dir_moves``),
fetches (``fetch``, ``fetch_sessions``), log dirs (``storage.log_manager``).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator

from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, ClusterImage, TopicImage
from tidelog.model.errors import StorageFailure
from tidelog.model.ids import INTERNAL_TOPICS, TopicPartition, Uuid
from tidelog.model.ports import Rng
from tidelog.replication.alter_partition_requests import IsrChanges
from tidelog.replication.fetch import Fetch, Gate
from tidelog.replication.fetch_sessions import FetchContext, FetchSessionCache
from tidelog.replication.flush_intervals import needs_flush, next_flush, overdue
from tidelog.replication.hosted_partitions import HostedPartitions
from tidelog.replication.isr_and_high_watermark import grown, shrunk
from tidelog.replication.log_dir_jobs import Background, LogDirJobs
from tidelog.replication.log_dir_moves import LogDirMoves
from tidelog.replication.partition import Partition
from tidelog.replication.registered_brokers import RegisteredBrokers
from tidelog.replication.throttle import Throttles
from tidelog.replication.topic_stats import TopicStats
from tidelog.storage.flush_job import FlushJob
from tidelog.storage.log_manager import LogManager
from tidelog.storage.unified_log import UnifiedLog

logger = logging.getLogger(__name__)

CREATED_AT_ONCE, CREATED_IN_A_STEP = 50, 10
"""Logs created together with a metadata change, and with each ``create_step`` after it."""


class ReplicaManager:
    """All partitions of one broker.

    ``logs.config_for`` is called for topic settings after ``image`` is set, and must answer from it. ``background`` runs blocking
    work: flushes, checkpoints, removals. ``even_ms``: current time for the ages of fetches and lags.
    """

    def __init__(
        self,
        broker_id: int,
        logs: LogManager,
        *,
        background: Background,
        rng: Rng,
        even_ms: Callable[[], int],
        fetch_session_slots: int = 1000,
    ) -> None:
        self.broker_id = broker_id
        self.lag_max_ms = 30_000  # replica.lag.time.max.ms
        self.rack_aware = False
        """Whether consumers are sent to replicas in their own rack (KIP-392)."""
        self.even_ms = even_ms
        self.logs = logs
        self.image = ClusterImage()
        self.brokers = RegisteredBrokers()
        self.sessions = FetchSessionCache(rng, slots=fetch_session_slots)
        self._background = background
        self.dir_jobs = LogDirJobs(logs.upkeep, background, self._follow_failures)
        logs.call_on_roll(self._rolled)
        self.on_postponed: Callable[[], None] | None = None
        """Called when partitions are left for ``create_step``. Without a callback all are created at once."""
        self._to_create: dict[tuple[Uuid, int], None] = {}
        self._room = sys.maxsize
        self.hosted = HostedPartitions()
        self.by_name, self.by_id = self.hosted.by_name, self.hosted.by_id
        self.moves = LogDirMoves(logs)
        self.isr_changes = IsrChanges(broker_id)
        self.throttles = Throttles()
        self.moved: dict[Partition, None] = {}
        """Partitions whose leader, epoch, replicas or log changed since the fetchers last looked."""
        self.on_moved: Callable[[], None] | None = None
        """Called when ``moved`` grew without a metadata change; the fetchers look after each metadata change anyway."""
        self.on_mended: Callable[[UnifiedLog], None] | None = None
        """Called after a damaged range of a log was replaced."""

    # -- following the metadata log -------------------------------------------------------------------------------------

    def apply(self, delta: ClusterDelta, image: ClusterImage, now_ms: int) -> None:
        """Apply the changes that led to ``image``."""
        self.image = image
        self.brokers.follow(image)
        self.hosted.follow(image)
        self._room = CREATED_AT_ONCE if self.on_postponed is not None else sys.maxsize
        for topic_id in delta.topics.deleted:
            self._remove_topic(topic_id, now_ms)
        for topic_id, changed in delta.topics.changed.items():
            self._follow_topic(image.topics.by_id[topic_id], sorted(changed.changed), now_ms)
        if self._to_create and self.on_postponed is not None:
            self.on_postponed()
        self._follow_configs(delta)
        if delta.registrations.brokers.touched:
            # A broker that was fenced may rejoin the ISRs in which it has long caught up.
            for partition in self.partitions():
                partition.ask_isr(grown(partition, now_ms))

    def load(self, image: ClusterImage, now_ms: int) -> None:
        """Apply all of ``image``: at the start, or after a snapshot. Logs of partitions that are not in it become stray."""
        self.image = image
        self.brokers.follow(image)
        self.hosted.follow(image)
        self._room = sys.maxsize
        self._to_create.clear()
        for topic_id in self.hosted.not_in(image):
            self._remove_topic(topic_id, now_ms)
        for topic in image.topics.by_id.values():
            self._follow_topic(topic, range(len(topic.partitions)), now_ms)
        for log in list(self.logs.logs()):
            if not isinstance(self.by_name(*log.topic_partition), Partition):
                logger.warning("%s is not placed on this broker: its directory is set aside", log.topic_partition)
                self._set_aside(log)

    @property
    def postponed(self) -> int:
        """Partitions that the metadata places here but that are not created yet."""
        return len(self._to_create)

    def create_step(self, now_ms: int) -> list[Partition]:
        """Create some of the postponed partitions and return them, with the current metadata. They are also in ``moved``."""
        self._room, made = CREATED_IN_A_STEP, list[Partition]()
        while self._to_create and self._room > 0:
            topic_id, index = next(iter(self._to_create))
            del self._to_create[topic_id, index]
            image = self.image.topics.by_id.get(topic_id)
            if image is None or isinstance(self.by_id(topic_id, index), Partition):
                continue
            self._follow_topic(image, (index,), now_ms)
            found = self.by_id(topic_id, index)
            if isinstance(found, Partition):
                made.append(found)
        return made

    def _set_aside(self, log: UnifiedLog) -> None:
        try:
            self.logs.set_aside(log.topic_partition)
        except StorageFailure as failure:
            self.storage_failed(failure)

    def _follow_topic(self, image: TopicImage, changed: Iterable[int], now_ms: int) -> None:
        topic = self.hosted.topic(image.id)
        for index in changed:
            partition_image = image.partitions[index]
            hosted = topic.partitions.get(index) if topic is not None else None
            if self.broker_id not in partition_image.replicas:
                if topic is not None and hosted is not None:
                    del topic.partitions[index]
                    self.moved[hosted] = None
                    self._drop(hosted, now_ms)
                continue
            if hosted is None and not self._has_room(image.name):
                self._to_create[image.id, index] = None
                continue
            if topic is None:
                topic = self.hosted.add(image)
            if hosted is None:
                hosted = topic.partitions[index] = self._create(image, index, topic.stats, now_ms)
            hosted.update_metadata(partition_image, now_ms)
            self.moved[hosted] = None

    def _has_room(self, topic: str) -> bool:
        self._room -= 1
        # Coordinators look for their partitions when the metadata arrives.
        return self._room >= 0 or topic in INTERNAL_TOPICS

    def _create(self, topic: TopicImage, index: int, stats: TopicStats, now_ms: int) -> Partition:
        log: UnifiedLog | None = None
        try:
            directory = topic.partitions[index].directory(self.broker_id)
            log = self.logs.get_or_create(TopicPartition(topic.name, index), topic.id, now_ms, directory_id=directory)
        except StorageFailure as failure:
            self.storage_failed(failure)
        return Partition(topic.name, topic.id, index, broker_id=self.broker_id, log=log, stats=stats, host=self)

    def _remove_topic(self, topic_id: Uuid, now_ms: int) -> None:
        for partition in self.hosted.remove(topic_id):
            self.moved[partition] = None
            self._drop(partition, now_ms)

    def _drop(self, partition: Partition, now_ms: int) -> None:
        log = partition.log
        partition.mark_deleted()
        if log is None:
            return
        try:
            self.logs.delete_async(partition.topic_partition, now_ms)
        except StorageFailure as failure:
            self.storage_failed(failure)

    def _follow_configs(self, delta: ClusterDelta) -> None:
        touched = delta.configs.touched
        names = [name for kind, name in touched if kind == TOPIC_RESOURCE]
        if any(kind == BROKER_RESOURCE for kind, _ in touched):
            # A broker default may apply to every topic.
            names = self.hosted.names()
        for name in names:
            topic = self.hosted.topic_named(name)
            if topic is not None:
                config = self.logs.config_for(name)
                for partition in topic.partitions.values():
                    partition.set_config(config)

    # -- replicas elsewhere -----------------------------------------------------------------------------------------------

    def isr_wanted(self, partition: Partition) -> None:
        self.isr_changes.want(partition)

    def isr_step(self, now_ms: int) -> None:
        """Check for lagging followers; runs every half of replica.lag.time.max.ms."""
        for partition in self.partitions():
            if partition.leadership is not None:
                partition.ask_isr(shrunk(partition, now_ms))
                # A close follower outside the ISR that died silently held back the high watermark.
                partition.expose(now_ms)
                partition.ask_isr(grown(partition, now_ms))

    def partitions(self) -> Iterator[Partition]:
        """All partitions here, topic by topic."""
        return iter(self.hosted)

    def fetch(
        self,
        context: FetchContext,
        *,
        min_bytes: int,
        max_bytes: int,
        committed: bool,
        any_replica: bool = False,
        rack: str = "",
        gate: Gate | None = None,
    ) -> Fetch:
        """Read what ``context`` names, once; the result tells whether that is enough or has to wait.

        ``any_replica``: a consumer that may read from a follower; ``rack``: its rack, if it sent one (KIP-392).
        ``gate``: the client's permissions.
        """
        return Fetch(
            self,
            context,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            committed=committed,
            any_replica=any_replica,
            rack=rack if self.rack_aware else "",
            gate=gate,
        )

    # -- flushing, failing, keeping house -------------------------------------------------------------------------------

    def flush(self, partition: Partition) -> None:
        """Flush ``partition`` in the background. If a flush of it is running, the next one starts when that ends."""
        try:
            job = next_flush(partition)
        except StorageFailure as failure:
            self.storage_failed(failure)
            return
        if job is not None:
            self._background(job.run, lambda now_ms: self._flushed(partition, job, now_ms))

    def _flushed(self, partition: Partition, job: FlushJob, now_ms: int) -> None:
        try:
            partition.finish_flush(job, now_ms)
        except StorageFailure as failure:
            # After a failed sync the state of the disk is unknown: do not retry, take the dir offline.
            self.storage_failed(failure)
            return
        if needs_flush(partition):
            self.flush(partition)

    def _rolled(self, log: UnifiedLog) -> None:
        """A segment was closed: flush it soon, so that recovery after a crash need not scan it."""
        partition = self.by_name(*log.topic_partition)
        if isinstance(partition, Partition):
            self.flush(partition)

    def storage_failed(self, failure: StorageFailure) -> None:
        """Take the failed log dir's partitions offline; the others continue."""
        logger.error("%s; its partitions are offline until the node restarts with a working disk", failure)
        self.logs.fail_dir(failure.log_dir, failure.detail)
        self._follow_failures()

    def flush_step(self, now_ms: int) -> int:
        """Start the flushes that flush.ms demands by ``now_ms``; returns how many."""
        due = overdue(self.logs.logs(), now_ms)
        for log in due:
            self._rolled(log)
        return len(due)

    def retention_step(self, now_ms: int, records_ms: int) -> list[str]:
        """Remove from the logs the segments that are too old (by ``records_ms``) or exceed the size limit; returns one reason
        per segment."""
        reasons = self.logs.upkeep.retain(now_ms, records_ms)
        self._follow_failures()
        for partition in self.partitions():
            partition.look_at_log_start()
        return reasons

    def _follow_failures(self) -> None:
        """Take partitions offline whose log dir failed."""
        for partition in self.partitions():
            if partition.log is not None and partition.log.failure is not None:
                partition.go_offline()
                self.moved[partition] = None
        if self.moved and self.on_moved is not None:
            self.on_moved()

    def gauges(self) -> dict[str, int]:
        """Kafka's gauges of ReplicaManager and FetchSessionCache, under their Prometheus names."""
        return self.hosted.gauges() | {
            "kafka_server_fetchsessioncache_numincrementalfetchsessions": len(self.sessions),
            "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached": self.sessions.partition_count,
        }
