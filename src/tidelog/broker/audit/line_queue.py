"""Lines that wait to be written, bounded in number and bytes. What does not fit is dropped and counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice

MOST_LINES = 20_000
MOST_BYTES = 16 * 1024 * 1024


class LineQueue:
    """First in, first out. Not shared between threads."""

    __slots__ = ("_lines", "_most_bytes", "_most_lines", "_size", "dropped", "on_line", "written")

    def __init__(self, most_lines: int = MOST_LINES, most_bytes: int = MOST_BYTES) -> None:
        self.dropped = 0
        """Lines for which there was no room, since the start."""
        self.written = 0
        self.on_line: Callable[[], None] | None = None
        """Called when a line was added."""
        self._most_lines = most_lines
        self._most_bytes = most_bytes
        self._lines: deque[bytes] = deque()
        self._size = 0

    def __len__(self) -> int:
        """How many lines wait."""
        return len(self._lines)

    def add(self, line: bytes) -> None:
        """Adds a line, or drops it when the queue is full."""
        if len(self._lines) >= self._most_lines or self._size + len(line) > self._most_bytes:
            self.dropped += 1
            return
        self._lines.append(line)
        self._size += len(line)
        if self.on_line is not None:
            self.on_line()

    def first(self, most_lines: int, most_bytes: int) -> list[bytes]:
        """The first lines, as many as fit, and at least one if any waits. They stay until ``done``."""
        found: list[bytes] = []
        size = 0
        for line in islice(self._lines, most_lines):
            size += len(line)
            if found and size > most_bytes:
                break
            found.append(line)
        return found

    def done(self, count: int) -> None:
        """The first ``count`` lines are written."""
        for _ in range(count):
            self._size -= len(self._lines.popleft())
        self.written += count
