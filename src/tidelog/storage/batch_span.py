"""BatchSpan: the position of one batch in a segment's file."""

from __future__ import annotations

from tidelog.storage.rotten_range import RottenRange


class BatchSpan:
    """The position of one batch: first byte, one past the last, first and last offset, greatest timestamp."""

    __slots__ = ("base_offset", "end", "last_offset", "max_timestamp", "position")

    def __init__(self, position: int, end: int, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        self.position = position
        self.end = end
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.max_timestamp = max_timestamp


def span_of_rotten(rotten: RottenRange) -> BatchSpan:
    """The span of a rotten range in place of its batches; it has no timestamp."""
    return BatchSpan(rotten.position, rotten.end, rotten.first_offset, rotten.next_offset - 1, -1)
