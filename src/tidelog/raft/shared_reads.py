"""What observers fetch at the same moment is read once.

A commit wakes hundreds of long polls that wait at the same offset. They are answered one after another in the same turn, from the
same bytes; whoever appends, cuts or goes on to something else forgets them first.
"""

from __future__ import annotations

from tidelog.raft.metadata_log import MetadataLog


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
            found = self._log.log.read(offset, max_bytes, upto=self._log.end_offset, min_one=True)
            self._found = found.slice.read() if found.slice is not None else b""
            self._asked = asked
        return self._found

    def forget(self) -> None:
        """The log may change now."""
        self._asked, self._found = None, b""
