"""UnifiedLog: one partition's log on this broker. What is appended, where it ends, what readers may see.

Decided here: the order of an append (checked, sequenced, given its offset, written by one write, only then noted), when the
active segment rolls, and how the offsets move: log start <= last stable <= high watermark <= log end; recovery point <= log end.
Nothing is remembered of a batch that was not written. A write that fails takes the log out of service (StorageFailure): what
reached the disk is unknown, and the next start finds out.

Deliberately elsewhere: may a batch be appended (validation.py), how a read is cut (reading.py), the work that blocks
(flush.py, recovery.py), what goes by age and size (retention.py), the parts that only followers need (following.py).
All methods run on the loop, except where they say otherwise.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from tidelog.model.errors import ErrorCode, StorageFailure
from tidelog.model.ids import TopicPartition
from tidelog.model.ports import FileSystem, Rng
from tidelog.records.batch import BatchHeader, CorruptBatch
from tidelog.records.control import EndTxnMarker, parse_end_txn_marker
from tidelog.records.record import iter_records
from tidelog.storage import following, reading, retention
from tidelog.storage.checkpoints import LEADER_EPOCHS, PARTITION_METADATA, encode_epochs, encode_partition_metadata
from tidelog.storage.epochs import LeaderEpochCache
from tidelog.storage.flush import FlushJob
from tidelog.storage.index import AbortedTransaction
from tidelog.storage.log_config import LogConfig, Origin
from tidelog.storage.producer_state import SNAPSHOT_SUFFIX, ProducerStateManager
from tidelog.storage.reading import ReadResult
from tidelog.storage.segment import LogSegment, RollLimits, file_stem
from tidelog.storage.validation import RecordError, Rules, Verdict, place, validate

_CONTROL = 0x20
_NONE = ErrorCode.NONE
_CLIENT = Origin.CLIENT


class AppendResult:
    """What became of an append. Plain and mutable: it is built once per produced batch.

    ``first_offset`` and ``last_offset`` are -1 on an error; ``log_append_time_ms`` is -1 where the client's timestamps stand.
    ``duplicate``: the batch was there already, and the offsets are the original's. ``needs_flush``: flush.messages is reached.
    """

    __slots__ = (
        "duplicate",
        "error",
        "error_message",
        "first_offset",
        "last_offset",
        "log_append_time_ms",
        "log_start_offset",
        "needs_flush",
        "record_errors",
    )

    def __init__(
        self, error: ErrorCode, first_offset: int, last_offset: int, log_append_time_ms: int, log_start_offset: int
    ) -> None:
        self.error = error
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors: tuple[RecordError, ...] = ()
        self.error_message: str | None = None
        self.duplicate = False
        self.needs_flush = False


class UnifiedLog:
    """One partition's segments in ascending order, the last one active, and the state that goes with them."""

    __slots__ = (
        "_limits",
        "_pending_snapshots",
        "_unsealed",
        "active",
        "config",
        "dir",
        "failure",
        "flush_in_flight",
        "fs",
        "high_watermark",
        "last_flush_ms",
        "leader_epochs",
        "log_dir",
        "log_end_offset",
        "log_start_offset",
        "metadata_synced",
        "names_synced",
        "on_roll",
        "producers",
        "recovery_point",
        "rng",
        "rules",
        "segments",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: bytes | None,
        config: LogConfig,
        segments: list[LogSegment],
        *,
        leader_epochs: LeaderEpochCache,
        producers: ProducerStateManager,
        log_start_offset: int,
        recovery_point: int,
        rng: Rng | None = None,
    ) -> None:
        """Made by ``create_log`` and by ``recovery.load_log``. ``segments``: at least one; producers stand at the log's end."""
        self.fs = fs
        self.dir = directory
        self.log_dir = directory.rpartition("/")[0]
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.segments = segments
        self.active = segments[-1]
        self.leader_epochs = leader_epochs
        self.producers = producers
        self.log_start_offset = log_start_offset
        self.log_end_offset = self.active.next_offset
        self.high_watermark = log_start_offset
        self.recovery_point = recovery_point
        self.rng = rng
        self.failure: StorageFailure | None = None
        """Why this log serves no more; set once."""
        self.flush_in_flight = False
        self.last_flush_ms = 0
        self.metadata_synced = True
        """Whether partition.metadata is on stable storage; set False by whoever wrote or wants it written anew."""
        self.names_synced = True
        self.on_roll: Callable[[UnifiedLog], None] | None = None
        """Told that a segment was closed: time to run a flush job, which seals it."""
        self._unsealed = [segment for segment in segments[:-1] if not segment.sealed]
        self._pending_snapshots: list[tuple[int, bytes]] = []
        self.set_config(config)

    def set_config(self, config: LogConfig) -> None:
        """The topic's settings changed; they hold from the next append on."""
        self.config = config
        self.rules = Rules.of(config)
        jitter = 0
        if config.segment_jitter_ms > 0 and self.rng is not None:
            jitter = self.rng.randrange(0, min(config.segment_jitter_ms, config.segment_ms) + 1)
        self._limits = RollLimits(config.segment_bytes, config.segment_ms - jitter, config.segment_index_bytes)

    # --- appending -----------------------------------------------------------------------------------------------------

    def validate(
        self, records: bytearray | memoryview, now_ms: int, *, origin: Origin = Origin.CLIENT, zstd_allowed: bool = True
    ) -> Verdict:
        """First half of an append. A verdict with ``deep`` set must be replaced by ``verdict.deep.run()``, in a thread if long."""
        return validate(records, self.rules, origin=origin, now_ms=now_ms, zstd_allowed=zstd_allowed)

    def append_as_leader(
        self,
        records: bytearray | memoryview,
        leader_epoch: int,
        now_ms: int,
        *,
        origin: Origin = _CLIENT,
        zstd_allowed: bool = True,
        transaction_version: int = 0,
    ) -> AppendResult:
        """One batch of a client, coordinator or Raft leader gets the next offsets. ``records`` is patched in place.

        Everything a client can do wrong comes back as an error in the result; StorageFailure means the log dir is lost.
        A walk over all records is done here and now: who cannot wait calls ``validate`` and ``append_validated``.
        """
        verdict = validate(records, self.rules, origin=origin, now_ms=now_ms, zstd_allowed=zstd_allowed)
        if verdict.deep is not None:
            verdict = verdict.deep.run()
        return self.append_validated(verdict, leader_epoch, now_ms, origin=origin, transaction_version=transaction_version)

    def append_validated(
        self, verdict: Verdict, leader_epoch: int, now_ms: int, *, origin: Origin = _CLIENT, transaction_version: int = 0
    ) -> AppendResult:
        """Second half of an append. ``transaction_version`` matters for markers only (KIP-890)."""
        if self.failure is not None:
            raise self.failure
        header = verdict.header
        if header is None:
            refused = AppendResult(verdict.error, -1, -1, -1, self.log_start_offset)
            refused.error_message = verdict.message
            refused.record_errors = verdict.record_errors
            return refused
        data = verdict.records
        if header.producer_id >= 0:
            answer = self._check_producer(data, header, origin, transaction_version)
            if answer is not None:
                return answer
        rules = self.rules
        base_offset = self.log_end_offset
        place(verdict, rules, base_offset, leader_epoch, now_ms)
        if leader_epoch != self.leader_epochs.latest and leader_epoch >= 0:
            self.leader_epochs.assign(leader_epoch, base_offset)
        self._append(data, header, now_ms)
        end = self.log_end_offset
        result = AppendResult(_NONE, base_offset, end - 1, now_ms if rules.log_append_time else -1, self.log_start_offset)
        if end - self.recovery_point >= self.config.flush_messages:
            result.needs_flush = True
        return result

    def _check_producer(
        self, data: memoryview | bytearray, header: BatchHeader, origin: Origin, transaction_version: int
    ) -> AppendResult | None:
        """None when the batch may go in; else the answer: an error, or the original of a duplicate."""
        if header.attributes & _CONTROL:
            marker = self._marker(data, header)
            if marker is None:
                return None
            error = self.producers.check_marker(
                header.producer_id, header.producer_epoch, marker.coordinator_epoch, transaction_version=transaction_version
            )
            return AppendResult(error, -1, -1, -1, self.log_start_offset) if error else None
        if origin is not _CLIENT:
            return None
        found = self.producers.check(header)
        if found is _NONE:
            return None
        if isinstance(found, ErrorCode):
            return self._sequence_error(found, header)
        stamp = found.timestamp if self.rules.log_append_time else -1
        original = AppendResult(_NONE, found.first_offset, found.last_offset, stamp, self.log_start_offset)
        original.duplicate = True
        return original

    def _sequence_error(self, error: ErrorCode, header: BatchHeader) -> AppendResult:
        result = AppendResult(error, -1, -1, -1, self.log_start_offset)
        entry = self.producers.entries[header.producer_id]
        result.error_message = (
            f"Producer {header.producer_id} sent epoch {header.producer_epoch}, sequence {header.base_sequence} to "
            f"{self.topic_partition}, which has seen epoch {entry.epoch}, sequence {entry.last_sequence}."
        )
        return result

    def _append(self, data: memoryview | bytearray, header: BatchHeader, now_ms: int) -> None:
        """One batch with its final offset: roll if due, write, then note what is now in the log."""
        size = header.size
        last_offset = header.base_offset + header.last_offset_delta
        segment = self.active
        if segment.must_roll(size, last_offset, header.max_timestamp, now_ms, self._limits):
            segment = self.roll(now_ms, at_least=header.base_offset)
        try:
            position = header.position
            whole = data if position == 0 and size == len(data) else memoryview(data)[position : position + size]
            segment.append(whole, size, header.base_offset, last_offset, header.max_timestamp, self.config.index_interval_bytes)
        except OSError as problem:
            raise self.fail(f"append to {segment.path('.log')}", problem) from problem
        self.log_end_offset = last_offset + 1
        if header.producer_id >= 0:
            self.note_producer(data, header, segment)

    def must_roll(self, header: BatchHeader, now_ms: int, *, after_bytes: int = 0) -> bool:
        """Whether a batch starts a new segment, with ``after_bytes`` of batches before it that are still to be written."""
        segment, size = self.active, after_bytes + header.size
        if after_bytes and segment.size == 0 and size > self.config.segment_bytes:
            return True
        return segment.must_roll(size, header.last_offset, header.max_timestamp, now_ms, self._limits)

    def note_producer(self, data: memoryview | bytearray | bytes, header: BatchHeader, segment: LogSegment) -> None:
        """Producer state follows a batch that is in the log; an abort goes to the segment's transaction index, unless replay
        meets what that holds already."""
        if not header.attributes & _CONTROL:
            self.producers.update(header)
            return
        marker = self._marker(data, header)
        if marker is None:
            return
        completed = self.producers.update_marker(header, commit=marker.commit, coordinator_epoch=marker.coordinator_epoch)
        if completed is None:
            return
        entry = self.producers.complete(completed)
        if completed.aborted:
            try:
                segment.add_aborted(entry)
            except OSError as problem:
                raise self.fail(f"transaction index of {self.dir}", problem) from problem

    @staticmethod
    def _marker(data: memoryview | bytearray | bytes, header: BatchHeader) -> EndTxnMarker | None:
        return read_marker(memoryview(data)[header.position : header.position + header.size])

    def append_as_follower(self, records: memoryview, leader_epoch: int, now_ms: int) -> int:
        """A leader's batches, offsets kept; the new log end. See following.append."""
        return following.append(self, records, leader_epoch, now_ms)

    def roll(self, now_ms: int, *, at_least: int = 0) -> LogSegment:
        """Closes the active segment and starts one at the log's end (or at ``at_least``, when the leader's log has a gap)."""
        base_offset = max(self.log_end_offset, at_least)
        active = self.active
        if active.size == 0 and active.base_offset == base_offset:
            active.created_ms = now_ms
            return active
        self.producers.end_offset = base_offset
        self._pending_snapshots.append((base_offset, self.producers.encode_snapshot()))
        try:
            segment = LogSegment.create(self.fs, self.dir, base_offset, now_ms)
        except OSError as problem:
            raise self.fail(f"new segment {base_offset} in {self.dir}", problem) from problem
        active.next_offset = self.log_end_offset
        self._unsealed.append(active)
        self.segments.append(segment)
        self.active = segment
        self.log_end_offset = base_offset
        self.names_synced = False
        if self.on_roll is not None:
            self.on_roll(self)
        return segment

    def roll_if_old(self, now_ms: int) -> bool:
        """Closes an active segment that grew older than segment.ms without a new append (the cleaner's and retention's need)."""
        active = self.active
        if active.size and active.must_roll(0, self.log_end_offset, now_ms, now_ms, self._limits):
            self.roll(now_ms)
            return True
        return False

    # --- reading -------------------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, *, upto: int, min_one: bool) -> ReadResult:
        """Whole batches from the one that holds ``offset`` on, below ``upto``. See reading.read."""
        return reading.read(self, offset, max_bytes, upto, min_one)

    def reading_may_block(self, offset: int) -> bool:
        """Whether ``read`` would open files and load an index: better done in a thread. ``read`` is safe there."""
        return offset < self.active.base_offset and not self.segment_for(offset).indexes_loaded()

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """Aborted transactions with records in [start, end), for a reader of committed data."""
        return reading.aborted_transactions(self, start, end)

    def offset_for_timestamp(self, timestamp: int) -> reading.TimestampOffset | None:
        """The first record at or after ``timestamp``; None when all are older. Reads batches: run it in a thread."""
        return reading.offset_for_timestamp(self, timestamp)

    def max_timestamp_offset(self) -> reading.TimestampOffset | None:
        """The first record that carries the log's greatest timestamp; None for an empty log. Reads batches."""
        return reading.max_timestamp_offset(self)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(greatest epoch at or below ``epoch``, its end offset), (-1, -1) when unknown."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    def segment_index(self, offset: int) -> int:
        """The number of the segment that holds ``offset`` (the first one for an offset before it)."""
        segments = self.segments
        if offset >= segments[-1].base_offset:
            return len(segments) - 1
        return max(bisect_right(segments, offset, key=_base_offset) - 1, 0)

    def segment_for(self, offset: int) -> LogSegment:
        """The segment that holds ``offset``."""
        active = self.active
        return active if offset >= active.base_offset else self.segments[self.segment_index(offset)]

    @property
    def last_stable_offset(self) -> int:
        """Readers of committed data stop here: the first undecided offset, at most the high watermark."""
        unstable = self.producers.first_unstable_offset()
        return self.high_watermark if unstable is None or unstable > self.high_watermark else max(unstable, self.log_start_offset)

    @property
    def size_bytes(self) -> int:
        """Of all ``.log`` files."""
        return sum(segment.size for segment in self.segments)

    # --- moving offsets ------------------------------------------------------------------------------------------------

    def update_high_watermark(self, offset: int) -> int:
        """Clamped to [log start, log end]; the new high watermark. Whether it may move back is the partition's affair."""
        offset = min(max(offset, self.log_start_offset), self.log_end_offset)
        self.high_watermark = offset
        self.producers.high_watermark_moved(offset)
        return offset

    def delete_records_before(self, offset: int) -> bool:
        """DeleteRecords and the leader's log start: records below ``offset`` are gone for readers. False when nothing changed.

        ValueError above the high watermark. Files go later, by retention.
        """
        if offset > self.high_watermark:
            raise ValueError(
                f"{self.topic_partition}: cannot delete before {offset}, above the high watermark {self.high_watermark}"
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.leader_epochs.truncate_from_start(offset)
        return True

    def truncate_to(self, offset: int, now_ms: int) -> bool:
        """Drops everything from ``offset`` on. See following.truncate_to. Blocks a little: it reads and rewrites indexes."""
        return following.truncate_to(self, offset, now_ms)

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> None:
        """Drops everything; the log starts again, empty, at ``offset``."""
        following.truncate_fully_and_start_at(self, offset, now_ms)

    def retention_step(self, now_ms: int) -> retention.RetentionResult:
        """Old segments become ``.deleted``. See retention.step."""
        return retention.step(self, now_ms)

    # --- making it safe ------------------------------------------------------------------------------------------------

    def flush_job(self) -> FlushJob:
        """All that is in the log now. One at a time: ``flush_in_flight`` until ``flushed``."""
        assert not self.flush_in_flight, f"{self.topic_partition}: a flush job is under way"
        if self.failure is not None:
            raise self.failure
        job = FlushJob(self.fs, self.dir, self.log_end_offset)
        try:
            self._fill(job)
        except OSError as problem:
            raise self.fail(f"flush of {self.dir}", problem) from problem
        self.flush_in_flight = True
        return job

    def _fill(self, job: FlushJob) -> None:
        for segment in self._unsealed:
            job.seal(segment)
        if self.log_end_offset > self.recovery_point or not self.names_synced:
            job.sync_files.append(self.active.file)
        for offset, content in self._pending_snapshots:
            job.file_writes.append((f"{self.dir}/{file_stem(offset)}{SNAPSHOT_SUFFIX}", content))
        self._pending_snapshots = []
        if self.leader_epochs.dirty:
            job.file_writes.append((f"{self.dir}/{LEADER_EPOCHS}", encode_epochs(self.leader_epochs.entries())))
            self.leader_epochs.dirty = False
        if not self.metadata_synced and self.topic_id is not None:
            job.file_writes.insert(0, (f"{self.dir}/{PARTITION_METADATA}", encode_partition_metadata(self.topic_id)))
            self.metadata_synced = True
        job.sync_parent = not self.names_synced
        self.names_synced = True

    def flushed(self, job: FlushJob, now_ms: int = 0) -> None:
        """Takes the result of a job that ran: the recovery point moves, or StorageFailure is raised, now and for ever."""
        self.flush_in_flight = False
        if job.error is not None:
            raise self.fail(f"flush of {self.dir}", job.error) from job.error
        for segment in job.sealed:
            segment.sealed = True
        self._unsealed = [segment for segment in self._unsealed if not segment.sealed]
        self.recovery_point = max(self.recovery_point, min(job.upto, self.log_end_offset))
        self.last_flush_ms = now_ms

    def flush(self, now_ms: int = 0) -> None:
        """The job, run at once: for tools, tests and shutdown. Blocks."""
        job = self.flush_job()
        job.run()
        self.flushed(job, now_ms)

    def close(self) -> None:
        """Flushes, writes the active segment's indexes and a producer snapshot at the log's end. Blocks."""
        if self.failure is None:
            assert not self.flush_in_flight, f"{self.topic_partition}: a flush job is under way"
            job = FlushJob(self.fs, self.dir, self.log_end_offset)
            try:
                self._fill_closing(job)
                job.run()
                self.flushed(job)
            except OSError as problem:
                raise self.fail(f"close of {self.dir}", problem) from problem
        for segment in self.segments:
            segment.close_file()

    def _fill_closing(self, job: FlushJob) -> None:
        self.producers.end_offset = self.log_end_offset
        if not any(offset == self.log_end_offset for offset, _ in self._pending_snapshots):
            self._pending_snapshots.append((self.log_end_offset, self.producers.encode_snapshot()))
        self._fill(job)
        job.index_writes.extend(self.active.pending_index_writes(closing=True))
        transactions = self.active.transaction_file()
        if transactions is not None:
            job.sync_files.append(transactions)

    def fail(self, what: str, problem: OSError) -> StorageFailure:
        """Takes the log out of service; the exception to raise."""
        if self.failure is None:
            self.failure = StorageFailure(self.log_dir, f"{what}: {problem.strerror or problem} (errno {problem.errno})")
        return self.failure

    def forget_unsealed(self, segment: LogSegment) -> None:
        """A segment went away, or is the active one again."""
        self._unsealed = [other for other in self._unsealed if other is not segment]

    def forget_pending_snapshots(self, above: int) -> None:
        """Snapshots of a state that truncation undid."""
        self._pending_snapshots = [(offset, raw) for offset, raw in self._pending_snapshots if offset <= above]

    def drop_cold_indexes(self) -> None:
        """Gives memory back: sealed segments load their indexes again when somebody reads them."""
        for segment in self.segments[:-1]:
            segment.drop_indexes()

    def check(self) -> None:
        """The invariants."""
        assert self.log_start_offset <= self.high_watermark <= self.log_end_offset
        assert self.recovery_point <= self.log_end_offset
        assert self.log_start_offset <= self.last_stable_offset <= self.high_watermark
        bases = [segment.base_offset for segment in self.segments]
        assert bases == sorted(set(bases)), bases
        assert self.active is self.segments[-1] and self.active.next_offset == self.log_end_offset
        self.producers.check_invariants()
        self.leader_epochs.check()


def _base_offset(segment: LogSegment) -> int:
    return segment.base_offset


def read_marker(batch: memoryview | bytes) -> EndTxnMarker | None:
    """The transaction marker in a control batch; None for KRaft's control batches and for what cannot be read."""
    try:
        for record in iter_records(batch):
            return parse_end_txn_marker(record.key, record.value)
    except CorruptBatch:
        return None
    return None


def create_log(
    fs: FileSystem,
    directory: str,
    topic_partition: TopicPartition,
    topic_id: bytes | None,
    config: LogConfig,
    now_ms: int,
    *,
    start_offset: int = 0,
    producer_expiration_ms: int = 86_400_000,
    rng: Rng | None = None,
) -> UnifiedLog:
    """A new partition: its directory, partition.metadata before any data (trap 54), one empty segment. OSError as it comes.

    Names and partition.metadata are synced by the first flush job, not here: 2,000 partitions are made in a moment.
    """
    fs.make_dirs(directory)
    if topic_id is not None:
        file = fs.open(f"{directory}/{PARTITION_METADATA}", create=True)
        file.write(0, encode_partition_metadata(topic_id))
        file.close()
    segment = LogSegment.create(fs, directory, start_offset, now_ms)
    producers = ProducerStateManager(producer_expiration_ms)
    producers.end_offset = start_offset
    log = UnifiedLog(
        fs,
        directory,
        topic_partition,
        topic_id,
        config,
        [segment],
        leader_epochs=LeaderEpochCache(),
        producers=producers,
        log_start_offset=start_offset,
        recovery_point=start_offset,
        rng=rng,
    )
    log.metadata_synced = topic_id is None
    log.names_synced = False
    return log
