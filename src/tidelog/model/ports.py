"""What the core asks of the world: files, a lock, randomness. Nothing else.

The real forms live in ``server/disk.py`` and ``server/runtime.py``; the other forms in ``sim/``, where a disk forgets what
was not synced, tears writes, fails and fills. Every call may raise ``OSError``; storage turns it into ``StorageFailure``.
Paths are plain ``/``-separated strings, absolute or relative to where the node was started.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

Buffer = bytes | bytearray | memoryview


class File(Protocol):
    """An open file, read and written by position. Safe to use from a worker thread."""

    @property
    def path(self) -> str: ...

    def size(self) -> int: ...

    def read(self, position: int, length: int) -> bytes:
        """Up to ``length`` bytes from ``position``; shorter only at the end of the file."""
        ...

    def write(self, position: int, data: Buffer | Sequence[Buffer]) -> int:
        """All of ``data`` (a buffer, or several, one after another) at ``position``; bytes written. Never partial: it raises."""
        ...

    def truncate(self, length: int) -> None: ...

    def sync(self) -> None:
        """Data and length are on stable storage when this returns. After it raised once, nothing may be assumed synced."""
        ...

    def close(self) -> None: ...

    def fileno(self) -> int:
        """The descriptor for ``sendfile``; -1 for a file that has none (the simulator's)."""
        ...


@dataclass(slots=True)
class FileSlice:
    """Bytes of a file, not read yet: the outermost layer decides how they are sent (sendfile, cached pread, thread)."""

    file: File
    position: int
    length: int

    def read(self) -> bytes:
        """The bytes, for code that has to look inside; the hot path never calls this."""
        return self.file.read(self.position, self.length)


class FileStat(NamedTuple):
    """Size in bytes and last modification in ms since the epoch."""

    size: int
    modified_ms: int
    is_dir: bool


class Lock(Protocol):
    """An exclusive lock on a directory's ``.lock`` file, held until released or until the process ends."""

    def release(self) -> None: ...


class FileSystem(Protocol):
    """One machine's file system. All calls block; code on an event loop runs the slow ones in a thread."""

    def open(self, path: str, *, create: bool = False, write: bool = True) -> File:
        """FileNotFoundError unless it exists or ``create``."""
        ...

    def exists(self, path: str) -> bool: ...

    def stat(self, path: str) -> FileStat: ...

    def listdir(self, path: str) -> list[str]:
        """Names, sorted."""
        ...

    def make_dirs(self, path: str) -> None:
        """Creates the directory and its parents; no error when it exists."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Atomically; replaces ``target`` when it is a file."""
        ...

    def remove(self, path: str) -> None:
        """A file; FileNotFoundError when it is not there."""
        ...

    def remove_tree(self, path: str) -> None:
        """A directory and all below it; no error when it is not there."""
        ...

    def sync_dir(self, path: str) -> None:
        """Names created, renamed or removed in the directory are on stable storage when this returns."""
        ...

    def set_mode(self, path: str, mode: int) -> None:
        """Permission bits of a file. A file that may only be read can still be renamed and removed."""
        ...

    def lock(self, path: str) -> Lock:
        """POSIX record lock (fcntl), as the JVM takes it. BlockingIOError when another process holds it."""
        ...

    def boot_id(self) -> str:
        """What the running kernel is called: another name after each boot of the machine. Empty where that is not known."""
        ...

    def usage(self, path: str) -> tuple[int, int]:
        """(total, usable) bytes of the volume that holds ``path``."""
        ...


class Rng(Protocol):
    """Randomness for the core: ``random.SystemRandom`` in production, ``random.Random`` with a seed in tests."""

    def getrandbits(self, k: int, /) -> int: ...

    def random(self) -> float: ...

    def randrange(self, start: int, stop: int, /) -> int: ...
