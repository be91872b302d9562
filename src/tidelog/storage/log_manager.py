"""LogManager: every log of this broker, over several log dirs.

This module decides which dir a new partition goes into (the online one with the fewest), what happens to a directory that is
deleted or unknown to the metadata (renamed immediately; removed later, or kept as ``-stray``), and what a failing dir affects
(its own logs only). Blocking work is returned as jobs: ``run`` in any thread, results back on the event loop.

The metadata log lies in one of the dirs as well, but belongs to Raft and is skipped here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tidelog.model.errors import ConfigError, StorageFailure
from tidelog.model.ids import TopicPartition
from tidelog.model.ports import FileSystem, Rng
from tidelog.storage.checkpoints import PARTITION_METADATA, encode_partition_metadata, is_damaged_id
from tidelog.storage.flush import FlushJob
from tidelog.storage.flushed_marks import note_cut
from tidelog.storage.log import UnifiedLog
from tidelog.storage.log_config import LogConfig
from tidelog.storage.log_creation import create_log
from tidelog.storage.log_dir import DELETE_SUFFIX, FUTURE_SUFFIX, STRAY_SUFFIX, LogDir, set_aside_name
from tidelog.storage.log_dirs import LogDirs
from tidelog.storage.log_jobs import CheckpointJob, LoadJob, RemovalJob, Removals, tree_remover
from tidelog.storage.producer_state import DEFAULT_EXPIRATION_MS
from tidelog.storage.recovery import LoadRequest
from tidelog.storage.truncation import Deferred

_logger = logging.getLogger(__name__)


class LogManager:
    """The logs of a broker by partition, and their dirs. All methods run on the event loop; only jobs run elsewhere."""

    def __init__(
        self,
        fs: FileSystem,
        dirs: Sequence[str],
        *,
        node_id: int,
        rng: Rng,
        config_for: Callable[[str], LogConfig],
        cluster_id: str | None = None,
        producer_expiration_ms: int = DEFAULT_EXPIRATION_MS,
    ) -> None:
        """``config_for`` returns a topic's settings by name. With ``cluster_id`` None, any cluster id is accepted."""
        self.fs = fs
        self._dirs = LogDirs(fs, dirs)
        self.dirs = self._dirs.all
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.rng = rng
        self.config_for = config_for
        self.producer_expiration_ms = producer_expiration_ms
        self.on_roll: Callable[[UnifiedLog], None] | None = None
        """Called for every segment that was closed: that log's flush job is due."""
        self._logs: dict[TopicPartition, UnifiedLog] = {}
        self._dir_of: dict[TopicPartition, LogDir] = {}
        self._removals = Removals()
        self.copies: dict[TopicPartition, tuple[LogDir, UnifiedLog]] = {}
        """Logs that are being copied to another dir: the destination and the unfinished copy."""

    # --- starting ------------------------------------------------------------------------------------------------------

    def open_dirs(self) -> None:
        """Opens the dirs (``LogDirs.open``). StorageFailure when none can be used, ConfigError for one that must not be."""
        self.cluster_id = self._dirs.open(self.node_id, self.cluster_id, self.rng)

    def load_jobs(self) -> list[LoadJob]:
        """A job per partition directory; they may run in any order and in parallel."""
        jobs: list[LoadJob] = []
        self._dirs.discard_unfinished_copies()
        for log_dir in self.online_dirs():
            try:
                partitions, removals = log_dir.scan()
            except OSError as problem:
                self.fail_dir(log_dir.path, f"cannot be listed: {problem}")
                continue
            for path in removals:
                self._removals.add(log_dir, 0, path, tree_remover(self.fs, path))
            for partition in partitions:
                request = LoadRequest(
                    f"{log_dir.path}/{partition}",
                    partition,
                    self.config_for(partition.topic),
                    log_dir.clean,
                    log_dir.kernel_survived,
                    *log_dir.checkpointed(partition),
                    self.producer_expiration_ms,
                    flushed=log_dir.flushed.get(partition),
                    checkpoint=log_dir.number,
                )
                jobs.append(LoadJob(self.fs, log_dir, request, self.rng))
        return jobs

    def loaded(self, job: LoadJob) -> None:
        """Takes the result of a job. A log that fails to load takes its dir offline. ConfigError for a partition in two dirs."""
        partition = job.request.topic_partition
        if job.failure is not None:
            self.fail_dir(job.log_dir.path, job.failure.detail)
        elif job.log is not None and job.log_dir.online:
            other = self._dir_of.get(partition)
            if other is not None:
                raise ConfigError(f"log.dirs: {partition} lies in {other.path} and in {job.log_dir.path}: remove the older one")
            self._add(job.log_dir, job.log)

    def load_all(self, now_ms: int) -> None:
        """Runs all load jobs in sequence, for tools and tests."""
        for job in self.load_jobs():
            job.run(now_ms)
            self.loaded(job)

    def _add(self, log_dir: LogDir, log: UnifiedLog) -> None:
        log.on_roll = self.on_roll
        self._logs[log.topic_partition] = log
        self._dir_of[log.topic_partition] = log_dir
        log_dir.logs[log.topic_partition] = log

    # --- logs ----------------------------------------------------------------------------------------------------------

    def get(self, partition: TopicPartition) -> UnifiedLog | None:
        """The log of a partition in an online dir."""
        return self._logs.get(partition)

    def __len__(self) -> int:
        return len(self._logs)

    def logs(self) -> Iterator[UnifiedLog]:
        """All logs; the set must not change meanwhile."""
        return iter(self._logs.values())

    def online_dirs(self) -> list[LogDir]:
        """Dirs that are online."""
        return self._dirs.online()

    def dir_of(self, partition: TopicPartition) -> LogDir | None:
        """The dir of a partition's log."""
        return self._dir_of.get(partition)

    def get_or_create(
        self, partition: TopicPartition, topic_id: bytes, now_ms: int, *, directory_id: bytes | None = None
    ) -> UnifiedLog:
        """The log of a partition of the topic with this id, created if needed. A directory with another topic id is stray: an
        older topic of that name. StorageFailure when the dir fails or none is online. A new log goes into the dir with
        ``directory_id``, or else into the one with the fewest logs."""
        log = self._logs.get(partition)
        if log is not None and log.topic_id is not None and log.topic_id != topic_id:
            if is_damaged_id(f"{log.dir}/{PARTITION_METADATA}", log.topic_id, topic_id):
                self._name(log, topic_id)
                return log
            _logger.warning("%s has topic id %s, %s in the metadata: set aside", partition, log.topic_id.hex(), topic_id.hex())
            self.set_aside(partition, now_ms)
            log = None
        if log is not None:
            if log.topic_id is None:
                self._name(log, topic_id)
            return log
        log_dir = self._dirs.choose(directory_id)
        try:
            log = create_log(
                self.fs,
                f"{log_dir.path}/{partition}",
                partition,
                topic_id,
                self.config_for(partition.topic),
                now_ms,
                producer_expiration_ms=self.producer_expiration_ms,
                rng=self.rng,
            )
        except OSError as problem:
            raise self._failed(log_dir, f"create {partition}", problem) from problem
        self._add(log_dir, log)
        return log

    def _name(self, log: UnifiedLog, topic_id: bytes) -> None:
        """Writes a missing or unusable partition.metadata, now that the topic id is known."""
        try:
            file = self.fs.open(f"{log.dir}/{PARTITION_METADATA}", create=True)
            file.truncate(0)
            file.write(0, encode_partition_metadata(topic_id))
            file.close()
        except OSError as problem:
            raise self._failed(self._dir_of[log.topic_partition], f"name {log.topic_partition}", problem) from problem
        log.name(topic_id)

    def truncate(self, log: UnifiedLog, offset: int, now_ms: int, syncs: Deferred | None = None, *, fully: bool = False) -> None:
        """``truncate_to``, or with ``fully`` a start at ``offset``; notes the cut if a checkpoint says more, with the ``syncs``
        where they are given. Blocks; StorageFailure: disk fails."""
        log_dir = self._dir_of[log.topic_partition]
        try:
            if fully:
                log.truncate_fully_and_start_at(offset, now_ms)
            else:
                log.truncate_to(offset, now_ms, syncs)
            mark = log_dir.cut_mark(log.topic_partition, log)
            if mark is not None and syncs is not None:
                syncs.append(partial(note_cut, self.fs, log.files, mark))
            elif mark is not None:
                note_cut(self.fs, log.files, mark)
        except StorageFailure as failure:
            self.fail_dir(failure.log_dir, failure.detail)
            raise
        except OSError as problem:
            raise self._failed(log_dir, f"truncate {log.topic_partition}", problem) from problem

    def delete_async(self, partition: TopicPartition, now_ms: int) -> None:
        """Removes the partition for readers and renames its directory now; the files are removed after file.delete.delay.ms."""
        log = self._logs.get(partition)
        if log is not None:
            log_dir = self._dir_of[partition]
            path = self._rename_away(log, DELETE_SUFFIX)
            self._removals.add(log_dir, now_ms + log.config.file_delete_delay_ms, path, tree_remover(self.fs, path))

    def set_aside(self, partition: TopicPartition, now_ms: int) -> str | None:
        """A partition that the metadata does not place here: kept as ``-stray`` for the operator; returns its new path."""
        log = self._logs.get(partition)
        return None if log is None else self._rename_away(log, STRAY_SUFFIX)

    def _rename_away(self, log: UnifiedLog, suffix: str) -> str:
        partition = log.topic_partition
        log_dir = self._dir_of.pop(partition)
        del self._logs[partition]
        del log_dir.logs[partition]
        target = f"{log_dir.path}/{set_aside_name(partition, self.rng, suffix)}"
        try:
            self.fs.rename(log.dir, target)
        except OSError as problem:
            raise self._failed(log_dir, f"rename {log.dir}", problem) from problem
        log.files.moved_to(target)
        return target

    # --- moving between dirs ---------------------------------------------------------------------------------------------

    def create_copy(self, log: UnifiedLog, log_dir: LogDir, start_offset: int, now_ms: int) -> UnifiedLog:
        """An empty log in ``<topic>-<n>.<id>-future`` of another dir, to be filled from ``log``. StorageFailure when the dir
        fails."""
        partition = log.topic_partition
        assert partition not in self.copies, f"{partition} is being copied already"
        try:
            copy = create_log(
                self.fs,
                f"{log_dir.path}/{set_aside_name(partition, self.rng, FUTURE_SUFFIX)}",
                partition,
                log.topic_id,
                log.config,
                now_ms,
                start_offset=start_offset,
                producer_expiration_ms=self.producer_expiration_ms,
                rng=self.rng,
            )
        except OSError as problem:
            raise self._failed(log_dir, f"create a copy of {partition}", problem) from problem
        self.copies[partition] = log_dir, copy
        return copy

    def drop_copy(self, partition: TopicPartition, now_ms: int) -> None:
        """Cancels a copy and deletes its files. Nothing to do when there is none."""
        log_dir, copy = self.copies.pop(partition, (None, None))
        if log_dir is not None and copy is not None:
            self._removals.add(log_dir, now_ms, copy.dir, tree_remover(self.fs, copy.dir))

    def put_copy_in_place(self, partition: TopicPartition, now_ms: int) -> None:
        """Makes the copy the partition's log; the old log is deleted like any other. StorageFailure when a dir fails.

        A crash between the two renames leaves both, for the operator to decide; the other order could leave neither. So the first
        rename is synced before the second.
        """
        log_dir, copy = self.copies.pop(partition)
        old = self._logs[partition]
        old_dir = self._dir_of[partition]
        path = f"{log_dir.path}/{partition}"
        try:
            if (mark := log_dir.cut_mark(partition, copy)) is not None:
                note_cut(self.fs, copy.files, mark)
            self.fs.rename(copy.dir, path)
            self.fs.sync_dir(log_dir.path)
        except OSError as problem:
            raise self._failed(log_dir, f"rename {copy.dir}", problem) from problem
        copy.files.moved_to(path)
        copy.files.names_changed()
        gone = self._rename_away(old, DELETE_SUFFIX)
        self._removals.add(old_dir, now_ms + old.config.file_delete_delay_ms, gone, tree_remover(self.fs, gone))
        self._add(log_dir, copy)

    # --- recurring work ------------------------------------------------------------------------------------------------

    def checkpoint_jobs(self) -> list[CheckpointJob]:
        """One job per online dir without a running one (a disk may be slow); run them, then call ``checkpointed``."""
        free = [log_dir for log_dir in self.online_dirs() if not log_dir.checkpoint_under_way]
        for log_dir in free:
            log_dir.checkpoint_under_way = True
        return [CheckpointJob(log_dir) for log_dir in free]

    def checkpointed(self, job: CheckpointJob) -> None:
        """A checkpoint that cannot be written takes its dir offline."""
        job.log_dir.checkpoint_under_way = False
        if job.error is not None:
            self.fail_dir(job.log_dir.path, f"checkpoint: {job.error}")

    def retain(self, now_ms: int, records_ms: int) -> list[str]:
        """One retention step on every log; returns a reason per deleted segment. Dirs that fail go offline. Drops indexes of
        closed segments from memory; reads reload them. ``records_ms``: the current time by the clock of record timestamps."""
        reasons: list[str] = []
        for log in list(self._logs.values()):
            log.files.drop_cold_indexes()
            try:
                result = log.retention_step(records_ms)
            except StorageFailure as failure:
                self.fail_dir(failure.log_dir, failure.detail)
                continue
            if result.segments:
                log_dir = self._dir_of[log.topic_partition]
                due_ms = now_ms + result.due_ms - records_ms
                self._removals.add(log_dir, due_ms, f"segments of {log.topic_partition}", result.remove)
                reasons.extend(result.reasons)
        return reasons

    def removals_due(self, now_ms: int) -> list[RemovalJob]:
        """Jobs that are due, removed from the list; run them, then call ``removed``."""
        return self._removals.due(now_ms)

    def removed(self, job: RemovalJob) -> None:
        """A failed removal takes its dir offline."""
        if job.error is not None:
            self.fail_dir(job.log_dir.path, f"removal of {job.what}: {job.error}")

    def change_producer_expiration(self, expiration_ms: int) -> None:
        """``producer.id.expiration.ms`` changed."""
        self.producer_expiration_ms = expiration_ms
        for log in self._logs.values():
            log.producers.expiration_ms = expiration_ms

    def expire_producers(self, now_ms: int) -> int:
        """Expires idle producers in all logs (every 10 minutes); returns how many."""
        return sum(log.producers.remove_expired(now_ms) for log in self._logs.values())

    def logs_to_flush(self, now_ms: int) -> list[UnifiedLog]:
        """Logs with unflushed data whose flush.ms has passed, and no flush running."""
        return [
            log
            for log in self._logs.values()
            if log.log_end_offset > log.recovery_point
            and not log.flush_in_flight
            and log.failure is None
            and now_ms - log.files.last_flush_ms >= log.config.flush_ms
        ]

    # --- failing and stopping --------------------------------------------------------------------------------------------

    def fail_dir(self, path: str, detail: str) -> list[TopicPartition]:
        """Takes a dir offline; returns its partitions."""
        log_dir, failure = self._dirs.at(path), StorageFailure(path, detail)
        log_dir.fail(failure)
        lost = list(log_dir.logs)
        for partition, log in log_dir.logs.items():
            log.files.fail_with(failure)
            del self._logs[partition]
            del self._dir_of[partition]
        log_dir.logs = {}
        return lost

    def _failed(self, log_dir: LogDir, what: str, problem: OSError) -> StorageFailure:
        self.fail_dir(log_dir.path, f"{what}: {problem}")
        assert log_dir.failure is not None
        return log_dir.failure

    def closing_jobs(self) -> list[tuple[UnifiedLog, FlushJob]]:
        """The jobs of a clean stop, per log; run them in any order or in parallel, then call ``finish_closing``.

        No flush may be running, and nothing may be appended any more.
        """
        jobs: list[tuple[UnifiedLog, FlushJob]] = []
        for log in list(self._logs.values()):
            try:
                job = log.closing_job()
            except StorageFailure as failure:
                self.fail_dir(failure.log_dir, failure.detail)
                continue
            if job is not None:
                # One sync of the log dir, before its marker, covers all logs.
                job.sync_parent = False
                jobs.append((log, job))
        return jobs

    def finish_closing(self, jobs: list[tuple[UnifiedLog, FlushJob]], broker_epoch: int = -1) -> None:
        """Writes the checkpoints, marks the dirs as clean and unlocks them. Blocks. A dir with a failed job gets no marker and
        will be recovered."""
        for log, job in jobs:
            if log.failure is None:
                try:
                    log.flushed(job)
                except StorageFailure as failure:
                    self.fail_dir(failure.log_dir, failure.detail)
        for log_dir in self.dirs:
            if log_dir.online:
                try:
                    for log in log_dir.logs.values():
                        log.files.close_files()
                    log_dir.write_checkpoints(log_dir.checkpoint_contents(closed=True))
                    self.fs.sync_dir(log_dir.path)
                    log_dir.mark_clean(broker_epoch)
                except OSError as problem:
                    self._failed(log_dir, "clean stop", problem)
            log_dir.release()

    def close(self, broker_epoch: int = -1) -> None:
        """Runs the closing jobs in sequence, then ``finish_closing``. Blocks."""
        jobs = self.closing_jobs()
        for _, job in jobs:
            job.run()
        self.finish_closing(jobs, broker_epoch)
