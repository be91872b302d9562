"""RottenRange: a damaged part of a segment's file, and look-ups of such ranges.

A segment has none or very few, so they are searched linearly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class RottenRange(NamedTuple):
    """Bytes [position, end) of a segment's file, which contained the offsets [first_offset, next_offset)."""

    position: int
    end: int
    first_offset: int
    next_offset: int


class UndecidedRange(NamedTuple):
    """Offsets [first_offset, end_offset) of transactions whose end may lie in the damage behind them, which is in the segment
    with this base offset."""

    segment: int
    first_offset: int
    end_offset: int


def rotten_at(ranges: Sequence[RottenRange], position: int) -> RottenRange | None:
    """The non-empty range that begins at ``position``."""
    return next((each for each in ranges if each.position == position < each.end), None)


def rotten_with(ranges: Sequence[RottenRange], offset: int) -> RottenRange | None:
    """The range that contains ``offset``."""
    return next((each for each in ranges if each.first_offset <= offset < each.next_offset), None)


def next_rotten(ranges: Sequence[RottenRange], position: int) -> RottenRange | None:
    """The first range at or after ``position``; an empty one counts only after it."""
    return next((each for each in ranges if each.position > position or each.position == position < each.end), None)


def readable_parts(ranges: Sequence[RottenRange], start: int, end: int) -> list[tuple[int, int]]:
    """[start, end) of the file parts between the ranges; ``start`` is the beginning of a batch or of a range."""
    parts: list[tuple[int, int]] = []
    for each in ranges:
        if each.end > start and each.position < end:
            if each.position > start:
                parts.append((start, each.position))
            start = each.end
    if start < end:
        parts.append((start, end))
    return parts
