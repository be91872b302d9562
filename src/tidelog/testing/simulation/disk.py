"""A disk in memory that behaves as badly as real ones: it forgets what was not synced, tears writes, fails and fills.

``SimDisk`` is ``model.ports.FileSystem`` over a ``tree.Tree``, which knows what a power loss would leave: data of a file is safe
after ``sync`` on it, names in a directory after ``sync_dir`` on that; nothing else is. ``crash(seed)`` gives the disk that the
next start finds.

``kill()`` gives what a killed process leaves: everything, for the kernel (``boot_id``) lives on. Faults are given ahead
(``fail``), and ``on_operation`` is called before each change, so that a test can look at, or crash, every moment. The same seed
and calls give the same disk. Single-threaded.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Sequence

from tidelog.model.ports import Buffer, FileStat
from tidelog.testing.simulation.disk_faults import UNLIMITED, DiskFaults
from tidelog.testing.simulation.tree import DirNode, FileNode, Tree, last_name, parts

CHANGES = ("create", "write", "truncate", "sync", "rename", "remove", "mkdir", "sync_dir")
"""Kinds of operations that change what is or will be on the disk; reads (``open``, ``read``, ``listdir``, ``stat``, ``lock``)
count only for faults."""


class PowerLoss(BaseException):
    """The machine is off: the code that used this disk stops here. Not an Exception, so that no handler catches it."""


class SimFile:
    """An open file. It follows its inode, not its name."""

    def __init__(self, disk: SimDisk, node: FileNode) -> None:
        self._disk = disk
        self._node = node
        self._open = True
        node.handles += 1

    @property
    def path(self) -> str:
        return self._node.path

    def size(self) -> int:
        return len(self._node.data)

    def read(self, position: int, length: int) -> bytes:
        self._disk.before_use("read", self._node)
        with memoryview(self._node.data) as data:
            return bytes(data[position : position + length])

    def write(self, position: int, data: Buffer | Sequence[Buffer]) -> int:
        """On a full disk it writes what fits, then raises."""
        whole = bytes(data) if isinstance(data, (bytes, bytearray, memoryview)) else b"".join(data)
        self._disk.before_use("write", self._node)
        if whole and self._disk.has_room:
            self._node.write(position, whole, self._disk.now_ms)
            return len(whole)
        room = self._disk.room_at(self.path)
        growth = max(position + len(whole) - self.size(), 0)
        fits = whole if growth <= room else whole[: max(len(whole) - (growth - room), 0)]
        if fits:
            self._node.write(position, fits, self._disk.now_ms)
            self._disk.use_room(self.path, min(growth, room))
        if len(fits) < len(whole):
            raise OSError(errno.ENOSPC, "no space left on device", self.path)
        return len(whole)

    def truncate(self, length: int) -> None:
        self._disk.before_use("truncate", self._node)
        self._node.truncate(length, self._disk.now_ms)

    def sync(self) -> None:
        try:
            self._disk.before_use("sync", self._node)
        except OSError:
            # The kernel reports lost writes once, then treats the pages as clean.
            self._node.forget_changes()
            raise
        self._node.sync()

    def close(self) -> None:
        if self._open:
            self._open = False
            self._node.handles -= 1

    def fileno(self) -> int:
        return -1


class SimLock:
    def __init__(self, disk: SimDisk, path: str) -> None:
        self._disk = disk
        self._path = path

    def release(self) -> None:
        self._disk.locked.discard(self._path)


class SimDisk:
    """A simulated disk. ``capacity`` is the number of bytes of file contents that fit."""

    def __init__(self, seed: int = 0, *, capacity: int = UNLIMITED, network: bool = False) -> None:
        """``network``: removing an open file leaves a ``.nfs*`` name, as NFS clients do."""
        self.rng = random.Random(seed)
        self.capacity = capacity
        self.network = network
        self.now_ms = 0  # the source of modification times
        self.operations = 0
        """The number of changes so far."""
        self.on_operation: Callable[[int, str, str], None] | None = None
        """Called before each change with its number, kind and path; the change counts as in progress."""
        self.boots = 1
        self.locked: set[str] = set()
        self.off = False
        self._faults = DiskFaults()
        self._tree = Tree()
        self._leftovers = 0

    # --- faults --------------------------------------------------------------------------------------------------------

    def fail(self, kind: str, nth: int, code: int, *, path_part: str = "", times: int = 1) -> None:
        """The ``nth`` operation (from 1) of a kind, on a path that contains ``path_part``, raises OSError ``code``; so do
        the ``times - 1`` after it."""
        self._faults.fail(kind, nth, code, path_part=path_part, times=times)

    def fill(self, path_part: str, room: int) -> None:
        """From now on files below paths with ``path_part`` may grow by ``room`` bytes in total, and no file can be created
        once that is used up: ENOSPC, until ``heal``."""
        self._faults.fill(path_part, room)

    @property
    def is_full(self) -> bool:
        """Whether ``fill`` is in force."""
        return self._faults.is_full

    def heal(self) -> None:
        """Ends all faults and restores the room."""
        self._faults.heal()

    def flip(self, path: str, position: int, bit: int) -> None:
        """Flips one bit of a file, on the disk and in the page cache."""
        node = self._tree.find(path)
        if not isinstance(node, FileNode):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        node.flip(position, bit)

    def before(self, kind: str, path: str) -> None:
        """Counts an operation, reports it, and fails it if a fault asks for that."""
        if self.off:
            raise PowerLoss
        if kind in CHANGES:
            self.operations += 1
            if self.on_operation is not None:
                self.on_operation(self.operations, kind, path)
        self._faults.check(kind, path)

    def before_use(self, kind: str, node: FileNode) -> None:
        """As ``before``, for an open file: its path is made only where something looks at it."""
        if self._faults.planned or self.off or (self.on_operation is not None and kind in CHANGES):
            self.before(kind, node.path)
        elif kind in CHANGES:
            self.operations += 1

    @property
    def has_room(self) -> bool:
        """Whether every file may grow without limit."""
        return self.capacity >= UNLIMITED and not self._faults.planned

    def room_at(self, path: str) -> int:
        """Bytes by which a file may grow."""
        # Contents are counted only on a disk with a capacity, because counting looks at every file.
        left = self.usage("/")[1] if self.capacity < UNLIMITED else UNLIMITED
        return min(left, self._faults.room_at(path))

    def use_room(self, path: str, size: int) -> None:
        """Count ``size`` bytes by which a file grew."""
        self._faults.use_room(path, size)

    # --- the FileSystem port -------------------------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False, write: bool = True) -> SimFile:
        node = self._tree.find(path)
        if node is None and create:
            parent = self._tree.parent(path)
            self.before("create", path)
            made = FileNode(modified_ms=self.now_ms)
            parent.change(self.now_ms, (last_name(path), made))
            return SimFile(self, made)
        self.before("open", path)
        return SimFile(self, self._tree.file(path))

    def exists(self, path: str) -> bool:
        return self._tree.find(path) is not None

    def stat(self, path: str) -> FileStat:
        self.before("stat", path)
        node = self._tree.find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return FileStat(len(node.data) if isinstance(node, FileNode) else 0, node.modified_ms, isinstance(node, DirNode))

    def listdir(self, path: str) -> list[str]:
        self.before("listdir", path)
        return sorted(self._tree.directory(path).entries)

    def make_dirs(self, path: str) -> None:
        node = self._tree.root
        for part in parts(path):
            below = node.entries.get(part)
            if below is None:
                self.before("mkdir", path)
                below = DirNode(modified_ms=self.now_ms)
                node.change(self.now_ms, (part, below))
            if isinstance(below, FileNode):
                raise FileExistsError(errno.EEXIST, "is a file", path)
            node = below

    def rename(self, source: str, target: str) -> None:
        parent = self._tree.parent(source)
        if parent is not self._tree.parent(target):
            raise OSError(errno.EXDEV, "renames within a directory only", target)
        node, there = parent.entries.get(last_name(source)), parent.entries.get(last_name(target))
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        if isinstance(there, DirNode):
            raise IsADirectoryError(errno.EISDIR, "is a directory", target)
        self.before("rename", source)
        parent.change(self.now_ms, (last_name(source), None), (last_name(target), node))

    def remove(self, path: str) -> None:
        node = self._tree.file(path)
        self.before("remove", path)
        parent = self._tree.parent(path)
        if self.network and node.handles > 0 and not node.name.startswith(".nfs"):
            self._leftovers += 1
            parent.change(self.now_ms, (node.name, None), (f".nfs{self._leftovers:08d}", node))
        else:
            parent.change(self.now_ms, (last_name(path), None))

    def remove_tree(self, path: str) -> None:
        node = self._tree.find(path)
        if node is None:
            return
        if isinstance(node, FileNode):
            raise NotADirectoryError(errno.ENOTDIR, "is a file", path)
        for name in sorted(node.entries):
            if isinstance(node.entries[name], DirNode):
                self.remove_tree(f"{path}/{name}")
            elif not name.startswith(".nfs"):
                self.remove(f"{path}/{name}")
        if not node.entries:
            self.before("remove", path)
            self._tree.parent(path).change(self.now_ms, (last_name(path), None))

    def sync_dir(self, path: str) -> None:
        node = self._tree.directory(path)
        self.before("sync_dir", path)
        node.sync()

    def set_mode(self, path: str, mode: int) -> None:
        self.stat(path)

    def lock(self, path: str) -> SimLock:
        self.before("lock", path)
        if path in self.locked:
            raise BlockingIOError(errno.EAGAIN, "locked", path)
        self.open(path, create=True).close()
        self.locked.add(path)
        return SimLock(self, path)

    def usage(self, path: str) -> tuple[int, int]:
        return self.capacity, max(self.capacity - self._tree.size(), 0)

    def boot_id(self) -> str:
        return f"boot-{self.boots}"

    # --- what a stop leaves --------------------------------------------------------------------------------------------

    def crash(self, seed: int) -> SimDisk:
        """The disk after a power loss now; this one stays as it is (set ``off`` to stop its users)."""
        after = self._successor(seed, self._tree.after_power_loss(random.Random(seed)))
        after.boots += 1
        return after

    def kill(self) -> SimDisk:
        """The disk after the process was killed: all contents, no locks; unsynced data is still not durable."""
        return self._successor(0, self._tree.copy())

    def _successor(self, seed: int, tree: Tree) -> SimDisk:
        after = SimDisk(seed, capacity=self.capacity, network=self.network)
        after.now_ms, after.boots = self.now_ms, self.boots
        after._faults = self._faults.after_stop()
        after._tree = tree
        return after
