"""The ``.txnindex`` of a segment: the transactions that a marker in it aborted (KIP-98).

The file exists from the first abort on and is written immediately, since aborts are rare; it is synced when the segment is
sealed. Entries ascend by marker offset; an existing entry is not added again, so replay is harmless.
"""

from __future__ import annotations

from tidelog.model.ports import File, FileSystem
from tidelog.storage.checkpoints import read_file, replace_file
from tidelog.storage.index import TXN_ENTRY_BYTES, AbortedTransaction, parse_transaction_index


class TransactionIndex:
    """Entries of one segment, loaded on first use. ``path`` is an argument of each call because a segment may be renamed."""

    __slots__ = ("_base_offset", "_entries", "_unsynced", "incomplete", "replay_needed")

    def __init__(self, base_offset: int, *, empty: bool = False) -> None:
        """``empty``: for a new segment, without anything to load."""
        self._base_offset = base_offset
        self._entries: list[AbortedTransaction] | None = [] if empty else None
        self._unsynced = False
        self.replay_needed = False
        """Whether it was emptied, and the segment's batches must be replayed to fill it."""
        self.incomplete = False
        """Whether producers and transactions may lack what damaged batches of the segment say: a start found the damage, and
        this replay, or one whose snapshot was loaded, skipped those batches."""

    def entries(self, fs: FileSystem, path: str) -> list[AbortedTransaction]:
        """All entries. CorruptIndex when the file is malformed."""
        if self._entries is None:
            self._entries = parse_transaction_index(self._base_offset, read_file(fs, path) or b"")
        return self._entries

    @property
    def loaded(self) -> bool:
        """Whether ``entries`` reads no file."""
        return self._entries is not None

    def append(self, fs: FileSystem, path: str, entry: AbortedTransaction) -> None:
        """Adds the entry and writes it to the file, unless it is there already."""
        entries = self.entries(fs, path)
        if entries and entries[-1].last_offset >= entry.last_offset:
            return
        file = fs.open(path, create=True)
        file.write(len(entries) * TXN_ENTRY_BYTES, entry.encode())
        file.close()
        entries.append(entry)
        self._unsynced = True

    def reset(self, fs: FileSystem, path: str) -> None:
        """Empties it; replay fills it again."""
        self._entries = []
        self._unsynced = False
        self.replay_needed = True
        if fs.exists(path):
            fs.remove(path)

    def replace(self, fs: FileSystem, path: str, entries: list[AbortedTransaction]) -> None:
        """Replaces all entries, atomically also on the disk. Blocks for a sync."""
        replace_file(fs, path, b"".join(entry.encode() for entry in entries))
        self._entries = list(entries)
        self._unsynced = False

    def rewrite(self, fs: FileSystem, path: str, entries: list[AbortedTransaction]) -> None:
        """Replaces all entries of a segment that is not sealed: a power loss makes a start read it and write its index again. The
        next flush syncs them."""
        file = fs.open(path, create=True)
        file.truncate(0)
        file.write(0, b"".join(entry.encode() for entry in entries))
        file.close()
        self._entries = list(entries)
        self._unsynced = True

    def written_elsewhere(self, entries: list[AbortedTransaction]) -> None:
        """``replace`` wrote these in a thread, and the old ones may have been read meanwhile."""
        self._entries = list(entries)

    def cut(self, fs: FileSystem, path: str, end_offset: int) -> None:
        """Drops entries whose marker is at or past ``end_offset``. Blocks for a sync."""
        entries = self.entries(fs, path)
        keep = [entry for entry in entries if entry.last_offset < end_offset]
        if len(keep) < len(entries):
            file = fs.open(path)
            file.truncate(len(keep) * TXN_ENTRY_BYTES)
            file.sync()
            file.close()
            self._entries = keep

    def unsynced_file(self, fs: FileSystem, path: str) -> File | None:
        """The open file if it has unsynced entries; the caller syncs it and its name."""
        if not self._unsynced:
            return None
        self._unsynced = False
        return fs.open(path)

    def forget(self) -> None:
        """Frees memory."""
        if not self._unsynced:
            self._entries = None
