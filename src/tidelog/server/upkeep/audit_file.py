"""The audit's file: lines are appended, and a full file is renamed. ``NAME.1`` is the newest of the older ones.

Only its owner may read it. Blocks; used by one thread at a time. A line is in the operating system's hands when ``append``
returns, and on the disk when its file is full or closed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

MODE = 0o600
_BINARY = getattr(os, "O_BINARY", 0)
"""Windows only."""


class AuditFile:
    """Opened by ``open``, and again by the first line after an error."""

    def __init__(self, path: str, max_bytes: int, count: int) -> None:
        """``max_bytes``: of one file; ``count``: how many files are kept, this one included."""
        self.path = path
        self._max_bytes = max_bytes
        self._count = count
        self._descriptor = -1
        self._size = 0

    def append(self, lines: Sequence[bytes]) -> None:
        """Appends each line with a line break. OSError: some of the last ones may be missing, and the file is closed."""
        try:
            if self._descriptor < 0:
                self.open()
            waiting = bytearray()
            for line in lines:
                if self._size + len(waiting) + len(line) + 1 > self._max_bytes and self._size + len(waiting):
                    self._write(waiting)
                    waiting = bytearray()
                    self._rotate()
                waiting += line + b"\n"
            self._write(waiting)
        except OSError:
            self.close(synced=False)
            raise

    def close(self, *, synced: bool = True) -> None:
        """Closes the file. OSError only with ``synced``."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            try:
                if synced:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def open(self) -> None:
        """Creates the file, or continues with the one that is there. OSError."""
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _BINARY, MODE)
        self._size = os.fstat(self._descriptor).st_size
        if self._size:
            os.lseek(self._descriptor, -1, os.SEEK_END)
            if os.read(self._descriptor, 1) != b"\n":
                # A crash or a full disk cut the last line; the next one must not become part of it.
                self._write(b"\n")

    def _write(self, data: bytes | bytearray) -> None:
        left = memoryview(data)
        while left:
            written = os.write(self._descriptor, left)
            self._size += written
            left = left[written:]

    def _rotate(self) -> None:
        self.close()
        if self._count == 1:
            os.unlink(self.path)
        else:
            for number in range(self._count - 1, 0, -1):
                older = f"{self.path}.{number}"
                newer = f"{self.path}.{number - 1}" if number > 1 else self.path
                if os.path.exists(newer):
                    os.replace(newer, older)
        self.open()
