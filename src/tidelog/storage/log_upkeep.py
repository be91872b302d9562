"""LogUpkeep: what is done to all logs of a broker from time to time: retention, checkpoints, removal of files, idle producers.

Blocking work is returned as jobs: ``run`` in any thread, results back on the event loop. A job that fails takes its dir offline.
"""

from __future__ import annotations

from tidelog.model.errors import StorageFailure
from tidelog.storage.log_dirs import LogDirs
from tidelog.storage.log_jobs import CheckpointJob, RemovalJob, Removals
from tidelog.storage.log_table import LogTable


class LogUpkeep:
    """Called on the event loop, at the intervals that the node has."""

    __slots__ = ("_dirs", "_removals", "_table")

    def __init__(self, table: LogTable, dirs: LogDirs, removals: Removals) -> None:
        self._table = table
        self._dirs = dirs
        self._removals = removals

    def checkpoint_jobs(self) -> list[CheckpointJob]:
        """One job per online dir without a running one (a disk may be slow); run them, then call ``checkpointed``."""
        free = [log_dir for log_dir in self._dirs.online() if not log_dir.checkpoint_under_way]
        for log_dir in free:
            log_dir.checkpoint_under_way = True
        return [CheckpointJob(log_dir) for log_dir in free]

    def checkpointed(self, job: CheckpointJob) -> None:
        """A checkpoint that cannot be written takes its dir offline."""
        if (error := job.settle()) is not None:
            self._table.fail_dir(job.log_dir.path, f"checkpoint: {error}")

    def retain(self, now_ms: int, records_ms: int) -> list[str]:
        """One retention step on every log; returns a reason per deleted segment. Dirs that fail go offline. Drops indexes of
        closed segments from memory; reads reload them. ``records_ms``: the current time by the clock of record timestamps."""
        reasons: list[str] = []
        for log in list(self._table):
            log.files.drop_cold_indexes()
            try:
                result = log.retention_step(records_ms)
            except StorageFailure as failure:
                self._table.fail_dir(failure.log_dir, failure.detail)
                continue
            log_dir = self._table.dir_of(log.topic_partition)
            if result.segments and log_dir is not None:
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
            self._table.fail_dir(job.log_dir.path, f"removal of {job.what}: {job.error}")

    def expire_producers(self, now_ms: int) -> int:
        """Expires idle producers in all logs (every 10 minutes); returns how many."""
        return sum(log.producers.remove_expired(now_ms) for log in self._table)
