"""One partition of this broker: its log and its state in the cluster.

Decided here: which client may append and read and with which leader epoch (KIP-320 fencing), and how far consumers may see (high
watermark, last stable offset).

A leader's high watermark is the offset up to which all in-sync replicas hold the log (``isr_and_high_watermark``), never beyond
the flushed part while the topic's settings demand a flush. It never moves back. A follower's is the leader's, up to its log end.

Only the methods here write a partition's fields, which are plain for fast reads, and a test looks for other writers. The rules
beside it read a ``PartitionView`` and return values: a read (``reads``), the ISR to ask for (``isr_and_high_watermark``), what a
flush covers (``flushing``), how far records go (``delete_records``), what an append is answered (``acks_and_min_isr``), offsets
by time or epoch (``offset_lookup``).

``append`` is the hot path: it returns a plain value with the error code of this partition. A StorageFailure concerns a whole log
dir: it is reported to the host (``replica_manager``), and the request gets KAFKA_STORAGE_ERROR.

``now_ms`` is wall-clock time, for records; ``even_ms`` is the even clock's, for lags. Elsewhere: the log itself (``storage``),
parked requests (``purgatory``), the followers (``leadership``), the set of partitions (``replica_manager``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from tidelog.metadata.image import PartitionImage
from tidelog.model import ids
from tidelog.model.errors import ErrorCode, StorageFailure
from tidelog.model.ids import TopicPartition, Uuid
from tidelog.replication.acks_and_min_isr import ACKS_ALL, refusal, refused
from tidelog.replication.delete_records import new_log_start
from tidelog.replication.isr_and_high_watermark import grown, least_end, may_join
from tidelog.replication.leadership import Leadership
from tidelog.replication.partition_view import HostView
from tidelog.replication.purgatory import Tail, Watcher, tell_state_changed, tell_watchers
from tidelog.replication.replica import Caller
from tidelog.replication.topic_stats import TopicStats
from tidelog.replication.unmended import Unmended
from tidelog.storage.append_rules import AppendResult
from tidelog.storage.flush_job import FlushJob
from tidelog.storage.log_config import LogConfig, Origin
from tidelog.storage.unified_log import UnifiedLog
from tidelog.storage.validation import DeepValidation, Verdict
from tidelog.storage.verification_guard import Verification

# Looking up an enum member costs more than looking up a global.
NONE = ErrorCode.NONE
_CLIENT = Origin.CLIENT
_COORDINATOR = Origin.COORDINATOR


class PartitionHost(HostView, Protocol):
    """The replica manager, as a partition calls it."""

    def even_ms(self) -> int:
        """Current time for lags; setting the wall clock does not move it."""
        ...

    def flush(self, partition: Partition) -> None:
        """Flush its log in the background, then call ``finish_flush``."""
        ...

    def isr_wanted(self, partition: Partition) -> None:
        """Ask the controller for ``leadership.pending``."""
        ...


class Partition:
    """A partition on this broker. ``log`` is None while its log dir is offline."""

    __slots__ = (
        "_min_insync_replicas",
        "_told_log_start",
        "_unexposed_bytes",
        "broker_id",
        "deleted",
        "flush_needed_to",
        "host",
        "index",
        "is_internal",
        "is_leader",
        "isr",
        "leader",
        "leader_epoch",
        "leader_epoch_start_offset",
        "leadership",
        "log",
        "partition_epoch",
        "produce_frames",
        "replicas",
        "spare_in_sync",
        "stats",
        "tail",
        "topic",
        "topic_id",
        "topic_partition",
        "unmended",
        "watchers",
    )

    def __init__(
        self,
        topic: str,
        topic_id: Uuid,
        index: int,
        broker_id: int,
        log: UnifiedLog | None,
        stats: TopicStats,
        host: PartitionHost,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.topic_partition = TopicPartition(topic, index)
        self.broker_id = broker_id
        self.log = log
        self.stats = stats
        self.host = host
        self.leader = ids.NO_BROKER
        self.leader_epoch = ids.NO_EPOCH
        self.partition_epoch = -1
        self.leader_epoch_start_offset = ids.NO_OFFSET
        self.is_leader = False
        self.is_internal = topic in ids.INTERNAL_TOPICS
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.leadership: Leadership | None = None
        """State of the followers, while this broker leads and there are any."""
        self.deleted = False
        self.watchers: dict[Watcher, Any] = {}
        """Waiting for what consumers may see, and for acknowledgements."""
        self.tail = Tail()
        """Followers waiting for the log end."""
        self._min_insync_replicas = 1
        self.spare_in_sync = -1
        """In-sync replicas beyond min.insync.replicas; negative: there are too few."""
        self.unmended = Unmended()
        self.produce_frames: dict[int, tuple[Callable[..., bytes], int, bytes]] = {}
        """Templates of a Produce response about this partition alone, by version; kept by the handler."""
        self._unexposed_bytes = 0
        """Approximate bytes appended but not yet visible to consumers."""
        self.flush_needed_to = ids.NO_OFFSET
        """A pending acknowledgement needs the log flushed up to this offset."""
        self._told_log_start = log.log_start_offset if log is not None else ids.NO_OFFSET

    # -- what the cluster says ------------------------------------------------------------------------------------------

    def update_metadata(self, image: PartitionImage, even_ms: int = 0) -> None:
        """Apply the metadata: leader, epochs, ISR. Waiting requests look again when the leadership moved.

        An image older than the controller's answer to an ISR change does not undo that change.
        """
        known = self.leader, self.isr, self.replicas
        if image.leader_epoch == self.leader_epoch and (
            image.partition_epoch < self.partition_epoch
            or (image.partition_epoch == self.partition_epoch and known == (image.leader, image.isr, image.replicas))
        ):
            # A requested ISR change may be in force by now: it counts until the controller answers.
            return
        led_before = self.is_leader
        moved = image.leader_epoch != self.leader_epoch or image.leader != self.leader
        self.leader = image.leader
        self.partition_epoch = image.partition_epoch
        self.replicas = image.replicas
        self.isr = image.isr
        self.is_leader = image.leader == self.broker_id
        self._count_in_sync()
        if moved:
            self.leader_epoch = image.leader_epoch
            if self.is_leader and self.log is not None:
                # The epoch cache learns the epoch with its first batch; until then the epoch starts here.
                self.leader_epoch_start_offset = self.log.log_end_offset
        followers = tuple(each for each in self.replicas if each != self.broker_id)
        if not self.is_leader or not followers:
            self.leadership = None
        elif self.leadership is None:
            self.leadership = Leadership(followers, self.isr, even_ms)
        else:
            self.leadership.assign(followers, self.isr, even_ms, elected=moved)
        self.expose(even_ms)
        self.ask_isr(grown(self, even_ms))
        if moved or led_before != self.is_leader:
            tell_state_changed(self)

    def ask_isr(self, isr: tuple[int, ...] | None) -> None:
        """Ask the controller for ``isr``, a plan of ``isr_and_high_watermark``; None asks for nothing."""
        if isr is not None and self.leadership is not None:
            self.leadership.ask(isr)
            self.host.isr_wanted(self)

    def take_over_isr(self, isr: tuple[int, ...], partition_epoch: int, even_ms: int) -> None:
        """The controller agreed to an ISR change; the metadata will follow."""
        assert self.leadership is not None
        self.isr, self.partition_epoch = isr, partition_epoch
        self._count_in_sync()
        self.leadership.settle(isr)
        self.expose(even_ms)
        self.ask_isr(grown(self, even_ms))

    def set_config(self, config: LogConfig) -> None:
        if self.log is not None:
            self.log.set_config(config)
            self._count_in_sync()

    def _count_in_sync(self) -> None:
        if self.log is not None:
            # min.insync.replicas, but at most the number of replicas.
            self._min_insync_replicas = min(self.log.config.min_insync_replicas, len(self.replicas) or 1)
        self.spare_in_sync = len(self.isr) - self._min_insync_replicas

    def go_offline(self) -> None:
        """The log dir failed: every request gets KAFKA_STORAGE_ERROR from now on."""
        self.log = None
        self.flush_needed_to = ids.NO_OFFSET
        tell_state_changed(self)

    def replace_log(self, log: UnifiedLog) -> None:
        """The log was copied to another log dir. A flush still running on the old log no longer matters."""
        assert self.log is not None and log.log_end_offset == self.log.log_end_offset, "not a copy of this log"
        self.log = log
        self.host.flush(self)

    def mark_deleted(self) -> None:
        """The topic was deleted or the replica moved away; wake the waiting requests."""
        self.deleted = True
        self.is_leader = False
        self.leadership = None
        tell_state_changed(self)

    def truncated(self) -> None:
        """The log ends earlier or starts later now; wake the waiting requests."""
        self._unexposed_bytes = 0
        self.flush_needed_to = ids.NO_OFFSET
        tell_state_changed(self)

    @property
    def last_stable_offset(self) -> int:
        """The end of the log for read_committed readers; -1 while the log is offline."""
        return self.log.last_stable_offset if self.log is not None else ids.NO_OFFSET

    def look_at_log_start(self) -> None:
        """Wake the watchers if the log start moved since the last report; retention moves it silently."""
        if self.log is not None and self.log.log_start_offset != self._told_log_start:
            self._told_log_start = self.log.log_start_offset
            tell_state_changed(self)

    def check_leader(self, leader_epoch: int, *, any_replica: bool = False) -> ErrorCode:
        """May a client with ``leader_epoch`` (-1: unknown) be served by this leader, or by ``any_replica``?"""
        if self.log is None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if leader_epoch >= 0 and leader_epoch != self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH if leader_epoch < self.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
        return NONE if self.is_leader or (any_replica and not self.deleted) else ErrorCode.NOT_LEADER_OR_FOLLOWER

    # -- appending ------------------------------------------------------------------------------------------------------

    def append(
        self, records: memoryview, now_ms: int, acks: int, *, zstd_allowed: bool = True, proof: Verification | None = None
    ) -> AppendResult | DeepValidation:
        """Append a client's batch as the leader and expose what is safe. ``records`` is patched in place.

        ``proof``: held while the coordinator confirmed the transaction, for its first batch here. Returns a DeepValidation when
        walking the batch takes long: run it in a thread, then call ``append_validated`` with its verdict.
        """
        log = self.log
        if log is None or not self.is_leader or (acks == ACKS_ALL and self.spare_in_sync < 0):
            self.stats.refused(len(records))
            return refused(refusal(self, acks))
        verdict = log.validate(records, now_ms, zstd_allowed=zstd_allowed)
        if (deep := verdict.deep) is not None:
            if deep.is_long:
                return deep
            verdict = deep.run()
        return self._append(log, verdict, now_ms, _CLIENT, proof=proof)

    def append_validated(self, verdict: Verdict, now_ms: int, acks: int, *, proof: Verification | None = None) -> AppendResult:
        """The second half of an append whose batch was validated in a thread."""
        log = self.log
        if log is None or not self.is_leader or (acks == ACKS_ALL and self.spare_in_sync < 0):
            self.stats.refused(len(verdict.records))
            return refused(refusal(self, acks))
        return self._append(log, verdict, now_ms, _CLIENT, proof=proof)

    def append_own(
        self, records: memoryview, now_ms: int, *, transaction_version: int = 0, proof: Verification | None = None
    ) -> AppendResult:
        """Append a coordinator's batch. It is safe when ``is_safe(last_offset, ACKS_ALL)`` is True.

        ``transaction_version``: of a marker. ``proof``: for the first batch of a transaction, as in ``append``.
        """
        log = self.log
        if log is None or not self.is_leader or self.spare_in_sync < 0:
            return refused(refusal(self, ACKS_ALL))
        verdict = log.validate(records, now_ms, origin=_COORDINATOR)
        return self._append(log, verdict, now_ms, _COORDINATOR, transaction_version=transaction_version, proof=proof)

    def _append(
        self,
        log: UnifiedLog,
        verdict: Verdict,
        now_ms: int,
        origin: Origin,
        *,
        transaction_version: int = 0,
        proof: Verification | None = None,
    ) -> AppendResult:
        size, epoch = len(verdict.records), self.leader_epoch
        try:
            result = log.append_validated(
                verdict, epoch, now_ms, origin=origin, transaction_version=transaction_version, proof=proof
            )
        except StorageFailure as failure:
            self.host.storage_failed(failure)
            self.stats.refused(size)
            return refused(ErrorCode.KAFKA_STORAGE_ERROR)
        if result.error is not NONE:
            self.stats.refused(size)
        elif result.duplicate:
            self.stats.total_produce_requests += 1
        else:
            end = result.last_offset + 1
            if result.needs_flush:
                self.demand_flush(end)
            self.appended(log, size, result.first_offset, end)
        return result

    def appended(self, log: UnifiedLog, size: int, first_offset: int, end: int) -> None:
        """A new batch of ``size`` bytes is in the log: count it, and expose what is safe. ``end``: the log's end after it."""
        self.stats.appended(size, end - first_offset)
        self._unexposed_bytes += size
        leadership = self.leadership
        if leadership is not None:
            # The high watermark moves when followers fetch beyond it.
            if leadership.quiet:
                leadership.appending(first_offset)
            if self.tail.watchers:
                self.tail.tell(self, size)
            if len(leadership.maximal_isr) == 1:
                self.expose(self.host.even_ms())  # not by the wall clock of the append
        elif self.flush_needed_to < 0:
            log.update_high_watermark(end)
            if self.watchers:
                tell_watchers(self, self._unexposed_bytes)
            self._unexposed_bytes = 0

    def expose(self, even_ms: int) -> None:
        """Raise the high watermark to what is safe now and wake its watchers."""
        log = self.log
        if log is None or not self.is_leader:
            return
        end = log.log_end_offset
        if self.flush_needed_to >= 0:
            end = min(end, log.recovery_point)
        if self.leadership is not None:
            if end <= log.high_watermark or self.spare_in_sync < 0:
                return
            end = least_end(self.leadership, self.host, end, log.log_end_offset, even_ms)
        if end <= log.high_watermark:
            return
        log.update_high_watermark(end)
        if self.watchers:
            tell_watchers(self, self._unexposed_bytes)
        if self.tail.watchers:
            # If consumers fetch from followers, the followers need the new high watermark at once.
            self.tail.tell(self, 1 if self.host.rack_aware else 0)
        if end == log.log_end_offset:
            self._unexposed_bytes = 0

    def is_safe(self, last_offset: int, acks: int) -> bool:
        """Whether records up to ``last_offset`` may be acknowledged: flushed if the topic demands it, replicated for acks=all."""
        log = self.log
        if log is None:
            return False
        if acks == ACKS_ALL:
            return log.high_watermark > last_offset
        return not log.recovery_point <= last_offset < self.flush_needed_to

    # -- flushing -------------------------------------------------------------------------------------------------------

    def demand_flush(self, upto: int) -> None:
        """Flush what was appended below ``upto`` before it counts as safe."""
        self.flush_needed_to = upto
        self.host.flush(self)

    def finish_flush(self, job: FlushJob, even_ms: int) -> None:
        """``job`` has run: expose what it made safe. StorageFailure when it failed; every later flush of this log fails too."""
        log = self.log
        if log is None or self.deleted or job.directory != log.dir:
            return
        log.flushed(job, even_ms)
        if log.recovery_point >= self.flush_needed_to:
            self.flush_needed_to = ids.NO_OFFSET
        self.expose(even_ms)
        if self.watchers:
            # acks=1 waits only for the flush, which may finish without moving the high watermark.
            tell_watchers(self, 0)

    # -- followers ------------------------------------------------------------------------------------------------------

    def note_follower(self, log: UnifiedLog, caller: Caller, offset: int, log_start_offset: int, leader_epoch: int) -> ErrorCode:
        """A follower's fetch says how far it is. An error if it is not a known replica; its metadata may be ahead of ours."""
        leadership = self.leadership
        replica = leadership.replicas.get(caller.broker_id) if leadership is not None else None
        if leadership is None or replica is None:
            return ErrorCode.UNKNOWN_LEADER_EPOCH if leader_epoch >= 0 else ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.host.brokers.is_replaced(caller.broker_id, caller.broker_epoch):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        before, start_before = replica.log_end_offset, replica.log_start_offset
        leadership.fetched(replica, offset, log_start_offset, log.log_end_offset, caller)
        if leadership.pending is None and caller.broker_id not in leadership.maximal_isr and may_join(self, replica):
            self.ask_isr((*self.isr, caller.broker_id))
        if offset != before:
            self.expose(caller.last_fetch_ms)
        if log_start_offset != start_before and self.watchers:
            # Parked deletions wait for that.
            tell_watchers(self, 0)
        return NONE

    # -- the log start, and what a leader tells its followers ----------------------------------------------------------

    def delete_records(self, offset: int) -> tuple[ErrorCode, int]:
        """Raise the log start offset to ``offset`` (-1: the high watermark). Returns the error, and the log start that every
        replica has to reach; ``deleting.low_watermark`` shows their progress."""
        error, start = new_log_start(self, offset)
        log = self.log
        if error is not NONE or log is None:
            return error, -1
        if start > log.log_start_offset:
            log.delete_records_before(start)
            self.look_at_log_start()
        return NONE, log.log_start_offset

    def take_watermarks(self, high_watermark: int, log_start_offset: int, appended: int = 0) -> None:
        """As a follower that appended this many bytes, apply the leader's high watermark and log start. Neither moves back."""
        log = self.log
        assert log is not None
        self._unexposed_bytes += appended
        self.stats.replication_bytes_in += appended
        high_watermark = min(high_watermark, log.log_end_offset)
        if high_watermark > log.high_watermark:
            log.update_high_watermark(high_watermark)
            if self.watchers:
                # Consumers that fetch from this follower.
                tell_watchers(self, self._unexposed_bytes)
            self._unexposed_bytes = 0
        start = min(log_start_offset, log.high_watermark)
        if start > log.log_start_offset:
            log.delete_records_before(start)
            self.look_at_log_start()
