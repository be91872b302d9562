"""The real disk: ``model.ports.FileSystem`` over POSIX calls.

A node with many partitions needs few descriptors. A ``DiskFile`` knows its path; its descriptor is opened on first use and
belongs to a bounded pool, which takes back those not used recently (second chance). A descriptor is an object that closes itself
with its last reference: a caller that holds one, in any thread, keeps it valid until its call is over, and its number cannot
refer to another file meanwhile.

When descriptors run out anyway, because clients hold them, log files release theirs first: an open that finds none left must not
look like a failing disk.

Renames go through the file system, so open files follow their names, even when a whole directory moves. A sync that failed once
always fails on that file, because kernels report a lost write only once. Python repeats interrupted calls (PEP 475); partial
writes are continued here. On network file systems names like ``.nfs0001`` stand for removed files that are still open: they are
not listed, and a directory that contains them may stay.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import weakref
from collections import deque
from collections.abc import Sequence

from tidelog.model.ports import Buffer, FileStat
from tidelog.server import posix
from tidelog.server.posix import OPEN_FLAGS, fcntl, read_at, resource, write_at
from tidelog.server.sync_times import SyncTimes

_MOST_BUFFERS = 1024
"""IOV_MAX of Linux and macOS."""
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None) if fcntl is not None else None
_HAS_PWRITEV = hasattr(os, "pwritev")
_NFS_LEFTOVER = ".nfs"
_SHARE_OF_DESCRIPTORS = 0.5
_FEWEST_DESCRIPTORS = 64
_MOST_DESCRIPTORS = 1 << 20
_NONE_LEFT = {errno.EMFILE, errno.ENFILE}


class Descriptor:
    """An open descriptor, closed when its last reference is dropped."""

    __slots__ = ("__weakref__", "fd", "in_memory", "owner", "used")

    def __init__(self, fd: int, owner: DiskFile) -> None:
        self.fd = fd
        self.owner: weakref.ref[DiskFile] = weakref.ref(owner)
        self.used = True
        self.in_memory: bool | None = None
        """As ``page_cache.Opened`` says."""

    def __del__(self) -> None:
        os.close(self.fd)


class DescriptorPool:
    """Keeps at most ``limit`` unused descriptors open."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.sync_times = SyncTimes()
        """Of log segments."""
        self.names = threading.Lock()
        """Held during a rename."""
        self._lock = threading.Lock()
        self._clock: deque[weakref.ref[Descriptor]] = deque()

    def add(self, descriptor: Descriptor) -> None:
        """Adds an open descriptor; one not used recently may be released."""
        with self._lock:
            self._clock.append(weakref.ref(descriptor))
            chances = 2 * len(self._clock)
            while len(self._clock) > self.limit and chances > 0:
                chances -= 1
                reference = self._clock.popleft()
                oldest = reference()
                if oldest is None:
                    continue
                if oldest.used or oldest is descriptor:
                    oldest.used = False
                    self._clock.append(reference)
                    continue
                owner = oldest.owner()
                if owner is not None:
                    owner.release(oldest)

    def shed(self) -> bool:
        """Closes all descriptors not in use now; False when there was none."""
        with self._lock:
            alive = [descriptor for reference in self._clock if (descriptor := reference()) is not None]
            self._clock.clear()
        for descriptor in alive:
            owner = descriptor.owner()
            if owner is not None:
                owner.release(descriptor)
        return bool(alive)

    def open(self, path: str, flags: int) -> int:
        """``os.open``, but closes unused descriptors and retries when the process or the machine has none left."""
        try:
            return os.open(path, flags, 0o644)
        except OSError as problem:
            if problem.errno not in _NONE_LEFT or not self.shed():
                raise
        return os.open(path, flags, 0o644)

    def open_count(self) -> int:
        """Number of open descriptors."""
        with self._lock:
            return sum(1 for reference in self._clock if reference() is not None)


class DiskFile:
    """A file by position, whose descriptor is opened on demand. See ``model.ports.File``."""

    __slots__ = ("__weakref__", "_descriptor", "_flags", "_pool", "_sync_failure", "path")

    def __init__(self, path: str, flags: int, pool: DescriptorPool) -> None:
        self.path = path
        self._flags = flags
        self._pool = pool
        self._descriptor: Descriptor | None = None
        self._sync_failure: OSError | None = None

    def descriptor(self, extra_flags: int = 0) -> Descriptor:
        """An open descriptor, valid as long as the caller holds the object, as several ``sendfile`` steps need."""
        descriptor = self._descriptor
        if descriptor is None:
            descriptor = Descriptor(self._open(self._flags | extra_flags), self)
            self._descriptor = descriptor
            self._pool.add(descriptor)
        else:
            descriptor.used = True
        return descriptor

    def _open(self, flags: int) -> int:
        try:
            return self._pool.open(self.path, flags)
        except FileNotFoundError:
            # Another thread may have renamed it on disk without having changed the path here yet.
            with self._pool.names:
                return self._pool.open(self.path, flags)

    def release(self, descriptor: Descriptor) -> None:
        """Called by the pool to drop the descriptor."""
        if self._descriptor is descriptor:
            self._descriptor = None

    def size(self) -> int:
        descriptor = self.descriptor()
        return os.fstat(descriptor.fd).st_size

    def read(self, position: int, length: int) -> bytes:
        """Up to ``length`` bytes; shorter only at the end of the file."""
        descriptor = self.descriptor()
        data = read_at(descriptor.fd, length, position)
        if len(data) == length or not data:
            return data
        parts = [data]
        got = len(data)
        while got < length:
            data = read_at(descriptor.fd, length - got, position + got)
            if not data:
                break
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def write(self, position: int, data: Buffer | Sequence[Buffer]) -> int:
        """Writes everything, or raises OSError; then an unknown part was written."""
        descriptor = self._descriptor  # as descriptor(), one call less for each batch
        if descriptor is None:
            descriptor = self.descriptor()
        else:
            descriptor.used = True
        if isinstance(data, (bytes, bytearray, memoryview)):
            length = len(data)
            written = write_at(descriptor.fd, data, position)
            if written != length:
                self._write_rest(descriptor.fd, memoryview(data), position, written)
            return length
        return self._write_all(descriptor.fd, position, data)

    def _write_all(self, fd: int, position: int, buffers: Sequence[Buffer]) -> int:
        total = 0
        for start in range(0, len(buffers), _MOST_BUFFERS):
            some = buffers[start : start + _MOST_BUFFERS]
            length = sum(len(buffer) for buffer in some)
            written = os.pwritev(fd, some, position + total) if _HAS_PWRITEV else 0
            if written != length:
                self._write_rest(fd, memoryview(b"".join(some)), position + total, written)
            total += length
        return total

    @staticmethod
    def _write_rest(fd: int, data: memoryview, position: int, written: int) -> None:
        while written < len(data):
            step = write_at(fd, data[written:], position + written)
            if step == 0:
                raise OSError(errno.EIO, "a write of some bytes wrote none")
            written += step

    def truncate(self, length: int) -> None:
        descriptor = self.descriptor()
        os.ftruncate(descriptor.fd, length)

    def sync(self) -> None:
        """Syncs data and length. After a failure it always raises the same error."""
        if self._sync_failure is not None:
            raise self._sync_failure
        descriptor = self.descriptor()
        times = self._pool.sync_times
        began_ns = times.began()
        try:
            _sync(descriptor.fd, data_only=True)
        except OSError as failure:
            self._sync_failure = failure
            raise
        if self.path.endswith(".log"):
            times.ended(began_ns)

    def close(self) -> None:
        """Drops the descriptor; the next use opens the file again."""
        self._descriptor = None

    def fileno(self) -> int:
        """Valid for an immediate call on the loop; hold ``descriptor()`` for longer."""
        return self.descriptor().fd


def _sync(fd: int, *, data_only: bool) -> None:
    if _FULL_SYNC is not None:
        fcntl.fcntl(fd, _FULL_SYNC)
    elif data_only and hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


class DiskLock:
    """A POSIX record lock on a file. Closing *any* descriptor of that file would release it, so no other code may open the
    file."""

    def __init__(self, fd: int, real_path: str) -> None:
        self._fd = fd
        self._real_path = real_path

    def release(self) -> None:
        """Idempotent."""
        with _locks_guard:
            if self._real_path in _locks_of_this_process:
                _locks_of_this_process.discard(self._real_path)
                os.close(self._fd)


_locks_of_this_process: set[str] = set()
"""Needed because the kernel lets one process lock a file twice."""
_locks_guard = threading.Lock()


def descriptors_allowed() -> int:
    """How many descriptors the process may have open now."""
    if resource is None:
        return _MOST_DESCRIPTORS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def claim_descriptors() -> int:
    """Raises the limit of descriptors as far as the system allows, as the JVM does: a few hundred clients use up the usual
    1,024."""
    if resource is None:
        return posix.DESCRIPTORS_ANYWHERE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            # macOS grants less than it reports; continue with the current limit.
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return descriptors_allowed()


class DiskFileSystem:
    """The machine's files. See ``model.ports.FileSystem``; thread-safe."""

    def __init__(self, descriptor_limit: int | None = None) -> None:
        """``descriptor_limit``: most log files kept open; by default half of what the process may open."""
        if descriptor_limit is None:
            descriptor_limit = max(int(claim_descriptors() * _SHARE_OF_DESCRIPTORS), _FEWEST_DESCRIPTORS)
        self.pool = DescriptorPool(descriptor_limit)
        self._guard = self.pool.names
        self._files: dict[str, weakref.WeakSet[DiskFile]] = {}
        self._opened_since_sweep = 0

    def open(self, path: str, *, create: bool = False, write: bool = True) -> DiskFile:
        file = DiskFile(path, (os.O_RDWR if write else os.O_RDONLY) | OPEN_FLAGS, self.pool)
        if create:
            file.descriptor(os.O_CREAT)
        else:
            file.descriptor()
        with self._guard:
            same = self._files.get(path)
            if same is None:
                same = self._files[path] = weakref.WeakSet()
            same.add(file)
            self._opened_since_sweep += 1
            if self._opened_since_sweep > 1000 + len(self._files):
                self._files = {name: files for name, files in self._files.items() if len(files)}
                self._opened_since_sweep = 0
        return file

    def exists(self, path: str) -> bool:
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def stat(self, path: str) -> FileStat:
        found = os.stat(path)
        return FileStat(found.st_size, found.st_mtime_ns // 1_000_000, (found.st_mode & 0o170000) == 0o040000)

    def listdir(self, path: str) -> list[str]:
        """Sorted names, without the ``.nfs`` files of network file systems."""
        names = os.listdir(path)
        names.sort()
        if any(name.startswith(_NFS_LEFTOVER) for name in names):
            return [name for name in names if not name.startswith(_NFS_LEFTOVER)]
        return names

    def make_dirs(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        with self._guard:
            if not posix.OPEN_FILES_MOVE:
                self._close_below(source)
                self._close_below(target)
            (os.rename if posix.OPEN_FILES_MOVE else os.replace)(source, target)
            moved = [source] if source in self._files else []
            if os.path.isdir(target):
                below = source + "/"
                moved = [path for path in self._files if path.startswith(below)]
            for path in moved:
                new_path = target + path[len(source) :]
                files = self._files.pop(path)
                for file in files:
                    file.path = new_path
                self._files[new_path] = files

    def _close_below(self, path: str) -> None:
        """Closes the descriptors of a file, or of all files below a directory; the next use opens them again."""
        for name, files in self._files.items():
            if name == path or name.startswith(path + "/"):
                for file in files:
                    file.close()

    def remove(self, path: str) -> None:
        if not posix.OPEN_FILES_MOVE:
            with self._guard:
                self._close_below(path)
        os.remove(path)

    def remove_tree(self, path: str) -> None:
        """Removes a directory and everything below it. It may stay, without an error, when only ``.nfs`` files are left."""
        if not os.path.lexists(path):
            return
        import shutil  # imported late: it loads every codec of Python's archives

        if not posix.OPEN_FILES_MOVE:
            with self._guard:
                self._close_below(path)
        try:
            shutil.rmtree(path)
        except OSError as problem:
            if problem.errno not in {errno.ENOTEMPTY, errno.EBUSY, errno.EEXIST} or not _only_nfs_leftovers(path):
                raise

    def sync_dir(self, path: str) -> None:
        fd = posix.sync_directory(self.pool.open, path)
        if fd is None:
            return
        try:
            _sync(fd, data_only=False)
        except OSError as problem:
            # Some file systems cannot sync directories; there a name is durable when the call that made it returned.
            if problem.errno not in {errno.EINVAL, errno.ENOTSUP}:
                raise
        finally:
            os.close(fd)

    def set_mode(self, path: str, mode: int) -> None:
        os.chmod(path, mode)

    def lock(self, path: str) -> DiskLock:
        """BlockingIOError when this or another process holds the lock."""
        with _locks_guard:
            real_path = os.path.realpath(path)
            if real_path in _locks_of_this_process:
                raise BlockingIOError(errno.EAGAIN, "locked by this process", path)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | OPEN_FLAGS, 0o644)
            try:
                posix.lock_whole(fd)
            except OSError as problem:
                os.close(fd)
                if posix.taken(problem):
                    raise BlockingIOError(errno.EAGAIN, "locked by another process", path) from problem
                raise
            _locks_of_this_process.add(real_path)
        return DiskLock(fd, real_path)

    def boot_id(self) -> str:
        return posix.boot_id()

    def usage(self, path: str) -> tuple[int, int]:
        return posix.space(path)


def _only_nfs_leftovers(path: str) -> bool:
    return all(name.startswith(_NFS_LEFTOVER) for _, _, files in os.walk(path) for name in files)
