"""The ``.txnindex`` of a segment: the transactions that were aborted by a marker in it (KIP-98).

Decided here: when the file exists (from the first abort on), and when it is written (at once: aborts are rare; made safe when
the segment is sealed). Entries ascend by marker offset; one that is there already is not added again, so replay is harmless.
"""

from __future__ import annotations

from tidelog.model.ports import File, FileSystem
from tidelog.storage.checkpoints import read_file
from tidelog.storage.index import TXN_ENTRY_BYTES, AbortedTransaction, parse_transaction_index


class TransactionIndex:
    """Entries of one segment, loaded when first asked for. ``path`` is given with each call: a segment may be renamed."""

    __slots__ = ("_base_offset", "_entries", "_unsynced", "replay_needed")

    def __init__(self, base_offset: int, *, empty: bool = False) -> None:
        """``empty``: of a new segment, nothing is to be loaded."""
        self._base_offset = base_offset
        self._entries: list[AbortedTransaction] | None = [] if empty else None
        self._unsynced = False
        self.replay_needed = False
        """Whether it was emptied, and the segment's batches are to be gone through to fill it."""

    def entries(self, fs: FileSystem, path: str) -> list[AbortedTransaction]:
        """All of them. CorruptIndex when the file is wrong."""
        if self._entries is None:
            self._entries = parse_transaction_index(self._base_offset, read_file(fs, path) or b"")
        return self._entries

    @property
    def loaded(self) -> bool:
        """Whether ``entries`` needs no file."""
        return self._entries is not None

    def append(self, fs: FileSystem, path: str, entry: AbortedTransaction) -> None:
        """Written through, unless it is there."""
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
        """The file, open, when it has entries that were never synced; the caller syncs it, and its name."""
        if not self._unsynced:
            return None
        self._unsynced = False
        return fs.open(path)

    def forget(self) -> None:
        """Gives memory back."""
        if not self._unsynced:
            self._entries = None
