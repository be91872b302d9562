"""Which offsets a member gets: the records of a read that no member holds, up to its limit, fewer where records keep failing.

A group of records that was delivered often and never finished may hold one that no member can process. Such a group is delivered
alone and in ever smaller parts, so that in the end the record stands alone and takes no other with it when it is given up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from tidelog.replication.share.in_flight import Group, InFlight, Span
from tidelog.replication.share.record_state import AcquiredRange, RecordState

SUSPECT_AT_LEAST = 2


class Want(NamedTuple):
    """What a member asks for. ``exact``: at most ``max_records`` (record_limit); otherwise whole batches of the log may exceed
    it. ``batch_size``: acquired ranges of new records end where a batch of the log ends, after at least this many records."""

    member: str
    max_records: int
    batch_size: int
    exact: bool = False


class Acquisition:
    """One acquisition under way. ``batches``: first and last offset of each batch of the log that was read, in order."""

    __slots__ = ("_batches", "_deadline_ms", "_ends", "_limit", "_spans", "_want", "count", "ranges", "room", "stopped")

    def __init__(
        self, spans: InFlight, batches: Sequence[tuple[int, int]], want: Want, room: int, delivery_limit: int, deadline_ms: int
    ) -> None:
        """``room``: records that the member may get. ``delivery_limit``: deliveries after which a record is given up."""
        self._spans = spans
        self._batches = batches
        self._ends = [last for _, last in batches]
        self._want = want
        self._limit = delivery_limit
        self._deadline_ms = deadline_ms
        self.room = room
        self.count = 0
        self.ranges: list[AcquiredRange] = []
        self.stopped = False
        """Nothing may be acquired after what has been: it is to be delivered alone."""

    @property
    def is_full(self) -> bool:
        """Whether the member gets nothing more."""
        return self.stopped or self.count >= self.room

    def walk(self, lower: int, last: int, end: int, gap: tuple[int, int]) -> None:
        """Acquires what it can from ``lower`` to ``last``: available spans, holes in ``gap`` (its first offset, and the one
        behind it), and offsets above ``end``."""
        at, index = lower, 0
        known = self._spans.exactly(lower, last)
        while index < len(known) and not self.is_full:
            span = known[index]
            self._take_hole(max(at, gap[0]), min(span.first, gap[1]) - 1)
            upto = index + 1
            while upto < len(known) and known[upto].group is span.group:
                upto += 1
            self.take_again(known[index:upto])
            at, index = known[upto - 1].last + 1, upto
        self._take_hole(max(at, gap[0]), min(last, gap[1] - 1))
        self._take_hole(max(at, end + 1), last)

    def _take_hole(self, first: int, last: int) -> None:
        if first <= last and not self.is_full:
            self.take_new(first, last)

    def take_again(self, spans: Iterable[Span]) -> None:
        """Acquires available spans, group by group."""
        for _, of_group in groupby(spans, key=lambda span: id(span.group)):
            free = [span for span in of_group if span.can_be_acquired]
            if free and not self.is_full:
                self._take_group(free)

    def _take_group(self, free: list[Span]) -> None:
        most = max(span.count for span in free)
        suspect_from = max(SUSPECT_AT_LEAST, (self._limit + 1) // 2)
        room = self.room - self.count if self._want.exact else 1 << 62
        if most >= suspect_from:
            self.stopped = True
            if self.count:
                return
            room = min(room, max(1, free[0].group.size >> (most - suspect_from + 1)))
        taken = 0
        for index, span in enumerate(free):
            if taken >= room:
                return
            last_chance = self._limit > SUSPECT_AT_LEAST and span.count == self._limit - 1
            if last_chance and taken:
                return
            taken += self._take_span(span, 1 if last_chance else room - taken, joins=index > 0)
            if last_chance:
                return

    def _take_span(self, span: Span, room: int, *, joins: bool) -> int:
        if span.size > room:
            self._spans.split(span.first + room)
        span.acquire(self._want.member, self._deadline_ms)
        self._tell(span, joins=joins)
        return span.size

    def _tell(self, span: Span, *, joins: bool) -> None:
        self.count += span.size
        last = self.ranges[-1] if self.ranges else None
        if joins and last is not None and last.last + 1 == span.first and last.delivery_count == span.count:
            self.ranges[-1] = last._replace(last=span.last)
        else:
            self.ranges.append(AcquiredRange(span.first, span.last, span.count))

    def take_new(self, first: int, last: int) -> None:
        """Acquires offsets that were never delivered, from a hole or behind the last span."""
        room = self.room - self.count
        wanted = min(last, first + room - 1)
        end = min(last, self._ends[min(bisect_left(self._ends, wanted), len(self._ends) - 1)])
        held_to = wanted if self._want.exact else end
        for group in self._groups(first, end):
            span = Span(group.first, group.last, RecordState.AVAILABLE, 0, group)
            self._spans.add(span)
            if span.last > held_to:
                if span.first > held_to:
                    continue
                self._spans.split(held_to + 1)
            span.acquire(self._want.member, self._deadline_ms)
            self._tell(span, joins=False)

    def _groups(self, first: int, last: int) -> Iterable[Group]:
        for _, end in self._batches:
            if first <= last and end >= first and (end >= last or end - first + 1 >= self._want.batch_size):
                yield Group(first, min(end, last))
                first = end + 1
        if first <= last:
            yield Group(first, last)


def without(ranges: Sequence[AcquiredRange], cut: Sequence[tuple[int, int]]) -> list[AcquiredRange]:
    """The ranges without the offsets of ``cut``, whose entries (first, last) are in order and do not overlap."""
    left: list[AcquiredRange] = []
    for one in ranges:
        first = one.first
        for low, high in cut:
            if high < first or low > one.last:
                continue
            if first < low:
                left.append(one._replace(first=first, last=low - 1))
            first = high + 1
        if first <= one.last:
            left.append(one._replace(first=first))
    return left
