"""FutureLogs: logs that are being copied to another log dir (KIP-113), in ``<topic>-<n>.<id>-future``.

Decided here: how a copy begins, ends without effect, and takes the place of the partition's log. What is copied, and when:
``replication.replica_move``.
"""

from __future__ import annotations

from tidelog.model.ids import TopicPartition
from tidelog.model.ports import FileSystem, Rng
from tidelog.storage.flushed_marks import note_cut
from tidelog.storage.log_creation import create_log
from tidelog.storage.log_dir import FUTURE_SUFFIX, LogDir, set_aside_name
from tidelog.storage.log_jobs import Removals, tree_remover
from tidelog.storage.log_table import LogTable
from tidelog.storage.unified_log import UnifiedLog


class FutureLogs:
    """The unfinished copies, at most one for each partition."""

    __slots__ = ("_fs", "_removals", "_rng", "_table", "copies")

    def __init__(self, fs: FileSystem, table: LogTable, removals: Removals, rng: Rng) -> None:
        self._fs = fs
        self._table = table
        self._removals = removals
        self._rng = rng
        self.copies: dict[TopicPartition, tuple[LogDir, UnifiedLog]] = {}
        """By partition: the destination and the unfinished copy. Written here only."""

    def create(self, log: UnifiedLog, log_dir: LogDir, start_offset: int, now_ms: int) -> UnifiedLog:
        """An empty log in another dir, to be filled from ``log``. StorageFailure when the dir fails."""
        partition = log.topic_partition
        assert partition not in self.copies, f"{partition} is being copied already"
        try:
            copy = create_log(
                self._fs,
                f"{log_dir.path}/{set_aside_name(partition, self._rng, FUTURE_SUFFIX)}",
                partition,
                log.topic_id,
                log.config,
                now_ms,
                start_offset=start_offset,
                producer_expiration_ms=log.producers.expiration_ms,
                rng=self._rng,
            )
        except OSError as problem:
            raise self._table.failed(log_dir, f"create a copy of {partition}", problem) from problem
        self.copies[partition] = log_dir, copy
        return copy

    def drop(self, partition: TopicPartition, now_ms: int) -> None:
        """Cancels a copy and deletes its files. Nothing to do when there is none."""
        log_dir, copy = self.copies.pop(partition, (None, None))
        if log_dir is not None and copy is not None:
            self._removals.add(log_dir, now_ms, copy.dir, tree_remover(self._fs, copy.dir))

    def put_in_place(self, partition: TopicPartition, now_ms: int) -> None:
        """Makes the copy the partition's log; the old log is deleted like any other. StorageFailure when a dir fails.

        A crash between the two renames leaves both, for the operator to decide; the other order could leave neither. So the first
        rename is synced before the second.
        """
        log_dir, copy = self.copies.pop(partition)
        path = f"{log_dir.path}/{partition}"
        try:
            if (mark := log_dir.cut_mark(partition, copy)) is not None:
                note_cut(self._fs, copy.files, mark)
            self._fs.rename(copy.dir, path)
            self._fs.sync_dir(log_dir.path)
        except OSError as problem:
            raise self._table.failed(log_dir, f"rename {copy.dir}", problem) from problem
        copy.files.moved_to(path)
        copy.files.names_changed()
        self._table.delete(partition, now_ms)
        self._table.add(log_dir, copy)
