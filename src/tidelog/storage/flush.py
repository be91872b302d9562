"""FlushJob: making what a log holds safe, away from the event loop (group commit: one sync for all who wait).

Decided here: in which order files reach the disk. The recovery point may pass a closed segment only when its log *and* indexes
are synced, because only segments from the recovery point on are scanned after a crash. A snapshot of producer state, the
leader epochs and partition.metadata travel with the same job, and so do the directory's new names.

``flush_job`` runs on the loop and takes copies; ``run`` blocks, in any thread; ``UnifiedLog.flushed`` takes the result on the
loop. One job per log at a time. A failed sync is final: the job keeps the error, ``flushed`` raises StorageFailure, and no
later job is made: a kernel reports a lost write once, forgets it, and shows to the next process, too, what is not on the disk.
So the job leaves a file ``.flush-failed`` in the log's directory, and recovery writes anew what it reads there.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tidelog.model.ports import File, FileSystem
from tidelog.storage.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    encode_epochs,
    encode_partition_metadata,
    replace_file,
)
from tidelog.storage.producer_state import SNAPSHOT_SUFFIX
from tidelog.storage.segment import TXN_INDEX_SUFFIX, LogSegment, file_stem

if TYPE_CHECKING:
    from tidelog.storage.log import UnifiedLog

FLUSH_FAILED = ".flush-failed"
"""In a partition's directory: a sync failed there, and what can be read is not all on the disk."""


class FlushJob:
    """Everything below ``upto`` is on stable storage once ``run`` returned without ``error``."""

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

    def __init__(self, log: UnifiedLog) -> None:
        self._log = log
        self.fs = log.fs
        self.directory = log.dir
        self.upto = log.log_end_offset
        self.sync_files: list[File] = []
        self.index_writes: list[tuple[File, int, bytes]] = []
        """Open index file, position, bytes: written, cut behind, synced."""
        self.file_writes: list[tuple[str, bytes]] = []
        """Whole small files by name, replaced atomically."""
        self.sealed: list[LogSegment] = []
        self.sync_names = False
        """Whether a name in the partition's directory is new."""
        self.sync_parent = False
        """Whether the partition's directory itself may be new since the last job."""
        self.error: OSError | None = None

    def seal(self, segment: LogSegment) -> None:
        """A closed segment: log, indexes and transaction index."""
        self.sync_files.append(segment.file)
        self.index_writes.extend(segment.closing_index_writes())
        self.add_transactions(segment)
        self.sealed.append(segment)

    def add_transactions(self, segment: LogSegment) -> None:
        """The segment's transaction index, if it changed."""
        transactions = segment.aborted.unsynced_file(segment.file_system, segment.path(TXN_INDEX_SUFFIX))
        if transactions is not None:
            self.sync_files.append(transactions)
            self.sync_names = True

    def run(self) -> None:
        """Blocks. Thread-safe: touches only what it was given, and asks the log where it lies. OSError is kept in ``error``."""
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
                # Asked for again each time: a topic may be deleted meanwhile, and another of its name take the directory's place.
                replace_file(self.fs, f"{self._log.dir}/{name}", content, sync_names=False)
            if self.sync_names or self.sync_parent or self.index_writes or self.file_writes:
                self.fs.sync_dir(self.directory)
            if self.sync_parent:
                self.fs.sync_dir(self.directory.rpartition("/")[0])
        except OSError as problem:
            self.error = problem
            _mark_failed(self.fs, self._log.dir)


def _mark_failed(fs: FileSystem, directory: str) -> None:
    # Not synced: a disk that failed once may fail again, and with the kernel's cache what this is about is gone, too.
    with contextlib.suppress(OSError):  # On a disk that is gone there will be nothing to recover, either.
        fs.open(f"{directory}/{FLUSH_FAILED}", create=True).close()


def sync_cut(segment: LogSegment) -> None:
    """What was cut off stays away; what is below the cut may not have been synced before, so a failure is one of a flush, too."""
    try:
        segment.file.sync()
    except OSError:
        _mark_failed(segment.file_system, segment.dir)
        raise


def flush_job(log: UnifiedLog) -> FlushJob:
    """All that is in the log now. One at a time: ``flush_in_flight`` until ``flushed``."""
    assert not log.flush_in_flight, f"{log.topic_partition}: a flush job is under way"
    if log.failure is not None:
        raise log.failure
    job = FlushJob(log)
    try:
        _fill(log, job)
    except OSError as problem:
        raise log.fail(f"flush of {log.dir}", problem) from problem
    log.flush_in_flight = True
    return job


def _fill(log: UnifiedLog, job: FlushJob) -> None:
    for segment in log.unsealed:
        job.seal(segment)
    if log.log_end_offset > log.recovery_point or not log.names_synced:
        job.sync_files.append(log.active.file)
    for offset, content in log.pending_snapshots:
        job.file_writes.append((f"{file_stem(offset)}{SNAPSHOT_SUFFIX}", content))
        log.snapshot_offset = offset
    log.pending_snapshots = []
    if log.leader_epochs.dirty:
        job.file_writes.append((LEADER_EPOCHS, encode_epochs(log.leader_epochs.entries())))
        log.leader_epochs.dirty = False
    if not log.metadata_synced and log.topic_id is not None:
        job.file_writes.insert(0, (PARTITION_METADATA, encode_partition_metadata(log.topic_id)))
        log.metadata_synced = True
    job.sync_parent = not log.names_synced
    log.names_synced = True


def flushed(log: UnifiedLog, job: FlushJob, now_ms: int = 0) -> None:
    """Takes the result of a job that ran: the recovery point moves, or StorageFailure is raised, now and for ever."""
    log.flush_in_flight = False
    if job.error is not None:
        raise log.fail(f"flush of {log.dir}", job.error) from job.error
    for segment in job.sealed:
        segment.sealed = True
    log.unsealed = [segment for segment in log.unsealed if not segment.sealed]
    log.recovery_point = max(log.recovery_point, min(job.upto, log.log_end_offset))
    log.last_flush_ms = now_ms


def flush_now(log: UnifiedLog, now_ms: int = 0) -> None:
    """The job, run at once: for tools, tests and shutdown. Blocks."""
    job = flush_job(log)
    job.run()
    flushed(log, job, now_ms)


def closing_job(log: UnifiedLog) -> FlushJob | None:
    """What a clean stop still owes: a flush, the active segment's indexes, a producer snapshot at the log's end. None when that
    is on the disk already, as for a log that was not written since it was loaded. Run it, then ``flushed``."""
    if log.failure is not None:
        raise log.failure
    assert not log.flush_in_flight, f"{log.topic_partition}: a flush job is under way"
    job = FlushJob(log)
    end = log.producers.end_offset = log.log_end_offset
    touched = end > log.segments[0].base_offset or log.producers.entries
    if touched and log.snapshot_offset != end and all(offset != end for offset, _ in log.pending_snapshots):
        log.pending_snapshots.append((end, log.producers.encode_snapshot()))
    try:
        _fill(log, job)
        job.index_writes.extend(log.active.closing_index_writes())
        job.add_transactions(log.active)
    except OSError as problem:
        raise log.fail(f"close of {log.dir}", problem) from problem
    if not (job.sync_files or job.index_writes or job.file_writes):
        return None
    log.flush_in_flight = True
    return job


def close(log: UnifiedLog) -> None:
    """The closing job, run at once, and all files closed. A log that failed is only closed. Blocks."""
    if log.failure is None:
        job = closing_job(log)
        if job is not None:
            job.run()
            flushed(log, job)
    log.close_files()
