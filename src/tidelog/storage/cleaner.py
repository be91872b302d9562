"""Log compaction: selects the next log, cleans it, and swaps its new segments in (LogCleaner).

As in Kafka:

- The log with the greatest share of dirty bytes is cleaned first, if that share is above min.cleanable.dirty.ratio or
  max.compaction.lag.ms has passed (``cleanable_range``).
- All segments up to the end of the offset map are rewritten, in groups that fit one segment.
- New files are written as ``.cleaned`` and renamed to ``.swap`` when all of them are synced; then the old ones become
  ``.deleted``, then the new ones lose their suffix. The directory is synced between these steps, so that a crash leaves either
  all old segments (and useless ``.cleaned`` files), or a ``.swap`` that replaces what it covers at the next load.

A ``Cleaning`` compacts one log as a chain of jobs: run ``cleaning.job`` in any thread, call ``advance`` on the event loop, until
``job`` is None. Retention, appends and reads continue meanwhile; a cleaning whose segments were deleted ends without effect.

Elsewhere: what is left of a batch (cleaner_filter.py), reading and writing (cleaner_jobs.py), crash recovery (recovery.py).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from tidelog.model.ids import TopicPartition
from tidelog.model.ports import FileSystem
from tidelog.storage.checkpoints import CLEANER_OFFSETS, BadCheckpoint, encode_offsets, read_offsets
from tidelog.storage.cleanable_ratio import CleanableRange, cleanable_range
from tidelog.storage.cleaner_filter import LastRecord, OffsetMap, TransactionFilter
from tidelog.storage.cleaner_jobs import CLEANED_SUFFIX, CheckpointJob, CleanerJob, MapJob, RewriteJob, Source, SyncJob, source_of
from tidelog.storage.retention import RetentionResult, set_aside
from tidelog.storage.unified_log import UnifiedLog

SWAP_SUFFIX = ".swap"
DEDUPE_BUFFER_BYTES = 128 << 20
_LOAD_FACTOR = 0.9

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class CleanerStats:
    """Counters of one cleaning."""

    map_bytes_read: int = 0
    map_records_read: int = 0
    map_keys: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_kept: int = 0


class LogCleaner:
    """Selects logs to compact and keeps their checkpoints. All methods run on the event loop, except ``load``."""

    def __init__(self, fs: FileSystem, *, dedupe_buffer_bytes: int = DEDUPE_BUFFER_BYTES) -> None:
        """``dedupe_buffer_bytes``: memory for the keys of one cleaning (log.cleaner.dedupe.buffer.size divided by
        log.cleaner.threads)."""
        self._fs = fs
        self.map_bytes = int(dedupe_buffer_bytes * _LOAD_FACTOR)
        self.clean_offsets: dict[str, dict[TopicPartition, int]] = {}
        """By log dir: the first dirty offset of each compacted partition."""
        self.cleanings: dict[TopicPartition, Cleaning] = {}
        """Running cleanings."""
        self.uncleanable: dict[TopicPartition, str] = {}
        """Partitions that are not cleaned until the node is restarted or the log is mended, and why."""
        self.dirtiest_ratio = 0.0
        """Greatest dirty ratio at the last ``begin`` (max-dirty-percent)."""
        self._writing: set[str] = set()
        self._changed_meanwhile: set[str] = set()

    def load(self, log_dirs: Iterable[str]) -> None:
        """Reads the checkpoints. A malformed one counts as missing, and costs a cleaning from the start. Blocks."""
        for log_dir in log_dirs:
            try:
                self.clean_offsets[log_dir] = read_offsets(self._fs, f"{log_dir}/{CLEANER_OFFSETS}")
            except BadCheckpoint as problem:
                _logger.warning("%s; all compacted partitions in it count as never cleaned", problem)
                self.clean_offsets[log_dir] = {}

    def begin(self, logs: Iterable[UnifiedLog], now_ms: int) -> Cleaning | None:
        """Starts the next cleaning, of the dirtiest log that is due; None when none is. StorageFailure when a disk fails."""
        best: tuple[float, UnifiedLog, CleanableRange] | None = None
        self.dirtiest_ratio = 0.0
        known: dict[str, set[TopicPartition]] = {}
        for log in logs:
            known.setdefault(log.log_dir, set()).add(log.topic_partition)
            if not self._may_clean(log):
                continue
            found = self._range(log, now_ms)
            ratio = found.dirty_ratio
            self.dirtiest_ratio = max(self.dirtiest_ratio, ratio)
            due = found.is_due(log.config.min_cleanable_dirty_ratio)
            if due and (best is None or ratio > best[0]):
                best = ratio, log, found
        self._forget_all_but(known)
        if best is None:
            return None
        return self._start(best[1], best[2], now_ms)

    def _may_clean(self, log: UnifiedLog) -> bool:
        partition = log.topic_partition
        return (
            log.config.compact and log.failure is None and partition not in self.cleanings and partition not in self.uncleanable
        )

    def _range(self, log: UnifiedLog, now_ms: int) -> CleanableRange:
        offsets = self.clean_offsets.setdefault(log.log_dir, {})
        try:
            found = cleanable_range(log, offsets.get(log.topic_partition), now_ms)
        except OSError as problem:
            raise log.fail(f"choice of what to compact in {log.dir}", problem) from problem
        if found.checkpoint_is_wrong:
            offsets[log.topic_partition] = found.first_dirty_offset
        return found

    def _forget_all_but(self, known: dict[str, set[TopicPartition]]) -> None:
        """Removes deleted partitions from the checkpoints."""
        for log_dir, partitions in known.items():
            offsets = self.clean_offsets.setdefault(log_dir, {})
            for partition in [partition for partition in offsets if partition not in partitions]:
                del offsets[partition]

    def _start(self, log: UnifiedLog, found: CleanableRange, now_ms: int) -> Cleaning:
        try:
            cleaning = Cleaning(self, log, found, now_ms)
        except OSError as problem:
            raise log.fail(f"compaction of {log.dir}", problem) from problem
        self.cleanings[log.topic_partition] = cleaning
        return cleaning

    def cancel(self, partition: TopicPartition) -> None:
        """Ends a partition's cleaning at its next step; the segments stay as they are then."""
        cleaning = self.cleanings.get(partition)
        if cleaning is not None:
            cleaning.cancelled = True

    def exclude(self, partition: TopicPartition, reason: str) -> None:
        """Excludes a partition from cleaning until the node is restarted, after an unexpected error."""
        self.uncleanable[partition] = reason
        self.cleanings.pop(partition, None)

    def mended(self, log: UnifiedLog) -> None:
        """Damage of the log was replaced: it is cleaned again."""
        self.uncleanable.pop(log.topic_partition, None)

    def truncated(self, log: UnifiedLog, offset: int) -> None:
        """The log was truncated to ``offset``: lowers the clean offset and ends a running cleaning, whose segments may be
        gone."""
        self.cancel(log.topic_partition)
        offsets = self.clean_offsets.get(log.log_dir, {})
        if offsets.get(log.topic_partition, -1) > offset:
            offsets[log.topic_partition] = offset

    def checkpoint_job(self, log_dir: str) -> CheckpointJob | None:
        """Writes a dir's clean offsets. None while another such job is running; one more follows it."""
        if log_dir in self._writing:
            self._changed_meanwhile.add(log_dir)
            return None
        self._writing.add(log_dir)
        content = encode_offsets(self.clean_offsets.get(log_dir, {}))
        return CheckpointJob(self._fs, f"{log_dir}/{CLEANER_OFFSETS}", content)

    def checkpointed(self, log_dir: str) -> CheckpointJob | None:
        """Called after such a job: returns the next one if offsets changed meanwhile."""
        self._writing.discard(log_dir)
        if log_dir in self._changed_meanwhile:
            self._changed_meanwhile.discard(log_dir)
            return self.checkpoint_job(log_dir)
        return None


class Cleaning:
    """The compaction of one log, step by step. ``job`` is what to run next; None at the end.

    ``removals``: old segments, to be removed when due; the caller takes them from here.
    """

    def __init__(self, cleaner: LogCleaner, log: UnifiedLog, found: CleanableRange, now_ms: int) -> None:
        self._cleaner = cleaner
        self.log = log
        self.range = found
        self.stats = CleanerStats()
        self.removals: list[RetentionResult] = []
        self.cancelled = False
        self._dir = log.dir
        self._log_dir = log.log_dir
        self._now_ms = now_ms
        self._transactions = TransactionFilter()
        self._groups: list[list[Source]] = []
        self._offsets = OffsetMap.within(cleaner.map_bytes)
        self._end_offset = found.first_dirty_offset
        self._rewritten: RewriteJob | None = None
        """The group whose new segment is being swapped in."""
        sources = [source_of(segment) for segment in log.segments if segment.base_offset < found.first_uncleanable_offset]
        self.job: CleanerJob | None = MapJob(
            log.fs,
            tuple(log.segments),
            sources,
            self._offsets,
            start=found.first_dirty_offset,
            upper_bound=found.first_uncleanable_offset,
            segment_bytes=log.config.segment_bytes,
            segment_index_bytes=log.config.segment_index_bytes,
        )

    def advance(self, now_ms: int) -> None:
        """Takes the result of ``job``, which has run, and sets the next one. StorageFailure when the disk failed."""
        job = self.job
        assert job is not None, f"the cleaning of {self.log.topic_partition} is over"
        try:
            if not isinstance(job, CheckpointJob) and not self._goes_on(job):
                self._abandon()
            elif job.error is not None:
                raise job.error
            elif job.corrupt is not None:
                self._give_up(job.corrupt)
            elif isinstance(job, MapJob):
                self._mapped(job)
            elif isinstance(job, RewriteJob):
                self._rewrote(job)
            elif isinstance(job, SyncJob):
                self._synced(now_ms)
            else:
                self._checkpointed()
        except OSError as problem:
            self._end()
            raise self.log.fail(f"compaction of {self.log.dir}", problem) from problem

    def _goes_on(self, job: CleanerJob) -> bool:
        """Whether the log is still in service, in place and compacted, with the segments of the current group. A swap that has
        begun is always finished."""
        log = self.log
        if log.failure is not None or log.dir != self._dir or job.interrupted:
            return False
        if self._rewritten is not None and self._rewritten.cleaned in log.segments:
            return True
        group = job.group if isinstance(job, RewriteJob) else self._rewritten.group if self._rewritten is not None else ()
        if self.cancelled or log.config.compact is False:
            return False
        if not group:
            return True
        start = log.segment_index(group[0].base_offset)
        present = log.segments[start : start + len(group)]
        return len(present) == len(group) and all(there is source.segment for there, source in zip(present, group, strict=True))

    def _mapped(self, job: MapJob) -> None:
        stats = self.stats
        stats.map_bytes_read, stats.map_records_read, stats.map_keys = job.bytes_read, job.records_read, len(job.offsets)
        if job.end_offset <= self.range.first_dirty_offset:
            self._give_up(f"{len(job.offsets)} keys fill log.cleaner.dedupe.buffer.size before one batch is read: raise it")
            return
        self._end_offset = job.end_offset
        self._groups = job.groups
        self._next_group()

    def _next_group(self) -> None:
        """Rewrites the next group, or writes the checkpoint after the last one."""
        log = self.log
        self._rewritten = None
        if not self._groups:
            self._cleaner.clean_offsets.setdefault(self._log_dir, {})[log.topic_partition] = self._end_offset
            self.job = self._cleaner.checkpoint_job(self._log_dir)
            if self.job is None:
                self._end()
            return
        last_records = {
            entry.producer_id: LastRecord(entry.last_offset if entry.batches else None, entry.epoch)
            for entry in log.producers.entries.values()
        }
        self.job = RewriteJob(
            log.fs,
            log.dir,
            tuple(log.segments),
            self._groups.pop(0),
            self._offsets,
            self._transactions,
            last_records,
            upper_bound=self.range.first_uncleanable_offset,
            now_ms=self._now_ms,
            delete_retention_ms=log.config.delete_retention_ms,
            index_interval_bytes=log.config.index_interval_bytes,
        )

    def _rewrote(self, job: RewriteJob) -> None:
        """The new segment is complete and synced; from here on a crash keeps it."""
        stats = self.stats
        stats.bytes_read += job.bytes_read
        stats.bytes_written += job.cleaned.size
        stats.records_read += job.records_read
        stats.records_kept += job.records_kept
        job.cleaned.rename_files(SWAP_SUFFIX)
        self._rewritten = job
        self.job = SyncJob(self.log.fs, self.log.dir)

    def _synced(self, now_ms: int) -> None:
        """The directory is synced: after the rename to ``.swap`` the old segments are removed, after that the suffix."""
        done, log = self._rewritten, self.log
        assert done is not None
        if done.cleaned not in log.segments:
            self._put_in_place(done, now_ms)
            self.job = SyncJob(log.fs, log.dir)
            return
        done.cleaned.rename_files("")
        done.cleaned.drop_indexes()
        log.files.names_changed()
        self._next_group()

    def _put_in_place(self, done: RewriteJob, now_ms: int) -> None:
        log = self.log
        old = tuple(source.segment for source in done.group)
        snapshots = set_aside(log, old, keep_snapshot_at=done.cleaned.base_offset)
        log.files.replace(old, (done.cleaned,))
        self.removals.append(RetentionResult(old, snapshots, now_ms + log.config.file_delete_delay_ms, ()))

    def _checkpointed(self) -> None:
        self.job = self._cleaner.checkpointed(self._log_dir)
        if self.job is None:
            self._end()

    def _give_up(self, reason: str) -> None:
        """These records cannot be compacted and need an operator."""
        partition = self.log.topic_partition
        self._cleaner.uncleanable[partition] = reason
        _logger.error("%s is not compacted any more until the node is restarted or the log is mended: %s", partition, reason)
        self._abandon()

    def _abandon(self) -> None:
        """Deletes what was written and not swapped in."""
        job = self._rewritten if self._rewritten is not None else self.job
        if isinstance(job, RewriteJob) and self.log.failure is None and self.log.dir == self._dir:
            # Back to .cleaned first: an index left over as .swap would replace one that is in use.
            job.cleaned.rename_files(CLEANED_SUFFIX)
            job.cleaned.remove_files()
        self._end()

    def _end(self) -> None:
        self.job = None
        self._groups = []
        self._rewritten = None
        self._cleaner.cleanings.pop(self.log.topic_partition, None)
