"""LogTable: the logs of a broker by partition, and the dir of each.

Decided here: what becomes of a directory that is deleted or unknown to the metadata (renamed immediately; removed later, or kept
as ``-stray``), and what a failing dir affects (its own logs only).

Invariant: a log is found here exactly while its dir is online and lists it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tidelog.model.errors import ConfigError, StorageFailure
from tidelog.model.ids import TopicPartition
from tidelog.model.ports import FileSystem, Rng
from tidelog.storage.log_dir import DELETE_SUFFIX, STRAY_SUFFIX, LogDir, set_aside_name
from tidelog.storage.log_dirs import LogDirs
from tidelog.storage.log_jobs import Removals, tree_remover
from tidelog.storage.unified_log import UnifiedLog


class LogTable:
    """The only writer of which log is in which dir, in this table and in ``LogDir.logs``."""

    __slots__ = ("_dir_of", "_dirs", "_fs", "_logs", "_on_roll", "_removals", "_rng")

    def __init__(self, fs: FileSystem, dirs: LogDirs, removals: Removals, rng: Rng) -> None:
        self._fs = fs
        self._dirs = dirs
        self._removals = removals
        self._rng = rng
        self._logs: dict[TopicPartition, UnifiedLog] = {}
        self._dir_of: dict[TopicPartition, LogDir] = {}
        self._on_roll: Callable[[UnifiedLog], None] | None = None

    def get(self, partition: TopicPartition) -> UnifiedLog | None:
        """The log of a partition in an online dir."""
        return self._logs.get(partition)

    def __len__(self) -> int:
        return len(self._logs)

    def __iter__(self) -> Iterator[UnifiedLog]:
        """All logs; the set must not change meanwhile."""
        return iter(self._logs.values())

    def dir_of(self, partition: TopicPartition) -> LogDir | None:
        """The dir of a partition's log."""
        return self._dir_of.get(partition)

    def add(self, log_dir: LogDir, log: UnifiedLog) -> None:
        """Takes a log that lies in ``log_dir``. ConfigError for a partition that another dir has already."""
        partition = log.topic_partition
        other = self._dir_of.get(partition)
        if other is not None:
            raise ConfigError(f"log.dirs: {partition} lies in {other.path} and in {log_dir.path}: remove the older one")
        log.on_roll = self._on_roll
        self._logs[partition] = log
        self._dir_of[partition] = log_dir
        log_dir.logs[partition] = log

    def call_on_roll(self, callback: Callable[[UnifiedLog], None]) -> None:
        """``callback`` is called for every segment that is closed, in the logs of now and of later."""
        self._on_roll = callback
        for log in self._logs.values():
            log.on_roll = callback

    def delete(self, partition: TopicPartition, now_ms: int) -> None:
        """Removes the partition for readers and renames its directory now; the files are removed after file.delete.delay.ms.
        StorageFailure when the dir fails."""
        log = self._logs.get(partition)
        if log is not None:
            log_dir = self._dir_of[partition]
            path = self._rename_away(log, DELETE_SUFFIX)
            self._removals.add(log_dir, now_ms + log.config.file_delete_delay_ms, path, tree_remover(self._fs, path))

    def set_aside(self, partition: TopicPartition) -> str | None:
        """Removes a partition that the metadata does not place here, and keeps its directory as ``-stray`` for the operator;
        returns the new path. StorageFailure when the dir fails."""
        log = self._logs.get(partition)
        return None if log is None else self._rename_away(log, STRAY_SUFFIX)

    def _rename_away(self, log: UnifiedLog, suffix: str) -> str:
        partition = log.topic_partition
        log_dir = self._dir_of.pop(partition)
        del self._logs[partition]
        del log_dir.logs[partition]
        target = f"{log_dir.path}/{set_aside_name(partition, self._rng, suffix)}"
        try:
            self._fs.rename(log.dir, target)
        except OSError as problem:
            raise self.failed(log_dir, f"rename {log.dir}", problem) from problem
        log.files.moved_to(target)
        return target

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

    def failed(self, log_dir: LogDir, what: str, problem: OSError) -> StorageFailure:
        """Takes ``log_dir`` offline because ``what`` failed; returns the failure to be raised."""
        self.fail_dir(log_dir.path, f"{what}: {problem}")
        assert log_dir.failure is not None
        return log_dir.failure
