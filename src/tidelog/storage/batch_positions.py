"""RecentBatches: where the last batches of a segment begin, in memory: most reads are of these, and need no index and no file."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

LIMIT = 1024
"""Batches remembered; at this limit the older half is dropped."""


class RecentBatches:
    """Last offsets and positions of consecutive batches up to the segment's end. ``floor``: offsets below it are not known."""

    __slots__ = ("_last_offsets", "_positions", "floor")

    def __init__(self, floor: int) -> None:
        self._last_offsets = array("q")
        self._positions = array("q")
        self.floor = floor

    def add(self, base_offset: int, last_offset: int, position: int) -> None:
        """A batch was appended."""
        recent = self._last_offsets
        if not recent:
            self.floor = base_offset
        recent.append(last_offset)
        self._positions.append(position)
        if len(recent) > LIMIT:
            self._forget_older_half()

    def _forget_older_half(self) -> None:
        half = LIMIT // 2
        self.floor = self._last_offsets[half - 1] + 1
        del self._last_offsets[:half]
        del self._positions[:half]

    def position_of(self, offset: int) -> int:
        """The start of the first batch that ends at or past ``offset``; -1 when it is not known."""
        if offset < self.floor:
            return -1
        found = bisect_left(self._last_offsets, offset)
        return self._positions[found] if found < len(self._positions) else -1

    def boundary_within(self, start: int, limit: int) -> int:
        """The last batch boundary in (start, limit]; -1 when it is not known."""
        positions = self._positions
        if positions and limit >= positions[0]:
            boundary = positions[bisect_right(positions, limit) - 1]
            if boundary > start:
                return boundary
        return -1

    def end_offset_at(self, position: int) -> int:
        """An offset past all batches that begin before ``position``; -1 when it is not known."""
        positions = self._positions
        if positions and positions[0] < position:
            return self._last_offsets[bisect_left(positions, position) - 1] + 1
        return -1
