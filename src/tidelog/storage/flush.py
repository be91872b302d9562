"""FlushJob: making what a log holds safe, away from the event loop (group commit: one sync for all who wait).

Decided here: in which order files reach the disk. The recovery point may pass a closed segment only when its log *and* indexes
are synced, because only segments from the recovery point on are scanned after a crash. A snapshot of producer state, the
leader epochs and partition.metadata travel with the same job, and so do the directory's new names.

``begin`` runs on the loop and takes copies; ``run`` blocks, in any thread; ``UnifiedLog.flushed`` takes the result on the
loop. One job per log at a time. A failed sync is final: the job keeps the error, ``flushed`` raises StorageFailure, and no
later job is made (a kernel reports a lost write once, and forgets it).
"""

from __future__ import annotations

from tidelog.model.ports import File, FileSystem
from tidelog.storage.checkpoints import replace_file
from tidelog.storage.segment import LogSegment


class FlushJob:
    """Everything below ``upto`` is on stable storage once ``run`` returned without ``error``."""

    __slots__ = (
        "directory",
        "error",
        "file_writes",
        "fs",
        "index_writes",
        "removals",
        "sealed",
        "sync_files",
        "sync_parent",
        "upto",
    )

    def __init__(self, fs: FileSystem, directory: str, upto: int) -> None:
        self.fs = fs
        self.directory = directory
        self.upto = upto
        self.sync_files: list[File] = []
        self.index_writes: list[tuple[File, int, bytes]] = []
        """Open index file, position, bytes: written, cut behind, synced."""
        self.file_writes: list[tuple[str, bytes]] = []
        """Whole small files, replaced atomically."""
        self.removals: list[str] = []
        """Files that the new ones make superfluous."""
        self.sealed: list[LogSegment] = []
        self.sync_parent = False
        """Whether the partition's directory itself, or names in it, are new since the last job."""
        self.error: OSError | None = None

    def seal(self, segment: LogSegment) -> None:
        """A closed segment: log, indexes and transaction index."""
        self.sync_files.append(segment.file)
        self.index_writes.extend(segment.pending_index_writes(closing=True))
        transactions = segment.transaction_file()
        if transactions is not None:
            self.sync_files.append(transactions)
        self.sealed.append(segment)

    def run(self) -> None:
        """Blocks. Thread-safe: touches only what it was given. OSError is kept in ``error``."""
        try:
            for file, position, data in self.index_writes:
                if data:
                    file.write(position, data)
                file.truncate(position + len(data))
                file.sync()
                file.close()
            for file in self.sync_files:
                file.sync()
            for path, content in self.file_writes:
                replace_file(self.fs, path, content)
            for path in self.removals:
                if self.fs.exists(path):
                    self.fs.remove(path)
            if self.sync_parent or self.index_writes or self.file_writes:
                self.fs.sync_dir(self.directory)
            if self.sync_parent:
                self.fs.sync_dir(self.directory.rpartition("/")[0])
        except OSError as problem:
            self.error = problem
