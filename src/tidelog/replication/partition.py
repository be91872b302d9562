"""One partition of this broker: its log and its state in the cluster.

Decided here: which client may append and read and with which leader epoch (KIP-320 fencing), how far consumers may see (high
watermark, last stable offset), when records are safe enough to acknowledge (acks, min.insync.replicas, flush.messages), and how
far records may be deleted.

A leader's high watermark is the offset up to which all in-sync replicas hold the log (``in_sync``), but never beyond the flushed
part while the topic's flush settings demand a flush. It never moves back. A follower's is the leader's, limited to its own log
end.

``append`` and ``read`` are the hot path: they return plain values with the error codes of this partition. A StorageFailure
concerns a whole log dir: it is reported to the host (``replica_manager``), and the request gets KAFKA_STORAGE_ERROR.

Elsewhere: the log itself (``storage``), offsets by time or epoch (``offset_lookup``), parked requests (``delayed``), the ISR
(``in_sync``), deletion (``deleting``), the follower's changes to its log (``following``), the set of partitions
(``replica_manager``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidelog.metadata.image import PartitionImage
from tidelog.model import ids
from tidelog.model.errors import ErrorCode, StorageFailure
from tidelog.model.ids import TopicPartition, Uuid
from tidelog.replication import deleting, flushing
from tidelog.replication.delayed import STATE_CHANGED, Tail, Watcher, tell_watchers
from tidelog.replication.host import PartitionHost
from tidelog.replication.in_sync import Leadership, follower_fetched, let_join
from tidelog.replication.offset_lookup import end_of_epoch
from tidelog.replication.reads import PartitionRead
from tidelog.replication.replica import Caller
from tidelog.replication.topic_stats import TopicStats
from tidelog.storage import reading
from tidelog.storage.appending import AppendResult
from tidelog.storage.log import UnifiedLog
from tidelog.storage.log_config import LogConfig, Origin
from tidelog.storage.validation import DeepValidation, Verdict
from tidelog.storage.verification import Verification

ACKS_ALL = -1
# Looking up an enum member costs more than looking up a global.
NONE = ErrorCode.NONE
_CLIENT = Origin.CLIENT
_COORDINATOR = Origin.COORDINATOR

_WALK_RECORDS = 64
"""A batch of at most this many records is walked on the loop (a few microseconds each), a larger one in a thread."""
_WALK_BYTES = 32 * 1024
_WALK_COMPRESSED_BYTES = 2 * 1024
"""The limit for compressed batches: a small one may grow a thousandfold."""


def is_long(deep: DeepValidation) -> bool:
    """Whether walking the batch takes longer than a round trip to a thread."""
    header = deep.header
    return header.records_count > _WALK_RECORDS or header.size > (_WALK_COMPRESSED_BYTES if header.codec else _WALK_BYTES)


def refused(error: ErrorCode) -> AppendResult:
    """The result of an append that did not reach the log."""
    return AppendResult(error, ids.NO_OFFSET, ids.NO_OFFSET, ids.NO_TIMESTAMP, ids.NO_OFFSET)


class Partition:
    """A partition on this broker. ``log`` is None while its log dir is offline."""

    __slots__ = (
        "_told_log_start",
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
        "min_insync_replicas",
        "partition_epoch",
        "produce_frames",
        "replicas",
        "stats",
        "tail",
        "topic",
        "topic_id",
        "unexposed_bytes",
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
        self.min_insync_replicas = 1
        """min.insync.replicas, but at most the number of replicas."""
        self.produce_frames: dict[int, tuple[Callable[..., bytes], int, bytes]] = {}
        """Templates of a Produce response about this partition alone, by version; kept by the handler."""
        self.unexposed_bytes = 0
        """Approximate bytes appended but not yet visible to consumers."""
        self.flush_needed_to = ids.NO_OFFSET
        """A pending acknowledgement needs the log flushed up to this offset."""
        self._told_log_start = log.log_start_offset if log is not None else ids.NO_OFFSET

    # -- what the cluster says ------------------------------------------------------------------------------------------

    def update_metadata(self, image: PartitionImage, now_ms: int = 0) -> None:
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
        if self.log is not None:
            self._count_required(self.log.config)
        if moved:
            self.leader_epoch = image.leader_epoch
            if self.is_leader and self.log is not None:
                # The epoch cache learns the epoch with its first batch; until then the epoch starts here.
                self.leader_epoch_start_offset = self.log.log_end_offset
        self._lead(now_ms, anew=moved)
        self.expose(now_ms)
        let_join(self, now_ms)
        if moved or led_before != self.is_leader:
            self._tell_all(STATE_CHANGED)

    def _lead(self, now_ms: int, *, anew: bool) -> None:
        """Set up or update the state of the followers, if this broker leads and there are any."""
        followers = tuple(each for each in self.replicas if each != self.broker_id)
        if not self.is_leader or not followers:
            self.leadership = None
        elif self.leadership is None:
            self.leadership = Leadership(followers, self.isr, now_ms)
        else:
            self.leadership.assign(followers, self.isr)
            if anew:
                for replica in self.leadership.replicas.values():
                    replica.lead_again(now_ms, in_sync=replica.broker_id in self.isr)

    def take_over_isr(self, isr: tuple[int, ...], partition_epoch: int, now_ms: int) -> None:
        """The controller agreed to an ISR change; the metadata will follow."""
        assert self.leadership is not None
        self.isr, self.partition_epoch = isr, partition_epoch
        self.leadership.settle(isr)
        self.expose(now_ms)
        let_join(self, now_ms)

    def _tell_all(self, news: int) -> None:
        if self.watchers:
            tell_watchers(self, news)
        if self.tail.watchers:
            self.tail.tell(self, news)

    def go_offline(self) -> None:
        """The log dir failed: every request gets KAFKA_STORAGE_ERROR from now on."""
        self.log = None
        self.flush_needed_to = ids.NO_OFFSET
        self._tell_all(STATE_CHANGED)

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
        self._tell_all(STATE_CHANGED)

    def truncated(self) -> None:
        """The log ends earlier or starts later now; wake the waiting requests."""
        self.unexposed_bytes = 0
        self.flush_needed_to = ids.NO_OFFSET
        self._tell_all(STATE_CHANGED)

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.index)

    @property
    def last_stable_offset(self) -> int:
        """The end of the log for read_committed readers; -1 while the log is offline."""
        return self.log.last_stable_offset if self.log is not None else ids.NO_OFFSET

    def set_config(self, config: LogConfig) -> None:
        if self.log is not None:
            self.log.set_config(config)
            self._count_required(config)

    def _count_required(self, config: LogConfig) -> None:
        self.min_insync_replicas = min(config.min_insync_replicas, len(self.replicas) or 1)

    def look_at_log_start(self) -> None:
        """Wake the watchers if the log start moved since the last report; retention moves it silently."""
        if self.log is not None and self.log.log_start_offset != self._told_log_start:
            self._told_log_start = self.log.log_start_offset
            self._tell_all(STATE_CHANGED)

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
        if log is None or not self.is_leader or (acks == ACKS_ALL and len(self.isr) < self.min_insync_replicas):
            return self.count_refused(len(records), refused(self._why_not(acks)))
        verdict = log.validate(records, now_ms, zstd_allowed=zstd_allowed)
        deep = verdict.deep
        if deep is not None:
            if is_long(deep):
                return deep
            verdict = deep.run()
        return self._append(log, verdict, now_ms, _CLIENT, proof=proof)

    def append_validated(self, verdict: Verdict, now_ms: int, acks: int, *, proof: Verification | None = None) -> AppendResult:
        """The second half of an append whose batch was validated in a thread."""
        log = self.log
        if log is None or not self.is_leader or (acks == ACKS_ALL and len(self.isr) < self.min_insync_replicas):
            return self.count_refused(len(verdict.records), refused(self._why_not(acks)))
        return self._append(log, verdict, now_ms, _CLIENT, proof=proof)

    def append_own(
        self, records: memoryview, now_ms: int, *, transaction_version: int = 0, proof: Verification | None = None
    ) -> AppendResult:
        """Append a coordinator's batch. It is safe when ``is_safe(last_offset, ACKS_ALL)`` is True.

        ``transaction_version``: of a marker. ``proof``: for the first batch of a transaction, as in ``append``.
        """
        log = self.log
        if log is None or not self.is_leader or len(self.isr) < self.min_insync_replicas:
            return refused(self._why_not(ACKS_ALL))
        verdict = log.validate(records, now_ms, origin=_COORDINATOR)
        return self._append(log, verdict, now_ms, _COORDINATOR, transaction_version=transaction_version, proof=proof)

    def _why_not(self, acks: int) -> ErrorCode:
        error = self.check_leader(ids.NO_EPOCH)
        return ErrorCode.NOT_ENOUGH_REPLICAS if error is NONE and acks == ACKS_ALL else error

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
        size = len(verdict.records)
        try:
            result = log.append_validated(
                verdict, self.leader_epoch, now_ms, origin=origin, transaction_version=transaction_version, proof=proof
            )
        except StorageFailure as failure:
            self.host.storage_failed(failure)
            return self.count_refused(size, refused(ErrorCode.KAFKA_STORAGE_ERROR))
        if result.error is not NONE:
            return self.count_refused(size, result)
        stats = self.stats
        stats.total_produce_requests += 1
        if result.duplicate:
            return result
        end = result.last_offset + 1
        stats.bytes_in += size
        stats.messages_in += end - result.first_offset
        self.unexposed_bytes += size
        if result.needs_flush:
            self.flush_needed_to = end
            self.host.flush(self)
        if self.leadership is not None:
            # The high watermark moves when followers fetch beyond it.
            self._appended(result.first_offset, size)
        elif self.flush_needed_to < 0:
            log.update_high_watermark(end)
            if self.watchers:
                tell_watchers(self, self.unexposed_bytes)
            self.unexposed_bytes = 0
        return result

    def _appended(self, old_end: int, size: int) -> None:
        leadership = self.leadership
        assert leadership is not None
        if leadership.quiet:
            leadership.appending(old_end)
        if self.tail.watchers:
            self.tail.tell(self, size)
        if len(leadership.maximal_isr) == 1:
            self.expose(self.host.even_ms())  # not by the wall clock of the append

    def count_refused(self, size: int, result: AppendResult) -> AppendResult:
        """Count ``result``, which rejects ``size`` bytes, in the statistics, and return it."""
        self.stats.total_produce_requests += 1
        self.stats.failed_produce_requests += 1
        self.stats.bytes_rejected += size
        return result

    def expose(self, now_ms: int) -> None:
        """Raise the high watermark to what is safe now and wake its watchers."""
        log = self.log
        if log is None or not self.is_leader:
            return
        end = log.log_end_offset
        if self.flush_needed_to >= 0:
            end = min(end, log.recovery_point)
        if self.leadership is not None:
            if end <= log.high_watermark or len(self.isr) < self.min_insync_replicas:
                return
            end = self.leadership.least_end(self, end, log.log_end_offset, now_ms)
        if end <= log.high_watermark:
            return
        log.update_high_watermark(end)
        if self.watchers:
            tell_watchers(self, self.unexposed_bytes)
        if self.tail.watchers:
            # If consumers fetch from followers, the followers need the new high watermark at once.
            self.tail.tell(self, 1 if self.host.rack_aware else 0)
        if end == log.log_end_offset:
            self.unexposed_bytes = 0

    def tell_of_low_watermark(self) -> None:
        """A follower's log start moved; parked deletions wait for that."""
        if self.watchers:
            tell_watchers(self, 0)

    def is_safe(self, last_offset: int, acks: int) -> bool:
        """Whether records up to ``last_offset`` may be acknowledged: flushed if the topic demands it, replicated for acks=all."""
        log = self.log
        if log is None:
            return False
        if acks == ACKS_ALL:
            return log.high_watermark > last_offset
        return not log.recovery_point <= last_offset < self.flush_needed_to

    def acknowledge(self, last_offset: int, acks: int) -> ErrorCode:
        """The error that answers an append up to ``last_offset`` now; REQUEST_TIMED_OUT while it is not safe."""
        if (error := self.check_leader(-1)) is not NONE:
            return error
        if not self.is_safe(last_offset, acks):
            return ErrorCode.REQUEST_TIMED_OUT
        if acks == ACKS_ALL and len(self.isr) < self.min_insync_replicas:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return NONE

    # -- flushing -------------------------------------------------------------------------------------------------------

    needs_flush = property(flushing.needs_flush)
    demand_flush = flushing.demand_flush
    begin_flush = flushing.begin_flush
    finish_flush = flushing.finish_flush

    # -- reading --------------------------------------------------------------------------------------------------------

    def read(
        self,
        fetch_offset: int,
        max_bytes: int,
        *,
        min_one: bool,
        committed: bool = False,
        leader_epoch: int = ids.NO_EPOCH,
        last_fetched_epoch: int = ids.NO_EPOCH,
        caller: Caller | None = None,
        follower_start: int = ids.NO_OFFSET,
        any_replica: bool = False,
    ) -> PartitionRead:
        """Whole batches from the one that holds ``fetch_offset``, up to ``max_bytes``; with ``min_one`` at least the first.

        Consumers see up to the high watermark, with ``committed`` up to the last stable offset, followers up to the log end.
        ``caller`` is a follower whose log starts at ``follower_start`` and holds everything below ``fetch_offset``.
        ``any_replica``: a consumer that may also read from a follower.
        """
        log = self.log
        if log is None or not self.is_leader or leader_epoch >= 0:
            error = self.check_leader(leader_epoch, any_replica=any_replica)
            if error is not NONE:
                return PartitionRead(error)
            assert log is not None
        self.stats.total_fetch_requests += 1
        high_watermark = log.high_watermark
        stable = log.last_stable_offset
        start = log.log_start_offset
        if last_fetched_epoch >= 0 and (diverging := self._diverging(log, fetch_offset, last_fetched_epoch)) is not None:
            return diverging
        if fetch_offset < start or fetch_offset > log.files.end_offset:
            return PartitionRead(ErrorCode.OFFSET_OUT_OF_RANGE)
        upto = stable if committed else high_watermark
        if caller is not None:
            error = self._note_follower(caller, fetch_offset, follower_start, leader_epoch)
            if error is not NONE:
                return PartitionRead(error)
            # The follower learns at once what its fetch made safe.
            high_watermark, stable = log.high_watermark, log.last_stable_offset
            upto = log.log_end_offset
        found = PartitionRead(NONE, high_watermark, stable, start)
        if committed:
            found.aborted = ()
        found.caught_up = fetch_offset >= upto
        if found.caught_up or (max_bytes <= 0 and not min_one):
            return found
        try:
            result = reading.read(log, fetch_offset, max_bytes, upto=upto, min_one=min_one)
            if result.error is not NONE:
                return PartitionRead(result.error)
            if result.slice is not None:
                found.records, found.size = result.slice, result.slice.length
                if committed and log.aborting:
                    aborted = reading.aborted_in(log, fetch_offset, result.slice, upto)
                    found.aborted = [(each.producer_id, each.first_offset) for each in aborted]
        except StorageFailure as failure:
            self.host.storage_failed(failure)
            return PartitionRead(ErrorCode.KAFKA_STORAGE_ERROR)
        return found

    def _note_follower(self, caller: Caller, fetch_offset: int, log_start_offset: int, leader_epoch: int) -> ErrorCode:
        """Record a follower's position. An error if it is not a known replica; its metadata may be ahead of ours."""
        leadership = self.leadership
        replica = leadership.replicas.get(caller.broker_id) if leadership is not None else None
        if leadership is None or replica is None:
            return ErrorCode.UNKNOWN_LEADER_EPOCH if leader_epoch >= 0 else ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.host.is_replaced(caller.broker_id, caller.broker_epoch):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        follower_fetched(self, leadership, replica, fetch_offset, log_start_offset, caller)
        return NONE

    def _diverging(self, log: UnifiedLog, fetch_offset: int, last_fetched_epoch: int) -> PartitionRead | None:
        epoch, end_offset = end_of_epoch(self, log, last_fetched_epoch)
        if epoch < 0 or end_offset < 0:
            return PartitionRead(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch >= last_fetched_epoch and end_offset >= fetch_offset:
            return None
        read = PartitionRead(NONE, log.high_watermark, log.last_stable_offset, log.log_start_offset)
        read.diverging = (epoch, end_offset)
        return read

    delete_records = deleting.delete_records
