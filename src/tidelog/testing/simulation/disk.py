"""A disk in memory that behaves as badly as real ones: it forgets what was not synced, tears writes, fails and fills.

``SimDisk`` is ``model.ports.FileSystem``. What it knows beside the contents is what a power loss would leave: data of a file is
safe after ``sync`` on it, names in a directory after ``sync_dir`` on that; nothing else is. ``crash(seed)`` gives the disk that
the next start finds:

- of the changes to a directory since its last sync, some first ones survive (file systems journal them in order);
- of the writes to a file since its last sync, each survives whole, in some of its 512-byte sectors, or not at all, in no order;
  a file grown by a write that got lost has zeroes there.

``kill()`` gives what a killed process leaves: everything, for the kernel (``boot_id``) lives on. Faults are given ahead
(``fail``), and ``on_operation`` is called before each change, so that a test can look at, or crash, every moment. The same seed
and calls give the same disk. Single-threaded.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tidelog.model.ports import Buffer, FileStat

SECTOR = 512
UNLIMITED = 1 << 40
CHANGES = ("create", "write", "truncate", "sync", "rename", "remove", "mkdir", "sync_dir")
"""Kinds of operations that change what is or will be on the disk; reads (``open``, ``read``, ``listdir``, ``stat``, ``lock``)
count only for faults."""


class PowerLoss(BaseException):
    """The machine is off: the code that used this disk stops here. Not an Exception, so that no handler catches it."""


@dataclass(slots=True)
class _File:
    """The current contents, the durable contents, and the changes since: (position, data), or (length, None) for a truncation."""

    data: bytearray = field(default_factory=bytearray)
    safe: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    modified_ms: int = 0
    parent: _Dir | None = None
    name: str = ""
    handles: int = 0


@dataclass(slots=True)
class _Dir:
    """The current names, the durable names, and the changes since: (name, node), with node None for a removal; a rename is two
    changes that survive or get lost together."""

    entries: dict[str, _File | _Dir] = field(default_factory=dict)
    safe: dict[str, _File | _Dir] = field(default_factory=dict)
    pending: list[tuple[tuple[str, _File | _Dir | None], ...]] = field(default_factory=list)
    modified_ms: int = 0
    parent: _Dir | None = None
    name: str = ""


_Node = _File | _Dir


@dataclass(slots=True)
class _Fault:
    kind: str
    countdown: int
    code: int
    path_part: str
    times: int


class SimFile:
    """An open file. It follows its inode, not its name."""

    def __init__(self, disk: SimDisk, node: _File) -> None:
        self._disk = disk
        self._node = node
        self._open = True
        node.handles += 1

    @property
    def path(self) -> str:
        return _path_of(self._node)

    def size(self) -> int:
        return len(self._node.data)

    def read(self, position: int, length: int) -> bytes:
        self._disk.before("read", self.path)
        return bytes(self._node.data[position : position + length])

    def write(self, position: int, data: Buffer | Sequence[Buffer]) -> int:
        whole = bytes(data) if isinstance(data, (bytes, bytearray, memoryview)) else b"".join(data)
        return self._disk.write(self._node, position, whole)

    def truncate(self, length: int) -> None:
        self._disk.cut(self._node, length)

    def sync(self) -> None:
        self._disk.sync_file(self._node)

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
        self._faults: list[_Fault] = []
        self._room: dict[str, int] = {}
        self._root = _Dir()
        self._leftovers = 0

    # --- faults --------------------------------------------------------------------------------------------------------

    def fail(self, kind: str, nth: int, code: int, *, path_part: str = "", times: int = 1) -> None:
        """The ``nth`` operation (from 1) of a kind, on a path that contains ``path_part``, raises OSError ``code``; so do
        the ``times - 1`` after it."""
        self._faults.append(_Fault(kind, nth, code, path_part, times))

    def fill(self, path_part: str, room: int) -> None:
        """From now on files below paths with ``path_part`` may grow by ``room`` bytes in total, and no file can be created
        once that is used up: ENOSPC, until ``heal``."""
        self._room[path_part] = room

    @property
    def is_full(self) -> bool:
        """Whether ``fill`` is in force."""
        return bool(self._room)

    def flip(self, path: str, position: int, bit: int) -> None:
        """Flips one bit of a file, on the disk and in the page cache."""
        node = self._find(path)
        if not isinstance(node, _File):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        for content in (node.data, node.safe):
            if position < len(content):
                content[position] ^= 1 << bit

    def heal(self) -> None:
        """Ends all faults and restores the room."""
        self._faults.clear()
        self._room.clear()

    def before(self, kind: str, path: str) -> None:
        """Counts an operation, reports it, and fails it if a fault asks for that."""
        if self.off:
            raise PowerLoss
        if kind in CHANGES:
            self.operations += 1
            if self.on_operation is not None:
                self.on_operation(self.operations, kind, path)
        for fault in self._faults:
            if fault.kind == kind and fault.path_part in path:
                fault.countdown -= 1
                if fault.countdown <= 0 and fault.times > 0:
                    fault.times -= 1
                    raise OSError(fault.code, os.strerror(fault.code), path)
        if kind in {"create", "mkdir"} and self._room_at(path) <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def _room_at(self, path: str) -> int:
        return min((room for part, room in self._room.items() if part in path), default=UNLIMITED)

    # --- files ---------------------------------------------------------------------------------------------------------

    def write(self, node: _File, position: int, data: bytes) -> int:
        """On a full disk it writes what fits, then raises."""
        self.before("write", _path_of(node))
        # Room is counted only on a disk that was filled, because counting looks at every file.
        room = self.usage("/")[1] if self.capacity < UNLIMITED else UNLIMITED
        room = min(room, self._room_at(_path_of(node))) if self._room else room
        growth = max(position + len(data) - len(node.data), 0)
        fits = data if growth <= room else data[: max(len(data) - (growth - room), 0)]
        if fits:
            self._put(node.data, position, fits)
            for part in self._room:
                if part in _path_of(node):
                    self._room[part] -= min(growth, room)
            node.pending.append((position, fits))
            node.modified_ms = self.now_ms
        if len(fits) < len(data):
            raise OSError(errno.ENOSPC, "no space left on device", _path_of(node))
        return len(data)

    def cut(self, node: _File, length: int) -> None:
        self.before("truncate", _path_of(node))
        self._resize(node.data, length)
        node.pending.append((length, None))
        node.modified_ms = self.now_ms

    def sync_file(self, node: _File) -> None:
        try:
            self.before("sync", _path_of(node))
        except OSError:
            # The kernel reports lost writes once, then treats the pages as clean.
            node.pending.clear()
            raise
        for position, data in node.pending:
            if data is None:
                self._resize(node.safe, position)
            else:
                self._put(node.safe, position, data)
        node.pending.clear()

    @staticmethod
    def _put(content: bytearray, position: int, data: bytes) -> None:
        if len(content) < position:
            content.extend(bytes(position - len(content)))
        content[position : position + len(data)] = data

    @staticmethod
    def _resize(content: bytearray, length: int) -> None:
        if len(content) > length:
            del content[length:]
        else:
            content.extend(bytes(length - len(content)))

    # --- the FileSystem port -------------------------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False, write: bool = True) -> SimFile:
        node = self._find(path)
        if node is None and create:
            parent = self._dir(path.rpartition("/")[0])
            self.before("create", path)
            made = _File(modified_ms=self.now_ms)
            self._change(parent, ((_name(path), made),))
            return SimFile(self, made)
        self.before("open", path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        if isinstance(node, _Dir):
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        return SimFile(self, node)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def stat(self, path: str) -> FileStat:
        self.before("stat", path)
        node = self._find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return FileStat(len(node.data) if isinstance(node, _File) else 0, node.modified_ms, isinstance(node, _Dir))

    def listdir(self, path: str) -> list[str]:
        self.before("listdir", path)
        return sorted(self._dir(path).entries)

    def make_dirs(self, path: str) -> None:
        node = self._root
        for part in _parts(path):
            below = node.entries.get(part)
            if below is None:
                self.before("mkdir", path)
                below = _Dir(modified_ms=self.now_ms)
                self._change(node, ((part, below),))
            if isinstance(below, _File):
                raise FileExistsError(errno.EEXIST, "is a file", path)
            node = below

    def rename(self, source: str, target: str) -> None:
        parent = self._dir(source.rpartition("/")[0])
        if parent is not self._dir(target.rpartition("/")[0]):
            raise OSError(errno.EXDEV, "renames within a directory only", target)
        node, there = parent.entries.get(_name(source)), parent.entries.get(_name(target))
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        if isinstance(there, _Dir):
            raise IsADirectoryError(errno.EISDIR, "is a directory", target)
        self.before("rename", source)
        self._change(parent, ((_name(source), None), (_name(target), node)))

    def remove(self, path: str) -> None:
        node = self._find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        if isinstance(node, _Dir):
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        self.before("remove", path)
        parent = self._dir(path.rpartition("/")[0])
        if self.network and node.handles > 0 and not node.name.startswith(".nfs"):
            self._leftovers += 1
            self._change(parent, ((node.name, None), (f".nfs{self._leftovers:08d}", node)))
        else:
            self._change(parent, ((_name(path), None),))

    def remove_tree(self, path: str) -> None:
        node = self._find(path)
        if node is None:
            return
        if isinstance(node, _File):
            raise NotADirectoryError(errno.ENOTDIR, "is a file", path)
        for name in sorted(node.entries):
            if isinstance(node.entries[name], _Dir):
                self.remove_tree(f"{path}/{name}")
            elif not name.startswith(".nfs"):
                self.remove(f"{path}/{name}")
        if not node.entries:
            self.before("remove", path)
            self._change(self._dir(path.rpartition("/")[0]), ((_name(path), None),))

    def sync_dir(self, path: str) -> None:
        node = self._dir(path)
        self.before("sync_dir", path)
        node.safe = dict(node.entries)
        node.pending.clear()

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
        return self.capacity, max(self.capacity - sum(len(node.data) for node in _files_below(self._root)), 0)

    def boot_id(self) -> str:
        return f"boot-{self.boots}"

    def _change(self, parent: _Dir, changes: tuple[tuple[str, _Node | None], ...]) -> None:
        for name, node in changes:
            if node is None:
                parent.entries.pop(name, None)
            else:
                parent.entries[name] = node
                node.parent, node.name = parent, name
        parent.pending.append(changes)
        parent.modified_ms = self.now_ms

    def _find(self, path: str) -> _Node | None:
        node: _Node | None = self._root
        for part in _parts(path):
            if not isinstance(node, _Dir):
                return None
            node = node.entries.get(part)
        return node

    def _dir(self, path: str) -> _Dir:
        node = self._find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        if isinstance(node, _File):
            raise NotADirectoryError(errno.ENOTDIR, "is a file", path)
        return node

    # --- what a stop leaves --------------------------------------------------------------------------------------------

    def crash(self, seed: int) -> SimDisk:
        """The disk after a power loss now; this one stays as it is (set ``off`` to stop its users)."""
        rng = random.Random(seed)
        after = self._successor(seed)
        after.boots += 1
        after._root = self._survivors(self._root, None, rng, {})
        return after

    def kill(self) -> SimDisk:
        """The disk after the process was killed: all contents, no locks; unsynced data is still not durable."""
        after = self._successor(0)
        after._root = _copy(self._root, None, {})
        return after

    def _successor(self, seed: int) -> SimDisk:
        after = SimDisk(seed, capacity=self.capacity, network=self.network)
        after.now_ms, after.boots = self.now_ms, self.boots
        after._room = dict(self._room)
        return after

    def _survivors(self, directory: _Dir, parent: _Dir | None, rng: random.Random, seen: dict[int, _File]) -> _Dir:
        names = dict(directory.safe)
        for changes in directory.pending[: rng.randint(0, len(directory.pending))]:
            for name, node in changes:
                if node is None:
                    names.pop(name, None)
                else:
                    names[name] = node
        after = _Dir(modified_ms=directory.modified_ms, parent=parent, name=directory.name)
        for name in sorted(names):
            node = names[name]
            if isinstance(node, _Dir):
                made: _Node = self._survivors(node, after, rng, seen)
            else:
                made = seen.get(id(node)) or _torn(node, rng)
                seen[id(node)] = made
            made.parent, made.name = after, name
            after.entries[name] = made
        after.safe = dict(after.entries)
        return after


def _torn(node: _File, rng: random.Random) -> _File:
    """Contents that may be found after a power loss."""
    content = bytearray(node.safe)
    for position, data in node.pending:
        fate = rng.random()
        if fate < 0.3:
            continue
        if data is None:
            SimDisk._resize(content, position)
        elif fate < 0.7:
            SimDisk._put(content, position, data)
        else:
            _put_some_sectors(content, position, data, rng)
    return _File(content, bytearray(content), [], node.modified_ms)


def _put_some_sectors(content: bytearray, position: int, data: bytes, rng: random.Random) -> None:
    at = 0
    while at < len(data):
        # Sectors are those of the disk, not of the write.
        step = min(SECTOR - (position + at) % SECTOR, len(data) - at)
        if rng.random() < 0.5:
            SimDisk._put(content, position + at, data[at : at + step])
        at += step


def _copy(directory: _Dir, parent: _Dir | None, seen: dict[int, _Node]) -> _Dir:
    after = _Dir(modified_ms=directory.modified_ms, parent=parent, name=directory.name)
    seen[id(directory)] = after

    def twin(node: _Node) -> _Node:
        known = seen.get(id(node))
        if known is not None:
            return known
        if isinstance(node, _Dir):
            return _copy(node, after, seen)
        made = _File(bytearray(node.data), bytearray(node.safe), list(node.pending), node.modified_ms, after, node.name)
        seen[id(node)] = made
        return made

    after.entries = {name: twin(node) for name, node in directory.entries.items()}
    after.safe = {name: twin(node) for name, node in directory.safe.items()}
    after.pending = [tuple((name, None if node is None else twin(node)) for name, node in step) for step in directory.pending]
    return after


def _files_below(directory: _Dir) -> list[_File]:
    found: list[_File] = []
    for node in directory.entries.values():
        if isinstance(node, _File):
            found.append(node)
        else:
            found.extend(_files_below(node))
    return found


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _path_of(node: _Node) -> str:
    parts: list[str] = []
    current: _Node | None = node
    while current is not None and current.parent is not None:
        parts.append(current.name)
        current = current.parent
    return "/" + "/".join(reversed(parts))
