"""One read of the log for all observers that fetch the same range.

A commit wakes hundreds of parked fetches at the same offset. They are answered one after another in the same turn, from the same
bytes; the cache is dropped before the log changes.
"""

from __future__ import annotations

from tidelog.raft.metadata_log import MetadataLog
from tidelog.storage import reading


class SharedReads:
    """The latest read of the log."""

    __slots__ = ("_asked", "_found", "_log")

    def __init__(self, log: MetadataLog) -> None:
        self._log = log
        self._asked: tuple[int, int, int] | None = None
        self._found = b""

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches from ``offset`` to the end of the log: at least one, and more as long as they fit."""
        asked = offset, max_bytes, self._log.end_offset
        if asked != self._asked:
            found = reading.read(self._log.log, offset, max_bytes, upto=self._log.end_offset, min_one=True)
            self._found = found.slice.read() if found.slice is not None else b""
            self._asked = asked
        return self._found

    def forget(self) -> None:
        """Drops the cached read, because the log may change."""
        self._asked, self._found = None, b""
