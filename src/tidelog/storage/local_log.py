"""LocalLog: the files of one partition's log: its segments, its end, what is on stable storage, and whether the disk has
failed. The name is Kafka's; what the records mean (producers, epochs, high watermark) is in ``UnifiedLog``.

Only the methods here change these. The fields are plain because appends and reads use them; functions outside the log get them as
``LogFiles``, which is read-only. A failed disk takes the log out of service permanently.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tidelog.model.errors import StorageFailure
from tidelog.model.ports import FileSystem, Rng
from tidelog.records.batch import BatchHeader
from tidelog.storage import truncation
from tidelog.storage.flush_job import FlushJob, Unflushed
from tidelog.storage.known_damage import DamageJob, KnownDamage
from tidelog.storage.leader_epochs import LeaderEpochCache
from tidelog.storage.log_config import LogConfig
from tidelog.storage.rotten_range import UndecidedRange
from tidelog.storage.segment import LogSegment, RollLimits
from tidelog.storage.segments import Segments
from tidelog.storage.truncation import Deferred


class LocalLog:
    __slots__ = (
        "_fs",
        "_rng",
        "config",
        "damage",
        "dir",
        "end_offset",
        "failure",
        "limits",
        "recovery_point",
        "segments",
        "undecided",
        "unflushed",
    )

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        config: LogConfig,
        segments: Segments,
        recovery_point: int,
        unflushed: Unflushed,
        rng: Rng | None,
        damage: KnownDamage | None = None,
    ) -> None:
        self._fs = fs
        self.dir = directory
        self.segments = segments
        self.unflushed = unflushed
        self._rng = rng
        self.damage = damage or KnownDamage()
        self.end_offset = segments.active.next_offset
        self.recovery_point = recovery_point
        self.failure: StorageFailure | None = None
        self.undecided: Sequence[UndecidedRange] = ()
        """What damage that the start found leaves undecided; also after the damage is mended (``undecided.py``)."""
        self.set_config(config)

    def set_config(self, config: LogConfig) -> None:
        """Applies new topic settings from the next append on."""
        self.config = config
        jitter = 0
        if config.segment_jitter_ms > 0 and self._rng is not None:
            jitter = self._rng.randrange(0, min(config.segment_jitter_ms, config.segment_ms) + 1)
        self.limits = RollLimits(config.segment_bytes, config.segment_ms - jitter, config.segment_index_bytes)

    @property
    def last_flush_ms(self) -> int:
        """When the last flush succeeded."""
        return self.unflushed.last_ms

    @property
    def recovery_checkpoint(self) -> int:
        """The recovery point to checkpoint while the log is in use: an offset in the first segment that is not sealed.

        With the end of an open segment that is closed next, recovery would start after it and trust indexes that were never
        synced.
        """
        unsealed = self.segments.unsealed
        first = unsealed[0] if unsealed else self.segments.active
        return min(self.recovery_point, first.next_offset - 1) if first.size else self.recovery_point

    # --- appending -----------------------------------------------------------------------------------------------------

    def append(self, data: memoryview | bytearray, header: BatchHeader, last_offset: int) -> None:
        """Appends one batch with its final offset to the active segment. After a StorageFailure it is unknown what reached the
        disk."""
        segment, size, position = self.segments.active, header.size, header.position
        try:
            whole = data if position == 0 and size == len(data) else memoryview(data)[position : position + size]
            segment.append(whole, size, header.base_offset, last_offset, header.max_timestamp, self.config.index_interval_bytes)
        except OSError as problem:
            raise self.append_failed(problem) from problem
        self.end_offset = last_offset + 1

    def append_failed(self, problem: OSError) -> StorageFailure:
        """A write to the active segment failed. Takes the log out of service; returns the exception to raise."""
        return self.fail(f"append to {self.segments.active.path('.log')}", problem)

    def append_run(self, records: memoryview, run: list[BatchHeader]) -> None:
        """Appends consecutive batches to the active segment with one write."""
        first, last = run[0], run[-1]
        segment, interval = self.segments.active, self.config.index_interval_bytes
        try:
            segment.file.write(segment.size, records[first.position : last.position + last.size])
        except OSError as problem:
            raise self.append_failed(problem) from problem
        for header in run:
            segment.note_batch(header.size, header.base_offset, header.last_offset, header.max_timestamp, interval)
        self.end_offset = last.last_offset + 1

    def must_roll(self, header: BatchHeader, now_ms: int, *, after_bytes: int) -> bool:
        """Whether a batch starts a new segment; ``after_bytes`` of batches before it are still to be written."""
        segment, size = self.segments.active, after_bytes + header.size
        if after_bytes and segment.size == 0 and size > self.config.segment_bytes:
            return True
        return segment.must_roll(size, header.last_offset, header.max_timestamp, now_ms, self.limits)

    def roll(self, base_offset: int, now_ms: int) -> LogSegment:
        """Closes the active segment and starts one at ``base_offset``, at or after the log's end."""
        try:
            segment = LogSegment.create(self._fs, self.dir, base_offset, now_ms)
        except OSError as problem:
            raise self.fail(f"new segment {base_offset} in {self.dir}", problem) from problem
        self.segments.active.next_offset = self.end_offset
        self.segments.add(segment)
        self.end_offset = base_offset
        self.unflushed.note_names()
        return segment

    # --- what goes -----------------------------------------------------------------------------------------------------

    def cut(self, offset: int, deferred: Deferred | None) -> None:
        """Drops every batch that reaches ``offset``, which lies in a segment. Raises OSError."""
        keep = self.segments.index_of(offset) + 1
        gone = self.segments.all[keep:]
        self._remove(gone)
        if truncation.remove_snapshots(self._fs, self.dir, offset) or gone:
            # Later segments and snapshots are durably removed before the cut; reappearing, they would not match it.
            self._fs.sync_dir(self.dir)
        self.segments.keep(keep)
        truncation.cut_segment(self.segments.active, offset, deferred)
        end = self.end_offset = self.segments.active.next_offset
        self.recovery_point = min(self.recovery_point, end)
        self.unflushed.forget_snapshots(end)
        truncation.remove_snapshots(self._fs, self.dir, end)

    def start_over(self, offset: int, now_ms: int) -> None:
        """Empties the log; it continues at ``offset``. Raises OSError."""
        self._remove(self.segments.all)
        truncation.remove_snapshots(self._fs, self.dir, -1)
        self._fs.sync_dir(self.dir)
        self.segments.start_over(LogSegment.create(self._fs, self.dir, offset, now_ms))
        self.end_offset = self.recovery_point = offset
        self.unflushed.forget_snapshots(-1)
        self.unflushed.note_names()

    def _remove(self, segments: Sequence[LogSegment]) -> None:
        for segment in reversed(segments):
            segment.remove_files()
            self.unflushed.note_names()

    def replace(self, old: Collection[LogSegment], new: Sequence[LogSegment]) -> None:
        """Replaces closed segments, whose files were set aside, by others that are complete and synced."""
        self.segments.replace(old, new)
        self.recovery_point = max(self.recovery_point, self.segments.all[0].base_offset)
        self.unflushed.note_names()

    def leave_undecided(self, found: Sequence[UndecidedRange]) -> None:
        """What a start has found (``undecided.py``)."""
        self.undecided = found

    def damage_job(self) -> DamageJob | None:
        """A job that writes down which segments are damaged now; None when that is on the disk. Not part of a flush."""
        return None if self.failure is not None else self.damage.job(self._fs, self, self.segments.all)

    # --- making it safe ------------------------------------------------------------------------------------------------

    def flush_job(self, epochs: LeaderEpochCache, topic_id: bytes | None, *, closing: bool = False) -> FlushJob | None:
        """A job for everything not synced yet. With ``closing`` it includes the active segment's indexes, and is None when
        there is nothing to do."""
        if self.failure is not None:
            raise self.failure
        assert not self.unflushed.in_flight, f"{self.dir}: a flush job is under way"
        job = FlushJob(self._fs, self)
        active = self.segments.active
        try:
            for segment in self.segments.unsealed:
                job.seal(segment)
            if self.end_offset > self.recovery_point or self.unflushed.names:
                job.sync_files.append(active.file)
            self.unflushed.hand_over(job, epochs, topic_id)
            if closing:
                job.index_writes.extend(active.closing_index_writes())
                job.add_transactions(active)
        except OSError as problem:
            raise self.fail(f"{'close' if closing else 'flush'} of {self.dir}", problem) from problem
        if closing and not (job.sync_files or job.index_writes or job.file_writes):
            return None
        self.unflushed.begun()
        return job

    def flushed(self, job: FlushJob, now_ms: int) -> None:
        """Takes the result of a job: advances the recovery point, or raises StorageFailure and takes the log out of service
        permanently."""
        self.unflushed.ended()
        if job.error is not None:
            raise self.fail(f"flush of {self.dir}", job.error) from job.error
        self.segments.sealed(job.sealed)
        self.recovery_point = max(self.recovery_point, min(job.upto, self.end_offset))
        self.unflushed.succeeded(now_ms)

    def fail(self, what: str, problem: Exception) -> StorageFailure:
        """Takes the log out of service; returns the exception to raise."""
        return self.fail_with(StorageFailure(self.dir.rpartition("/")[0], f"{what}: {problem}"))

    def fail_with(self, failure: StorageFailure) -> StorageFailure:
        """The log dir has failed; returns the exception to raise, always the first one."""
        if self.failure is None:
            self.failure = failure
        return self.failure

    def moved_to(self, directory: str) -> None:
        """The directory was renamed."""
        self.dir = directory
        for segment in self.segments.all:
            segment.dir = directory

    def names_changed(self) -> None:
        """Files of the log were renamed: the next flush syncs the directory."""
        self.unflushed.note_names()

    def close_files(self) -> None:
        """Closes the file descriptors; files are reopened when needed."""
        self.segments.each(LogSegment.close_file)

    def drop_cold_indexes(self) -> None:
        """Frees memory: sealed segments load their indexes again when they are read."""
        self.segments.each(LogSegment.drop_indexes, closed=True)
