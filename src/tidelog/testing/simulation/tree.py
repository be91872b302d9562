"""The names and files on a simulated disk: each with what is there now, what is durable, and the changes in between.

Data of a file is durable after ``FileNode.sync``, names in a directory after ``DirNode.sync``; nothing else is.
``Tree.after_power_loss`` keeps of the rest what real disks may keep:

- of the changes to a directory since its last sync, some first ones survive (file systems journal them in order);
- of the writes to a file since its last sync, each survives whole, in some of its 512-byte sectors, or not at all, in no order;
  a file grown by a write that got lost has zeroes there.
"""

from __future__ import annotations

import errno
import functools
import random
from dataclasses import dataclass, field

SECTOR = 512


@dataclass(slots=True)
class FileNode:
    """The current contents, the durable contents, and the changes since: (position, data), or (length, None) for a truncation."""

    data: bytearray = field(default_factory=bytearray)
    safe: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    modified_ms: int = 0
    parent: DirNode | None = None
    name: str = ""
    handles: int = 0

    @property
    def path(self) -> str:
        """The path from the root of its tree."""
        parts, parent = [self.name], self.parent
        while parent is not None and parent.parent is not None:
            parts.append(parent.name)
            parent = parent.parent
        return "/" + "/".join(reversed(parts))

    def write(self, position: int, data: bytes, now_ms: int) -> None:
        """Write without sync; zeroes fill a gap before ``position``."""
        _put(self.data, position, data)
        self.pending.append((position, data))
        self.modified_ms = now_ms

    def truncate(self, length: int, now_ms: int) -> None:
        """Cut or grow to ``length`` bytes without sync."""
        _resize(self.data, length)
        self.pending.append((length, None))
        self.modified_ms = now_ms

    def sync(self) -> None:
        """Make all changes durable."""
        for position, data in self.pending:
            if data is None:
                _resize(self.safe, position)
            else:
                _put(self.safe, position, data)
        self.pending.clear()

    def forget_changes(self) -> None:
        """Treat the changes as clean without making them durable: no later sync does either."""
        self.pending.clear()

    def flip(self, position: int, bit: int) -> None:
        """Flip one bit of the current and the durable contents, and of what a sync will write."""
        for content in (self.data, self.safe):
            if position < len(content):
                content[position] ^= 1 << bit
        for number, (start, data) in enumerate(self.pending):
            if data is not None and start <= position < start + len(data):
                flipped = bytearray(data)
                flipped[position - start] ^= 1 << bit
                self.pending[number] = start, bytes(flipped)

    def torn(self, rng: random.Random) -> FileNode:
        """A file with contents that may be found after a power loss."""
        content = bytearray(self.safe)
        for position, data in self.pending:
            fate = rng.random()
            if fate < 0.3:
                continue
            if data is None:
                _resize(content, position)
            elif fate < 0.7:
                _put(content, position, data)
            else:
                _put_some_sectors(content, position, data, rng)
        return FileNode(content, bytearray(content), [], self.modified_ms)


@dataclass(slots=True)
class DirNode:
    """The current names, the durable names, and the changes since: (name, node), with node None for a removal; a rename is two
    changes that survive or get lost together."""

    entries: dict[str, Node] = field(default_factory=dict)
    safe: dict[str, Node] = field(default_factory=dict)
    pending: list[tuple[tuple[str, Node | None], ...]] = field(default_factory=list)
    modified_ms: int = 0
    parent: DirNode | None = None
    name: str = ""

    def change(self, now_ms: int, *changes: tuple[str, Node | None]) -> None:
        """Add and remove names in one step, without sync."""
        for name, node in changes:
            if node is None:
                self.entries.pop(name, None)
            else:
                self.entries[name] = node
                node.parent, node.name = self, name
        self.pending.append(changes)
        self.modified_ms = now_ms

    def sync(self) -> None:
        """Make the names durable."""
        self.safe = dict(self.entries)
        self.pending.clear()

    def files(self) -> list[FileNode]:
        """The files here and in all directories below."""
        found: list[FileNode] = []
        for node in self.entries.values():
            if isinstance(node, FileNode):
                found.append(node)
            else:
                found.extend(node.files())
        return found

    def names_after_power_loss(self, rng: random.Random) -> dict[str, Node]:
        """The durable names with some first changes since."""
        names = dict(self.safe)
        for changes in self.pending[: rng.randint(0, len(self.pending))]:
            for name, node in changes:
                if node is None:
                    names.pop(name, None)
                else:
                    names[name] = node
        return names


Node = FileNode | DirNode


class Tree:
    """All names of a disk. Paths are absolute, with ``/`` between names."""

    def __init__(self, root: DirNode | None = None) -> None:
        self.root = root or DirNode()

    def find(self, path: str) -> Node | None:
        """The file or directory at a path."""
        node: Node | None = self.root
        for part in _cached_parts(path):
            if not isinstance(node, DirNode):
                return None
            node = node.entries.get(part)
        return node

    def file(self, path: str) -> FileNode:
        """The file at a path. FileNotFoundError, IsADirectoryError."""
        node = self.find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        if isinstance(node, DirNode):
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        return node

    def directory(self, path: str) -> DirNode:
        """The directory at a path. FileNotFoundError, NotADirectoryError."""
        node = self.find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        if isinstance(node, FileNode):
            raise NotADirectoryError(errno.ENOTDIR, "is a file", path)
        return node

    def parent(self, path: str) -> DirNode:
        """The directory that has, or will have, the last name of a path. FileNotFoundError, NotADirectoryError."""
        return self.directory(path.rpartition("/")[0])

    def size(self) -> int:
        """Bytes of file contents."""
        return sum(len(node.data) for node in self.root.files())

    def after_power_loss(self, rng: random.Random) -> Tree:
        """What the next start finds, all of it durable; this tree stays as it is."""
        return Tree(_survivors(self.root, None, rng, {}))

    def copy(self) -> Tree:
        """The same names and contents, durable or not, without open handles."""
        return Tree(_copy(self.root, None, {}))


def parts(path: str) -> list[str]:
    """The names in a path."""
    return [part for part in path.split("/") if part]


@functools.lru_cache(maxsize=8192)
def _cached_parts(path: str) -> tuple[str, ...]:
    return tuple(parts(path))


def last_name(path: str) -> str:
    """The name of a path in its directory."""
    return path.rpartition("/")[2]


def _put(content: bytearray, position: int, data: bytes) -> None:
    if len(content) < position:
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data


def _resize(content: bytearray, length: int) -> None:
    if len(content) > length:
        del content[length:]
    else:
        content.extend(bytes(length - len(content)))


def _put_some_sectors(content: bytearray, position: int, data: bytes, rng: random.Random) -> None:
    at = 0
    while at < len(data):
        # Sectors are those of the disk, not of the write.
        step = min(SECTOR - (position + at) % SECTOR, len(data) - at)
        if rng.random() < 0.5:
            _put(content, position + at, data[at : at + step])
        at += step


def _survivors(directory: DirNode, parent: DirNode | None, rng: random.Random, seen: dict[int, FileNode]) -> DirNode:
    names = directory.names_after_power_loss(rng)
    after = DirNode(modified_ms=directory.modified_ms, parent=parent, name=directory.name)
    for name in sorted(names):
        node = names[name]
        if isinstance(node, DirNode):
            made: Node = _survivors(node, after, rng, seen)
        else:
            made = seen.get(id(node)) or node.torn(rng)
            seen[id(node)] = made
        made.parent, made.name = after, name
        after.entries[name] = made
    after.safe = dict(after.entries)
    return after


def _copy(directory: DirNode, parent: DirNode | None, seen: dict[int, Node]) -> DirNode:
    after = DirNode(modified_ms=directory.modified_ms, parent=parent, name=directory.name)
    seen[id(directory)] = after

    def twin(node: Node) -> Node:
        known = seen.get(id(node))
        if known is not None:
            return known
        if isinstance(node, DirNode):
            return _copy(node, after, seen)
        made = FileNode(bytearray(node.data), bytearray(node.safe), list(node.pending), node.modified_ms, after, node.name)
        seen[id(node)] = made
        return made

    after.entries = {name: twin(node) for name, node in directory.entries.items()}
    after.safe = {name: twin(node) for name, node in directory.safe.items()}
    after.pending = [tuple((name, None if node is None else twin(node)) for name, node in step) for step in directory.pending]
    return after
