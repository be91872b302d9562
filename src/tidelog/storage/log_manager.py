"""LogManager: every log of this broker, over several log dirs.

Decided here: what a start loads and what a stop writes, and in which case a partition gets a new log. Blocking work is returned
as jobs: ``run`` in any thread, results back on the event loop.

Elsewhere: which log is in which dir, and what a failing dir takes (``log_table``); recurring work (``log_upkeep``); copies in
other dirs (``future_logs``); which dir takes a new partition (``log_dirs``).

The metadata log lies in one of the dirs as well, but belongs to Raft and is skipped here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tidelog.model.errors import StorageFailure
from tidelog.model.ids import TopicPartition
from tidelog.model.ports import FileSystem, Rng
from tidelog.storage.checkpoints import PARTITION_METADATA, encode_partition_metadata, is_damaged_id
from tidelog.storage.flush_job import FlushJob
from tidelog.storage.flushed_marks import note_cut
from tidelog.storage.future_logs import FutureLogs
from tidelog.storage.log_config import LogConfig
from tidelog.storage.log_creation import create_log
from tidelog.storage.log_dir import LogDir
from tidelog.storage.log_dirs import LogDirs
from tidelog.storage.log_jobs import LoadJob, Removals, tree_remover
from tidelog.storage.log_table import LogTable
from tidelog.storage.log_upkeep import LogUpkeep
from tidelog.storage.producer_state import DEFAULT_EXPIRATION_MS
from tidelog.storage.recovery import LoadRequest
from tidelog.storage.truncation import Deferred
from tidelog.storage.unified_log import UnifiedLog

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
        self._removals = Removals()
        self._table = LogTable(fs, self._dirs, self._removals, rng)
        self.upkeep = LogUpkeep(self._table, self._dirs, self._removals)
        self.future = FutureLogs(fs, self._table, self._removals, rng)

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
        if job.failure is not None:
            self.fail_dir(job.log_dir.path, job.failure.detail)
        elif job.log is not None and job.log_dir.online:
            self._table.add(job.log_dir, job.log)
            job.log_dir.found_cut(job.request.topic_partition, job.request.cut)

    def load_all(self, now_ms: int) -> None:
        """Runs all load jobs in sequence, for tools and tests."""
        for job in self.load_jobs():
            job.run(now_ms)
            self.loaded(job)

    # --- logs ----------------------------------------------------------------------------------------------------------

    def get(self, partition: TopicPartition) -> UnifiedLog | None:
        """The log of a partition in an online dir."""
        return self._table.get(partition)

    def __len__(self) -> int:
        return len(self._table)

    def logs(self) -> Iterator[UnifiedLog]:
        """All logs; the set must not change meanwhile."""
        return iter(self._table)

    def online_dirs(self) -> list[LogDir]:
        """Dirs that are online."""
        return self._dirs.online()

    def dir_of(self, partition: TopicPartition) -> LogDir | None:
        """The dir of a partition's log."""
        return self._table.dir_of(partition)

    def call_on_roll(self, callback: Callable[[UnifiedLog], None]) -> None:
        """``callback`` is called for every segment that is closed, in all logs: that log's flush job is due."""
        self._table.call_on_roll(callback)

    def get_or_create(
        self, partition: TopicPartition, topic_id: bytes, now_ms: int, *, directory_id: bytes | None = None
    ) -> UnifiedLog:
        """The log of a partition of the topic with this id, created if needed. A directory with another topic id is stray: an
        older topic of that name. StorageFailure when the dir fails or none is online. A new log goes into the dir with
        ``directory_id``, or else into the one with the fewest logs."""
        log = self.get(partition)
        if log is not None and log.topic_id is not None and log.topic_id != topic_id:
            if is_damaged_id(f"{log.dir}/{PARTITION_METADATA}", log.topic_id, topic_id):
                self._name(log, topic_id)
                return log
            _logger.warning("%s has topic id %s, %s in the metadata: set aside", partition, log.topic_id.hex(), topic_id.hex())
            self.set_aside(partition)
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
            raise self._table.failed(log_dir, f"create {partition}", problem) from problem
        self._table.add(log_dir, log)
        return log

    def _name(self, log: UnifiedLog, topic_id: bytes) -> None:
        """Writes a missing or unusable partition.metadata, now that the topic id is known."""
        try:
            file = self.fs.open(f"{log.dir}/{PARTITION_METADATA}", create=True)
            file.truncate(0)
            file.write(0, encode_partition_metadata(topic_id))
            file.close()
        except OSError as problem:
            raise self._table.failed(self._dir(log), f"name {log.topic_partition}", problem) from problem
        log.name(topic_id)

    def truncate(self, log: UnifiedLog, offset: int, now_ms: int, syncs: Deferred | None = None, *, fully: bool = False) -> None:
        """``truncate_to``, or with ``fully`` a start at ``offset``; notes the cut if a checkpoint says more, with the ``syncs``
        where they are given. Blocks; StorageFailure: disk fails."""
        log_dir = self._dir(log)
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
            raise self._table.failed(log_dir, f"truncate {log.topic_partition}", problem) from problem

    def _dir(self, log: UnifiedLog) -> LogDir:
        log_dir = self.dir_of(log.topic_partition)
        assert log_dir is not None, f"{log.dir} lies in no dir that is online"
        return log_dir

    def delete_async(self, partition: TopicPartition, now_ms: int) -> None:
        """Removes the partition for readers and renames its directory now; the files are removed after file.delete.delay.ms."""
        self._table.delete(partition, now_ms)

    def set_aside(self, partition: TopicPartition) -> str | None:
        """A partition that the metadata does not place here: kept as ``-stray`` for the operator; returns its new path."""
        return self._table.set_aside(partition)

    def change_producer_expiration(self, expiration_ms: int) -> None:
        """``producer.id.expiration.ms`` changed."""
        self.producer_expiration_ms = expiration_ms
        for log in self._table:
            log.producers.expiration_ms = expiration_ms

    # --- failing and stopping --------------------------------------------------------------------------------------------

    def fail_dir(self, path: str, detail: str) -> list[TopicPartition]:
        """Takes a dir offline; returns its partitions."""
        return self._table.fail_dir(path, detail)

    def closing_jobs(self) -> list[tuple[UnifiedLog, FlushJob]]:
        """The jobs of a clean stop, per log; run them in any order or in parallel, then call ``finish_closing``.

        No flush may be running, and nothing may be appended any more.
        """
        jobs: list[tuple[UnifiedLog, FlushJob]] = []
        for log in list(self._table):
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
                    log_dir.write_last_checkpoints()
                    self.fs.sync_dir(log_dir.path)
                    log_dir.mark_clean(broker_epoch)
                except OSError as problem:
                    self._table.failed(log_dir, "clean stop", problem)
            log_dir.release()

    def close(self, broker_epoch: int = -1) -> None:
        """Runs the closing jobs in sequence, then ``finish_closing``. Blocks."""
        jobs = self.closing_jobs()
        for _, job in jobs:
            job.run()
        self.finish_closing(jobs, broker_epoch)
