"""FlushJob: syncs a log outside the event loop (group commit: one sync for all waiting requests).

This module decides the order in which files reach the disk. The recovery point may pass a closed segment only when its log *and*
indexes are synced, because after a crash only segments from the recovery point on are scanned. A producer snapshot, the leader
epochs, partition.metadata and new names in the directory are written by the same job.

``flush_job`` runs on the event loop and takes copies; ``run`` blocks, in any thread; ``UnifiedLog.flushed`` takes the result on
the loop. One job per log at a time. A failed sync is final: the job keeps the error, ``flushed`` raises StorageFailure, and no
later job is made. A kernel reports a lost write once and then forgets it, and even the next process reads from the page cache
what is not on the disk. So the job leaves a file ``.flush-failed`` in the log's directory, and recovery rewrites what it reads
there.
"""

from __future__ import annotations

import contextlib
from typing import Protocol

from tidelog.model.ports import File, FileSystem
from tidelog.storage.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    encode_epochs,
    encode_partition_metadata,
    replace_file,
)
from tidelog.storage.leader_epochs import LeaderEpochCache
from tidelog.storage.producer_state import SNAPSHOT_SUFFIX
from tidelog.storage.segment import TXN_INDEX_SUFFIX, LogSegment, file_stem

FLUSH_FAILED = ".flush-failed"
"""In a partition's directory: a sync failed, so what can be read there may not be on the disk."""


class Flushable(Protocol):
    """The log of a job: its directory, which may change while the job runs, and its end."""

    @property
    def dir(self) -> str: ...
    @property
    def end_offset(self) -> int: ...


class FlushJob:
    """Everything below ``upto`` is on stable storage once ``run`` has returned without ``error``."""

    __slots__ = (
        "_log",
        "directory",
        "error",
        "file_writes",
        "fs",
        "index_writes",
        "sealed",
        "sync_files",
        "sync_names",
        "sync_parent",
        "upto",
    )

    def __init__(self, fs: FileSystem, log: Flushable) -> None:
        self._log = log
        self.fs = fs
        self.directory = log.dir
        self.upto = log.end_offset
        self.sync_files: list[File] = []
        self.index_writes: list[tuple[File, int, bytes]] = []
        """Open index file, position, bytes: written there, truncated after them, synced."""
        self.file_writes: list[tuple[str, bytes]] = []
        """Whole small files by name, replaced atomically."""
        self.sealed: list[LogSegment] = []
        self.sync_names = False
        """Whether the partition's directory has new names."""
        self.sync_parent = False
        """Whether the partition's directory itself may be new since the last job."""
        self.error: OSError | None = None

    def seal(self, segment: LogSegment) -> None:
        """Adds a closed segment: log, indexes and transaction index."""
        self.sync_files.append(segment.file)
        self.index_writes.extend(segment.closing_index_writes())
        self.add_transactions(segment)
        self.sealed.append(segment)

    def add_transactions(self, segment: LogSegment) -> None:
        """Adds the segment's transaction index if it changed."""
        transactions = segment.aborted.unsynced_file(segment.file_system, segment.path(TXN_INDEX_SUFFIX))
        if transactions is not None:
            self.sync_files.append(transactions)
            self.sync_names = True

    def run(self) -> None:
        """Blocks. Thread-safe: uses only what it was given, and asks the log for its directory. OSError is kept in ``error``."""
        try:
            for file, position, data in self.index_writes:
                if data:
                    file.write(position, data)
                file.truncate(position + len(data))
                file.sync()
                file.close()
            for file in self.sync_files:
                file.sync()
            for name, content in self.file_writes:
                # The directory is looked up each time: a topic may be deleted meanwhile and another of its name take the
                # directory's place.
                replace_file(self.fs, f"{self._log.dir}/{name}", content, sync_names=False)
            if self.sync_names or self.sync_parent or self.index_writes or self.file_writes:
                self.fs.sync_dir(self.directory)
            if self.sync_parent:
                self.fs.sync_dir(self.directory.rpartition("/")[0])
        except OSError as problem:
            self.error = problem
            _mark_failed(self.fs, self._log.dir)


def _mark_failed(fs: FileSystem, directory: str) -> None:
    # Not synced: a disk that failed once may fail again, and when the kernel's page cache is lost the file has no purpose.
    with contextlib.suppress(OSError):  # On a dead disk there will be nothing to recover, either.
        fs.open(f"{directory}/{FLUSH_FAILED}", create=True).close()


def sync_cut(segment: LogSegment) -> None:
    """Makes a truncation durable. What is below the cut may not have been synced before, so a failure counts as a failed
    flush."""
    try:
        segment.file.sync()
    except OSError:
        _mark_failed(segment.file_system, segment.dir)
        raise


class Unflushed:
    """What is not on stable storage yet besides batches, and the newest producer snapshot that is."""

    __slots__ = ("_in_flight", "_last_ms", "_metadata", "_names", "_snapshot_offset", "_snapshots")

    def __init__(self, now_ms: int = 0, *, metadata: bool = False, names: bool = False) -> None:
        """``metadata``: partition.metadata must be written; ``names``: the directory, or files in it, are new."""
        self._in_flight = False
        self._last_ms = now_ms
        self._metadata = metadata
        self._names = names
        self._snapshots: list[tuple[int, bytes]] = []
        self._snapshot_offset = -1

    @property
    def in_flight(self) -> bool:
        """Whether a job is running; at most one does."""
        return self._in_flight

    @property
    def last_ms(self) -> int:
        """When the last job succeeded."""
        return self._last_ms

    @property
    def names(self) -> bool:
        return self._names

    def note_names(self) -> None:
        """A name in the log's directory was added or removed."""
        self._names = True

    def note_metadata(self) -> None:
        """partition.metadata was written."""
        self._metadata = True

    def add_snapshot(self, offset: int, content: bytes) -> None:
        """Adds the producer state at ``offset``, to be written."""
        self._snapshots.append((offset, content))

    def has_snapshot(self, offset: int) -> bool:
        """Whether the snapshot at ``offset`` is on disk or will be written."""
        return self._snapshot_offset == offset or any(at == offset for at, _ in self._snapshots)

    def found_snapshot(self, offset: int) -> None:
        """The snapshot that the producer state was loaded from; -1 for none."""
        self._snapshot_offset = offset

    def forget_snapshots(self, above: int) -> None:
        """Drops snapshots of state that a truncation removed."""
        self._snapshots = [(offset, content) for offset, content in self._snapshots if offset <= above]

    def hand_over(self, job: FlushJob, epochs: LeaderEpochCache, topic_id: bytes | None) -> None:
        """Moves everything into the job."""
        for offset, content in self._snapshots:
            job.file_writes.append((f"{file_stem(offset)}{SNAPSHOT_SUFFIX}", content))
            self._snapshot_offset = offset
        self._snapshots = []
        changed = epochs.take_changes()
        if changed is not None:
            job.file_writes.append((LEADER_EPOCHS, encode_epochs(changed)))
        if self._metadata and topic_id is not None:
            job.file_writes.insert(0, (PARTITION_METADATA, encode_partition_metadata(topic_id)))
            self._metadata = False
        job.sync_parent = self._names
        self._names = False

    def begun(self) -> None:
        """A job was created."""
        self._in_flight = True

    def ended(self) -> None:
        """The job has run."""
        self._in_flight = False

    def succeeded(self, now_ms: int) -> None:
        """The job succeeded."""
        self._last_ms = now_ms
