"""BatchSpan: where one batch lies in a segment's file."""

from __future__ import annotations

from tidelog.storage.rotten_range import RottenRange


class BatchSpan:
    """Where one batch lies: first byte, one past the last, first and last offset, greatest timestamp."""

    __slots__ = ("base_offset", "end", "last_offset", "max_timestamp", "position")

    def __init__(self, position: int, end: int, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        self.position = position
        self.end = end
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.max_timestamp = max_timestamp


def span_of_rotten(rotten: RottenRange) -> BatchSpan:
    """A rotten range in the place of the batches that it held; it has no timestamp."""
    return BatchSpan(rotten.position, rotten.end, rotten.first_offset, rotten.next_offset - 1, -1)
