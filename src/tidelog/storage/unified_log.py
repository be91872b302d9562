"""UnifiedLog: one partition's log on this broker: appends, its offsets, and what readers may see.

This module decides when the active segment rolls and how the offsets move: log start <= last stable <= high watermark <= log end;
recovery point <= log end. Any disk error takes the log out of service permanently (StorageFailure).

Only the methods here change a log; ``log_start_offset``, ``high_watermark`` and ``files`` are plain for fast reads, and a test
looks for writers elsewhere. Decisions are made outside, by functions over a ``LogView`` or values: which segments expire by age
and size (``retention.plan``), whether a batch may be appended (``validation``, ``append_rules``), where a read ends
(``reading``), what a job syncs (``flush_job``). All methods run on the event loop unless they say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidelog.model.errors import ErrorCode, KafkaError, StorageFailure
from tidelog.model.ids import TopicPartition
from tidelog.model.ports import FileSystem, Rng
from tidelog.records.batch import BatchHeader
from tidelog.storage import producer_replay, retention
from tidelog.storage.append_rules import AppendResult, check_producer, note_producer, refusal
from tidelog.storage.flush_job import FlushJob, Unflushed
from tidelog.storage.known_damage import KnownDamage
from tidelog.storage.leader_epochs import LeaderEpochCache
from tidelog.storage.local_log import LocalLog
from tidelog.storage.log_config import LogConfig, Origin
from tidelog.storage.producer_state import ProducerStateManager
from tidelog.storage.retention import RetentionResult
from tidelog.storage.segment import LogSegment
from tidelog.storage.segments import Segments
from tidelog.storage.truncation import Deferred
from tidelog.storage.validation import Rules, Verdict, place, validate, validate_replicated
from tidelog.storage.verification_guard import Verification

# Looking up a member of an enum costs 50 ns, a global 10.
_NONE = ErrorCode.NONE
_CLIENT = Origin.CLIENT


class UnifiedLog:
    """One partition's segments in ascending order, the last one active, and their state."""

    # fmt: off
    __slots__ = (
        "_rules",
        "_topic_id",
        "files",
        "fs",
        "high_watermark",
        "leader_epochs",
        "log_dir",
        "log_start_offset",
        "on_roll",
        "producers",
        "topic_partition",
    )
    # fmt: on

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: bytes | None,
        config: LogConfig,
        segments: Sequence[LogSegment],
        *,
        leader_epochs: LeaderEpochCache,
        producers: ProducerStateManager,
        log_start_offset: int,
        recovery_point: int,
        aborting: Sequence[LogSegment] = (),
        unflushed: Unflushed | None = None,
        rng: Rng | None = None,
        damage: KnownDamage | None = None,
    ) -> None:
        """Called by ``create_log`` and by ``recovery.load_log``. ``segments``: at least one; producer state is that of the
        log's end. ``aborting``: segments with a transaction index."""
        self.fs = fs
        self.log_dir = directory.rpartition("/")[0]
        self.topic_partition = topic_partition
        self._topic_id = topic_id
        self.files = LocalLog(
            fs, directory, config, Segments(segments, aborting), recovery_point, unflushed or Unflushed(), rng, damage
        )
        self._rules = Rules.of(config)
        self.leader_epochs = leader_epochs
        self.producers = producers
        self.log_start_offset = log_start_offset
        self.high_watermark = log_start_offset
        self.on_roll: Callable[[UnifiedLog], None] | None = None
        """Called when a segment was closed and a flush job is due."""

    def set_config(self, config: LogConfig) -> None:
        self._rules = Rules.of(config)
        self.files.set_config(config)

    @property
    def config(self) -> LogConfig:
        return self.files.config

    @property
    def dir(self) -> str:
        return self.files.dir

    @property
    def topic_id(self) -> bytes | None:
        return self._topic_id

    @property
    def failure(self) -> StorageFailure | None:
        return self.files.failure

    @property
    def log_end_offset(self) -> int:
        return self.files.end_offset

    @property
    def recovery_point(self) -> int:
        return self.files.recovery_point

    @property
    def segments(self) -> list[LogSegment]:
        return self.files.segments.all

    @property
    def active(self) -> LogSegment:
        return self.files.segments.active

    @property
    def aborting(self) -> list[LogSegment]:
        return self.files.segments.aborting

    @property
    def flush_in_flight(self) -> bool:
        return self.files.unflushed.in_flight

    @property
    def last_stable_offset(self) -> int:
        """The end for readers of committed data: the first undecided offset, at most the high watermark."""
        unstable = self.producers.first_unstable_offset()
        return self.high_watermark if unstable is None or unstable > self.high_watermark else max(unstable, self.log_start_offset)

    def segment_index(self, offset: int) -> int:
        return self.files.segments.index_of(offset)

    def segment_for(self, offset: int) -> LogSegment:
        active = self.files.segments.active
        return active if offset >= active.base_offset else self.files.segments.all[self.files.segments.index_of(offset)]

    def validate(
        self, records: bytearray | memoryview, now_ms: int, *, origin: Origin = _CLIENT, zstd_allowed: bool = True
    ) -> Verdict:
        """First half of an append. If the verdict has ``deep`` set, run ``verdict.deep.run()``, in a thread if it is long, and
        use its result instead."""
        return validate(records, self._rules, origin=origin, now_ms=now_ms, zstd_allowed=zstd_allowed)

    def append_as_leader(
        self,
        records: bytearray | memoryview,
        leader_epoch: int,
        now_ms: int,
        *,
        origin: Origin = _CLIENT,
        zstd_allowed: bool = True,
        transaction_version: int = 0,
        proof: Verification | None = None,
    ) -> AppendResult:
        """Assigns the next offsets to one batch of a client, coordinator or Raft leader and appends it. ``records`` is patched
        in place. A walk over all records runs synchronously; a caller that must not block uses ``validate`` and
        ``append_validated``."""
        verdict = validate(records, self._rules, origin=origin, now_ms=now_ms, zstd_allowed=zstd_allowed)
        if verdict.deep is not None:
            verdict = verdict.deep.run()
        return self.append_validated(
            verdict, leader_epoch, now_ms, origin=origin, transaction_version=transaction_version, proof=proof
        )

    def append_validated(
        self,
        verdict: Verdict,
        leader_epoch: int,
        now_ms: int,
        *,
        origin: Origin = _CLIENT,
        transaction_version: int = 0,
        proof: Verification | None = None,
    ) -> AppendResult:
        """Second half of an append: checks the sequence, assigns the offset, writes, updates state. Errors of the client are
        returned. A failed write takes the log out of service (StorageFailure): what reached the disk is unknown until the next
        start. ``transaction_version`` matters only for markers, ``proof`` for the first batch of a transaction (KIP-890)."""
        if self.files.failure is not None:
            raise self.files.failure
        header = verdict.header
        if header is None:
            refused = AppendResult(verdict.error, -1, -1, -1, self.log_start_offset)
            refused.error_message = verdict.message
            refused.record_errors = verdict.record_errors
            return refused
        data, rules = verdict.records, self._rules
        if header.producer_id >= 0:
            found = check_producer(self.producers, data, header, origin, transaction_version, proof)
            if found is not _NONE:
                if isinstance(found, ErrorCode):
                    refused = AppendResult(found, -1, -1, -1, self.log_start_offset)
                    refused.error_message = refusal(self.producers, self.topic_partition, found, header)
                    return refused
                stamp = found.timestamp if rules.log_append_time else -1
                original = AppendResult(_NONE, found.first_offset, found.last_offset, stamp, self.log_start_offset)
                original.duplicate = True
                return original
        local = self.files
        base_offset = local.end_offset
        place(verdict, rules, base_offset, leader_epoch, now_ms)
        if leader_epoch > self.leader_epochs.latest:
            self.leader_epochs.assign(leader_epoch, base_offset)
        last_offset = header.base_offset + header.last_offset_delta
        segment = local.segments.active
        if segment.must_roll(header.size, last_offset, header.max_timestamp, now_ms, local.limits):
            segment = self.roll(now_ms, at_least=header.base_offset)
        local.append(data, header, last_offset)
        if header.producer_id >= 0:
            self._note_producer(data, header, segment)
        result = AppendResult(_NONE, base_offset, last_offset, now_ms if rules.log_append_time else -1, self.log_start_offset)
        if last_offset + 1 - local.recovery_point >= local.config.flush_messages:
            result.needs_flush = True
        return result

    def _note_producer(self, data: memoryview | bytearray | bytes, header: BatchHeader, segment: LogSegment) -> None:
        """A producer's batch is in the log; an abort is added to the segment's transaction index, unless a replay finds it
        there."""
        entry = note_producer(self.producers, data, header)
        if entry is None:
            return
        try:
            segment.add_aborted(entry)
            self.files.segments.note_aborting(segment)
        except OSError as problem:
            raise self.fail(f"transaction index of {self.files.dir}", problem) from problem

    def append_as_follower(self, records: memoryview, leader_epoch: int, now_ms: int) -> int:
        """Appends a leader's whole batches unchanged at the log's end; returns the new log end. A batch cut off at the end is
        left for the next fetch, and no batch is accepted from a newer epoch than that of the fetch (KAFKA-18723).

        KafkaError CORRUPT_MESSAGE or INVALID_RECORD for what a leader must not send; StorageFailure when the dir fails.
        """
        if self.files.failure is not None:
            raise self.files.failure
        verdict = validate_replicated(records, self.files.end_offset)
        if verdict.error:
            raise KafkaError(verdict.error, f"{self.topic_partition}: {verdict.message}")
        run: list[BatchHeader] = []
        run_bytes = 0
        for header in verdict.headers:
            if header.leader_epoch > leader_epoch:
                break
            if header.leader_epoch > self.leader_epochs.latest:
                self.leader_epochs.assign(header.leader_epoch, header.base_offset)
            if self.files.must_roll(header, now_ms, after_bytes=run_bytes):
                self._write(records, run)
                run, run_bytes = [], 0
                self.roll(now_ms, at_least=header.base_offset)
            run.append(header)
            run_bytes += header.size
        self._write(records, run)
        return self.files.end_offset

    def _write(self, records: memoryview, run: list[BatchHeader]) -> None:
        """Writes a run of batches for the active segment."""
        if not run:
            return
        self.files.append_run(records, run)
        for header in run:
            if header.producer_id >= 0:
                self._note_producer(records, header, self.files.segments.active)

    def roll(self, now_ms: int, *, at_least: int = 0) -> LogSegment:
        """Closes the active segment and starts one at the log's end or at ``at_least``: a leader's log may have a gap."""
        base_offset = max(self.files.end_offset, at_least)
        active = self.files.segments.active
        if active.size == 0 and active.base_offset == base_offset:
            active.created_ms = now_ms
            return active
        self.producers.end_offset = base_offset
        self.files.unflushed.add_snapshot(base_offset, self.producers.encode_snapshot())
        segment = self.files.roll(base_offset, now_ms)
        if self.on_roll is not None:
            self.on_roll(self)
        return segment

    def update_high_watermark(self, offset: int) -> int:
        """Clamps to [log start, log end] and returns the new high watermark. The partition decides whether it may move back."""
        offset = min(max(offset, self.log_start_offset), self.files.end_offset)
        self.high_watermark = offset
        self.producers.high_watermark_moved(offset)
        return offset

    def delete_records_before(self, offset: int) -> bool:
        """DeleteRecords and the leader's log start: hides records below ``offset`` from readers. False when nothing changed.

        ValueError above the high watermark. Retention deletes the files later.
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

    def start_within_first_batch(self, offset: int) -> None:
        """A follower's empty log began with a whole batch whose first records were deleted; they stay deleted."""
        self.log_start_offset = offset
        self.update_high_watermark(offset)

    def truncate_to(self, offset: int, now_ms: int, deferred: Deferred | None = None) -> bool:
        """Drops every batch that reaches ``offset``; False when the log ends there or before. Below the first segment, drops
        everything.

        Blocks for a sync, unless only the active segment is cut and ``deferred`` takes the sync; then it must be called, in any
        thread, before the next append. No flush job may be running: it would write indexes and snapshots of the truncated part. A
        checkpointed recovery point may lie behind the cut; ``LogManager.truncate`` corrects it.
        """
        self._may_truncate()
        if offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{self.topic_partition}: asked to truncate to {offset}")
        if offset >= self.files.end_offset:
            return False
        if offset < self.files.segments.all[0].base_offset:
            self.truncate_fully_and_start_at(offset, now_ms)
            return True
        try:
            self.files.cut(offset, deferred)
            end = self.files.end_offset
            self.leader_epochs.truncate_from_end(end)
            self.log_start_offset = min(self.log_start_offset, end)
            self.high_watermark = min(self.high_watermark, end)
            self.rebuild_producers(now_ms, self.fs.listdir(self.files.dir))
        except OSError as problem:
            raise self.fail(f"truncation of {self.files.dir} to {offset}", problem) from problem
        return True

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> None:
        """Empties the log; it continues at ``offset``."""
        self._may_truncate()
        try:
            self.files.start_over(offset, now_ms)
        except OSError as problem:
            raise self.fail(f"truncation of {self.files.dir}", problem) from problem
        self.leader_epochs.clear()
        self.producers.clear(offset)
        self.log_start_offset = self.high_watermark = offset

    def _may_truncate(self) -> None:
        assert not self.files.unflushed.in_flight, f"{self.topic_partition}: truncation while a flush job is under way"
        if self.files.failure is not None:
            raise self.files.failure

    def rebuild_producers(self, now_ms: int, names: list[str]) -> None:
        """Rebuilds the producer state at the log's end. ``names``: the file names in the directory. Raises OSError."""
        found = producer_replay.rebuild_producers(self, self.producers, self._note_producer, now_ms, names)
        self.files.unflushed.found_snapshot(found)

    def take_over(self, source: UnifiedLog) -> None:
        """This copy in another log dir replaces ``source``: it has the batches already, and now takes over the rest of the
        state."""
        self.set_config(source.config)
        self.producers = source.producers
        self.leader_epochs = source.leader_epochs
        self.leader_epochs.write_again()
        self.log_start_offset = max(source.log_start_offset, self.files.segments.all[0].base_offset)
        self.high_watermark = source.high_watermark

    def retention_step(self, now_ms: int) -> RetentionResult:
        """Deletes the segments that ``retention.plan`` selects."""
        try:
            planned = retention.plan(self, now_ms)
            if planned.roll:
                self.roll(now_ms)
            if not planned.doomed:
                return RetentionResult((), (), now_ms, ())
            segments = tuple(segment for segment, _ in planned.doomed)
            snapshots = retention.set_aside(self, segments)
        except OSError as problem:
            raise self.fail(f"retention in {self.files.dir}", problem) from problem
        self.files.replace(segments, ())
        start = self.files.segments.all[0].base_offset
        if start > self.log_start_offset:
            self.log_start_offset = start
            self.leader_epochs.truncate_from_start(start)
            self.high_watermark = max(self.high_watermark, start)
        reasons = tuple(f"{self.topic_partition} segment {each.base_offset}: {reason}" for each, reason in planned.doomed)
        return RetentionResult(segments, snapshots, now_ms + self.files.config.file_delete_delay_ms, reasons)

    def flush_job(self) -> FlushJob:
        """A job for everything in the log now. One at a time: ``flush_in_flight`` until ``flushed``."""
        job = self.files.flush_job(self.leader_epochs, self._topic_id)
        assert job is not None
        return job

    def closing_job(self) -> FlushJob | None:
        """The job for a clean stop: a flush, the active segment's indexes, a producer snapshot at the log's end. None when
        that is on the disk already, as for a log that was not written since it was loaded. Run it, then call ``flushed``."""
        end = self.producers.end_offset = self.files.end_offset
        touched = end > self.files.segments.all[0].base_offset or self.producers.entries
        if self.files.failure is None and touched and not self.files.unflushed.has_snapshot(end):
            self.files.unflushed.add_snapshot(end, self.producers.encode_snapshot())
        return self.files.flush_job(self.leader_epochs, self._topic_id, closing=True)

    def flushed(self, job: FlushJob, now_ms: int = 0) -> None:
        """Takes the result of a job: advances the recovery point, or raises StorageFailure and takes the log out of service
        permanently."""
        self.files.flushed(job, now_ms)

    def flush(self, now_ms: int = 0) -> None:
        """Creates and runs a flush job. Blocks."""
        job = self.flush_job()
        job.run()
        self.flushed(job, now_ms)

    def close(self) -> None:
        """Runs the closing job and closes all files. A failed log is only closed. Blocks."""
        if self.files.failure is None and (job := self.closing_job()) is not None:
            job.run()
            self.flushed(job)
        self.files.close_files()

    def fail(self, what: str, problem: Exception) -> StorageFailure:
        """Takes the log out of service; returns the exception to raise."""
        return self.files.fail(what, problem)

    def name(self, topic_id: bytes) -> None:
        """Sets the topic id; partition.metadata was written with it."""
        self._topic_id = topic_id
        self.files.unflushed.note_metadata()

    def check(self) -> None:
        """Asserts the invariants."""
        assert self.log_start_offset <= self.high_watermark <= self.files.end_offset
        assert self.files.recovery_point <= self.files.end_offset
        assert self.log_start_offset <= self.last_stable_offset <= self.high_watermark
        self.files.segments.check()
        assert self.files.segments.active.next_offset == self.files.end_offset
        self.producers.check_invariants()
        self.leader_epochs.check()
