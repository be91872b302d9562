"""Blocking jobs of the log manager: load a partition, write checkpoints, remove files.

Jobs are created on the event loop from the state at that time, ``run`` in any thread, and returned to the manager, which handles
the result or the disk failure.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.model.errors import StorageFailure
from tidelog.model.ports import FileSystem, Rng
from tidelog.storage.flushed_marks import read_cut
from tidelog.storage.log_dir import LogDir
from tidelog.storage.recovery import LoadRequest, load_log
from tidelog.storage.unified_log import UnifiedLog

CUTS_AT_ONCE = 50
"""Files of cuts that are removed after one checkpoint, on the event loop."""


class LoadJob:
    """Loading one partition's directory. ``run`` in any thread; then ``LogManager.loaded``."""

    __slots__ = ("failure", "fs", "log", "log_dir", "request", "rng")

    def __init__(self, fs: FileSystem, log_dir: LogDir, request: LoadRequest, rng: Rng) -> None:
        self.fs = fs
        self.log_dir = log_dir
        self.request = request
        self.rng = rng
        self.log: UnifiedLog | None = None
        self.failure: StorageFailure | None = None

    def run(self, now_ms: int) -> None:
        """Blocks. A failing disk is kept in ``failure``."""
        if self.log_dir.failure is not None:
            return
        directory = self.request.directory
        try:
            self.request = self.request._replace(cut=read_cut(self.fs, directory))
            self.log = load_log(self.fs, self.request, now_ms, self.rng)
        except StorageFailure as failure:
            self.failure = failure
        except OSError as problem:
            self.failure = StorageFailure(self.log_dir.path, f"{directory} cannot be loaded: {problem}")


class RecoveredJob:
    """Notes in a dir, once its logs are loaded and before the first append, which kernel takes its writes."""

    __slots__ = ("error", "log_dir")

    def __init__(self, log_dir: LogDir) -> None:
        self.log_dir = log_dir
        self.error: OSError | None = None

    def run(self) -> None:
        """Blocks. A failing disk is kept in ``error``."""
        try:
            self.log_dir.note_recovered()
        except OSError as problem:
            self.error = problem


class CheckpointJob:
    """The three offset checkpoints of one dir, as they stood when the job was made."""

    __slots__ = ("contents", "error", "log_dir")

    def __init__(self, log_dir: LogDir) -> None:
        self.log_dir = log_dir
        self.contents = log_dir.checkpoint_contents()
        self.error: OSError | None = None

    def run(self) -> None:
        """Blocks. A failing disk is kept in ``error``."""
        try:
            self.log_dir.write_in_background(self.contents)
        except OSError as problem:
            self.error = problem

    def settle(self) -> OSError | None:
        """Removes cuts that the checkpoint makes useless, some at a time; on the loop, after ``run``. The error of either."""
        self.log_dir.checkpoint_under_way = False
        if self.error is None and self.log_dir.online:
            try:
                self.log_dir.remove_old_cuts(self.contents.number, CUTS_AT_ONCE)
            except OSError as problem:
                self.error = problem
        return self.error


class RemovalJob:
    """Removes files or a directory that no reader uses any more."""

    __slots__ = ("_remove", "due_ms", "error", "log_dir", "what")

    def __init__(self, log_dir: LogDir, due_ms: int, what: str, remove: Callable[[], None]) -> None:
        self.log_dir = log_dir
        self.due_ms = due_ms
        self.what = what
        self._remove = remove
        self.error: OSError | None = None

    def run(self) -> None:
        """Blocks. A failing disk is kept in ``error``; missing files are no failure."""
        if self.log_dir.failure is not None:
            return
        try:
            self._remove()
        except FileNotFoundError:
            return
        except OSError as problem:
            self.error = problem


class Removals:
    """Files and directories to be removed later, once no reader uses them any more."""

    __slots__ = ("_jobs",)

    def __init__(self) -> None:
        self._jobs: list[RemovalJob] = []

    def add(self, log_dir: LogDir, due_ms: int, what: str, remove: Callable[[], None]) -> None:
        """``remove`` may run in any thread from ``due_ms`` on; ``what``: for messages."""
        self._jobs.append(RemovalJob(log_dir, due_ms, what, remove))

    def due(self, now_ms: int) -> list[RemovalJob]:
        """Jobs that are due; they leave the list."""
        due = [job for job in self._jobs if job.due_ms <= now_ms]
        self._jobs = [job for job in self._jobs if job.due_ms > now_ms]
        return due


def tree_remover(fs: FileSystem, path: str) -> Callable[[], None]:
    """Removes a directory and everything below it."""

    def remove() -> None:
        fs.remove_tree(path)

    return remove
