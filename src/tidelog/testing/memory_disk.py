"""A file system in memory, for brokers that live as long as a test.

Nothing is lost or torn here; use the simulator's disk for that. Files are byte arrays that outlive their names, as descriptors
do. Safe to use from the broker's threads: each operation is one step under one lock.
"""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Sequence

from tidelog.model.ports import Buffer, FileStat

CAPACITY = 1 << 40


def _gone(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "No such file or directory", path)


class _Content:
    __slots__ = ("data", "modified_ms")

    def __init__(self) -> None:
        self.data = bytearray()
        self.modified_ms = 0


class MemoryFile:
    """An open file. See ``model.ports.File``."""

    __slots__ = ("_content", "_disk", "_path")

    def __init__(self, disk: MemoryDisk, path: str, content: _Content) -> None:
        self._disk = disk
        self._path = path
        self._content = content

    @property
    def path(self) -> str:
        return self._path

    def size(self) -> int:
        return len(self._content.data)

    def read(self, position: int, length: int) -> bytes:
        with self._disk.guard:
            return bytes(self._content.data[position : position + length])

    def write(self, position: int, data: Buffer | Sequence[Buffer]) -> int:
        raw = data if isinstance(data, bytes | bytearray | memoryview) else b"".join(data)
        with self._disk.guard:
            self._disk.take(len(raw))
            content = self._content.data
            if position > len(content):
                content.extend(bytes(position - len(content)))
            content[position : position + len(raw)] = raw
            self._content.modified_ms = time.time_ns() // 1_000_000
        return len(raw)

    def truncate(self, length: int) -> None:
        with self._disk.guard:
            content = self._content.data
            if length < len(content):
                del content[length:]
            else:
                content.extend(bytes(length - len(content)))

    def sync(self) -> None:
        """Memory needs no sync."""

    def close(self) -> None:
        """There is nothing to release."""

    def fileno(self) -> int:
        return -1


class _Lock:
    def __init__(self, disk: MemoryDisk, path: str) -> None:
        self._disk = disk
        self._path = path

    def release(self) -> None:
        self._disk.locked.pop(self._path, None)


class MemoryDisk:
    """See ``model.ports.FileSystem``. ``full`` makes every write fail with ENOSPC until it is reset."""

    def __init__(self) -> None:
        self.guard = threading.RLock()
        self.full = False
        self.locked: dict[str, None] = {}
        self._files: dict[str, _Content] = {}
        self._dirs: dict[str, None] = {}

    def take(self, size: int) -> None:
        """Takes room for a write, or raises ENOSPC."""
        if self.full and size:
            raise OSError(errno.ENOSPC, "No space left on device")

    def open(self, path: str, *, create: bool = False, write: bool = True) -> MemoryFile:
        with self.guard:
            content = self._files.get(path)
            if content is None:
                if not create:
                    raise _gone(path)
                if path.rpartition("/")[0] not in self._dirs:
                    raise _gone(path)
                content = self._files[path] = _Content()
            return MemoryFile(self, path, content)

    def exists(self, path: str) -> bool:
        return path in self._files or path in self._dirs

    def stat(self, path: str) -> FileStat:
        with self.guard:
            if path in self._dirs:
                return FileStat(0, 0, True)
            if path not in self._files:
                raise _gone(path)
            content = self._files[path]
            return FileStat(len(content.data), content.modified_ms, False)

    def listdir(self, path: str) -> list[str]:
        with self.guard:
            if path not in self._dirs:
                raise _gone(path)
            below = path + "/"
            names = {name[len(below) :].split("/", 1)[0]: None for name in (*self._files, *self._dirs) if name.startswith(below)}
            return sorted(names)

    def make_dirs(self, path: str) -> None:
        with self.guard:
            parts = path.split("/")
            for count in range(1, len(parts) + 1):
                self._dirs["/".join(parts[:count])] = None

    def rename(self, source: str, target: str) -> None:
        with self.guard:
            if source in self._files:
                self._files[target] = self._files.pop(source)
            elif source in self._dirs:
                for names in (self._files, self._dirs):
                    for name in [name for name in names if name == source or name.startswith(source + "/")]:
                        names[target + name[len(source) :]] = names.pop(name)  # type: ignore[assignment]
            else:
                raise _gone(source)

    def remove(self, path: str) -> None:
        with self.guard:
            if self._files.pop(path, None) is None:
                raise _gone(path)

    def remove_tree(self, path: str) -> None:
        with self.guard:
            self._files = {name: content for name, content in self._files.items() if not name.startswith(path + "/")}
            self._dirs = {name: None for name in self._dirs if name != path and not name.startswith(path + "/")}

    def sync_dir(self, path: str) -> None:
        """Names need no sync."""

    def lock(self, path: str) -> _Lock:
        with self.guard:
            if path in self.locked:
                raise BlockingIOError(errno.EAGAIN, "locked by another node", path)
            self.locked[path] = None
            return _Lock(self, path)

    def boot_id(self) -> str:
        """Data in memory is never torn, so no recovery depends on it."""
        return ""

    def usage(self, path: str) -> tuple[int, int]:
        return CAPACITY, 0 if self.full else CAPACITY // 2

    def set_mode(self, path: str, mode: int) -> None:
        """Permissions are not enforced."""
        if path not in self._files:
            raise _gone(path)
