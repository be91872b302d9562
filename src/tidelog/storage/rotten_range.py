"""RottenRange: a part of a segment's file whose bytes are no longer what was written; and which range is meant.

A segment has none, or very few: they are looked through one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class RottenRange(NamedTuple):
    """Bytes [position, end) of a segment's file, which held the offsets [first_offset, next_offset)."""

    position: int
    end: int
    first_offset: int
    next_offset: int


def rotten_at(ranges: Sequence[RottenRange], position: int) -> RottenRange | None:
    """The range that begins at ``position`` and has bytes."""
    return next((each for each in ranges if each.position == position < each.end), None)


def rotten_with(ranges: Sequence[RottenRange], offset: int) -> RottenRange | None:
    """The range that held ``offset``."""
    return next((each for each in ranges if each.first_offset <= offset < each.next_offset), None)


def next_rotten(ranges: Sequence[RottenRange], position: int) -> RottenRange | None:
    """The first range at or behind ``position``; one without bytes counts only behind it."""
    return next((each for each in ranges if each.position > position or each.position == position < each.end), None)


def readable_parts(ranges: Sequence[RottenRange], start: int, end: int) -> list[tuple[int, int]]:
    """[start, end) of the file without the ranges in it; ``start`` is the beginning of a batch or of a range."""
    parts: list[tuple[int, int]] = []
    for each in ranges:
        if each.end > start and each.position < end:
            if each.position > start:
                parts.append((start, each.position))
            start = each.end
    if start < end:
        parts.append((start, end))
    return parts
