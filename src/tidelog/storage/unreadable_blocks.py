"""A file of which some blocks cannot be read: they are filled in, so that a scan passes over them as over damaged bytes.

A disk that fails to read a sector (EIO) says nothing about the sectors beside it. A read that fails is repeated block by block.
After ``MOST_BLOCKS`` blocks the error is raised: then more than a few sectors are gone, and each attempt may take seconds.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from tidelog.model.ports import Buffer, File

BLOCK_BYTES = 4096
MOST_BLOCKS = 256
FILL = b"\xa5"
"""Not zero: a record may well consist of zeros, and its checksum would then be right."""


class TolerantFile:
    """A read-only view of ``file``. ``unreadable``: positions of the blocks that failed, in the order of the reads."""

    def __init__(self, file: File) -> None:
        self._file = file
        self.unreadable: list[int] = []

    @property
    def path(self) -> str:
        return self._file.path

    def size(self) -> int:
        return self._file.size()

    def read(self, position: int, length: int) -> bytes:
        """As of a file, with ``FILL`` for blocks that cannot be read. OSError for other errors, and after too many."""
        try:
            return self._file.read(position, length)
        except OSError as problem:
            if problem.errno != errno.EIO:
                raise
        found, end = bytearray(), min(position + length, self._file.size())
        while position < end:
            step = min(BLOCK_BYTES - position % BLOCK_BYTES, end - position)
            try:
                found += self._file.read(position, step)
            except OSError as problem:
                if problem.errno != errno.EIO or len(self.unreadable) >= MOST_BLOCKS:
                    raise
                self.unreadable.append(position)
                found += FILL * step
            position += step
        return bytes(found)

    def write(self, position: int, data: Buffer | Sequence[Buffer]) -> int:
        raise AssertionError("a file that is only looked at")

    def truncate(self, length: int) -> None:
        raise AssertionError("a file that is only looked at")

    def sync(self) -> None:
        """Does nothing: nothing was written."""

    def close(self) -> None:
        """Does nothing: the log owns the file."""

    def fileno(self) -> int:
        return self._file.fileno()
