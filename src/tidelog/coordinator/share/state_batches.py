"""Merging stored state batches with new ones. Source: the rules by which Kafka's share coordinator combines batches."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from tidelog.replication.share.record_state import StateBatch


def merged(stored: Sequence[StateBatch], new: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """All batches from ``start_offset`` (-1: from the first) on, in order, without overlap; equal neighbours are joined.

    Where two overlap, the higher delivery count wins, then the higher state: a late write does not take back a delivery.
    ``stored`` is in order already.
    """
    result = list(stored)
    for one in sorted(new):
        low = bisect_left(result, one.first, key=lambda batch: batch.last)
        high = low
        while high < len(result) and result[high].first <= one.last:
            high += 1
        result[low:high] = _overlaid(result[low:high], one)
    return _joined(_cut(result, start_offset))


def _overlaid(old: Sequence[StateBatch], new: StateBatch) -> list[StateBatch]:
    """``old``, each of which overlaps ``new``, with ``new`` on top, below, and between them."""
    result: list[StateBatch] = []
    at = new.first
    for one in old:
        if one.first < at:
            result.append(one._replace(last=at - 1))
            one = one._replace(first=at)
        if at < one.first:
            result.append(new._replace(first=at, last=one.first - 1))
        end = min(one.last, new.last)
        wins = (new.delivery_count, new.state) > (one.delivery_count, one.state)
        result.append((new if wins else one)._replace(first=one.first, last=end))
        if one.last > end:
            result.append(one._replace(first=end + 1))
        at = end + 1
    if at <= new.last:
        result.append(new._replace(first=at))
    return result


def _cut(batches: Iterable[StateBatch], start_offset: int) -> Iterable[StateBatch]:
    for one in batches:
        if one.last >= start_offset:
            yield one._replace(first=start_offset) if one.first < start_offset else one


def _joined(batches: Iterable[StateBatch]) -> list[StateBatch]:
    result: list[StateBatch] = []
    for one in batches:
        last = result[-1] if result else None
        if last is not None and last.last + 1 == one.first and last[2:] == one[2:]:
            result[-1] = last._replace(last=one.last)
        else:
            result.append(one)
    return result
