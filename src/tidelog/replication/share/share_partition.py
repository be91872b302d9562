"""SharePartition: what became of each record of one partition in one share group (KIP-932).

A pure machine. The start offset is the first record that is not finished; the end offset is the last one that was delivered. What
lies between is in flight: available again, acquired by a member until its lock times out, or finished out of order. Records
above the end have not been delivered. The span from start to end is bounded, so one record that is never finished holds up the
partition after ``max_locks`` offsets, as in Kafka.

Acknowledgements are made in two steps. ``acknowledge`` returns a ``Change`` that has to be persisted; ``complete`` then makes it
final, or undoes it. Meanwhile its records can be neither acquired nor acknowledged. A lock that times out changes its records
at once: the change is persisted as well, but a failure of that is harmless, because a new leader frees all locks anyway.

After a load there may be holes between the stored ranges. Records in them may never have been delivered, so they are read and
acquired like new ones until the reads have passed them. Later holes are offsets that the log does not have.

Records of a group with a dead-letter queue are ARCHIVING before they are given up: they are written there first. That begins when
the change is durable, and ``archive`` ends it.

Elsewhere: reading the log, sessions, persisting (``broker.shares``), which records a member gets (``acquiring``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tidelog.model.errors import ErrorCode
from tidelog.replication.share.acknowledging import refused, runs, state_batches
from tidelog.replication.share.acquiring import Acquisition, Want, without
from tidelog.replication.share.dead_letters import Cause, DeadLetter, dead_letters
from tidelog.replication.share.in_flight import Group, InFlight, Span
from tidelog.replication.share.record_state import (
    STATE_AFTER,
    Acknowledgement,
    AckType,
    AcquiredRange,
    RecordState,
    StateBatch,
)

NEVER_MS = 1 << 62
Batches = Sequence[tuple[int, int]]
"""First and last offset, inclusive, of batches of the log, in order."""


class ShareLimits(NamedTuple):
    """The group's settings, asked for at each use."""

    delivery_count: int = 5
    """Deliveries after which a record is given up."""
    max_locks: int = 2000
    """Offsets in flight, from the start to the end."""
    lock_ms: int = 30_000
    renews: bool = True
    """Whether members may renew their locks."""
    dead_letters: bool = False
    """Whether the group has a dead-letter queue."""

    @property
    def given_up(self) -> RecordState:
        """The state of a record that was rejected, or delivered too often."""
        return RecordState.ARCHIVING if self.dead_letters else RecordState.ARCHIVED


class Change(NamedTuple):
    """What is to be persisted: the states of some records, the start offset, and the number of finished records above it.

    ``mark`` None: the change is in force already, and stays so if it cannot be persisted. ``dead_letters`` are to be written once
    it is in force and was persisted, or could not be.
    """

    batches: tuple[StateBatch, ...]
    start_offset: int
    delivery_complete_count: int
    mark: object
    dead_letters: tuple[DeadLetter, ...] = ()


class SharePartition:
    """The records in flight of one partition. ``limits`` returns the group's settings as they are now; times are in ms."""

    __slots__ = ("_complete", "_end", "_free_from", "_gap_end", "_gap_from", "_limits", "_soonest_ms", "_spans", "_start")

    def __init__(self, start_offset: int, batches: Iterable[StateBatch], limits: Callable[[], ShareLimits]) -> None:
        """As it was stored. ValueError when a batch lies below ``start_offset`` or they overlap."""
        self._limits = limits
        self._spans = InFlight()
        self._start = start_offset
        self._end = start_offset - 1
        self._complete = 0
        self._free_from: int | None = None
        """No available span starts below; None: there is none at all."""
        self._soonest_ms = NEVER_MS
        """No lock times out before."""
        for stored in sorted(batches):
            if stored.first <= self._end or stored.last < stored.first:
                raise ValueError(f"stored range {stored.first} to {stored.last} overlaps what lies below {self._end + 1}")
            span = Span(stored.first, stored.last, stored.state, stored.delivery_count, Group(stored.first, stored.last))
            self._spans.add(span)
            self._end = stored.last
            if stored.state.is_terminal:
                self._complete += span.size
            elif stored.state is RecordState.AVAILABLE:
                self._freed_from(span.first)
        self._gap_from = start_offset
        """Holes below have been read and are empty."""
        self._gap_end = self._end + 1
        """Holes from here on are empty."""
        self._advance()

    # -- what can be delivered -----------------------------------------------------------------------------------------------

    @property
    def start_offset(self) -> int:
        """The first record that is not finished."""
        return self._start

    @property
    def end_offset(self) -> int:
        """The last record that was delivered; below ``start_offset`` while nothing is in flight."""
        return self._end

    @property
    def in_flight(self) -> int:
        """Offsets from the start to the end."""
        return self._end - self._start + 1

    @property
    def ranges(self) -> InFlight:
        """What is in flight, to look at."""
        return self._spans

    @property
    def delivery_complete_count(self) -> int:
        """Records above the start that are finished."""
        return self._complete

    @property
    def can_acquire(self) -> bool:
        """Whether a read from ``next_fetch_offset`` may find something to acquire."""
        return self.in_flight < self._limits().max_locks or self.next_fetch_offset() <= self._end

    def next_fetch_offset(self) -> int:
        """Where to read next: the first record that is available, or may never have been delivered."""
        found = self._end + 1
        hole = self._spans.hole_from(max(self._gap_from, self._start), self._gap_end)
        if hole is not None:
            found = hole[0]
        if self._free_from is not None:
            free = next((span for span in self._spans.within(self._free_from, self._end) if span.can_be_acquired), None)
            self._free_from = None if free is None else free.first
            if free is not None:
                found = min(found, free.first)
        return found

    def acquire(
        self, fetch_offset: int, batches: Batches, want: Want, now_ms: int, aborted: Sequence[tuple[int, int]] = ()
    ) -> list[AcquiredRange]:
        """Gives a member records of ``batches``, which were read from ``fetch_offset`` on.

        ``aborted``: first and last offsets of batches whose transaction was aborted, if the group must not see them; they are
        given up. So the result may be empty although the read was not: read on from ``next_fetch_offset`` then.
        """
        if not batches:
            return []
        limits = self._limits()
        base, last = batches[0][0], batches[-1][1]
        self._skip_missing(fetch_offset, base)
        room, last = _room(self._end, self.in_flight, fetch_offset, last, want.max_records, limits.max_locks)
        lower = max(base, self._start)
        if room <= 0 or lower > last:
            return []
        deadline_ms = now_ms + limits.lock_ms
        taking = Acquisition(self._spans, batches, want, room, limits.delivery_count, deadline_ms)
        taking.walk(lower, last, self._end, (self._gap_from, self._gap_end))
        if taking.ranges:
            self._freed_from(lower)
            self._gap_from = max(self._gap_from, taking.ranges[-1].last + 1)
            self._soonest_ms = min(self._soonest_ms, deadline_ms)
        if len(self._spans):
            self._end = max(self._end, self._spans.highest.last)
        ranges = taking.ranges
        if aborted:
            ranges = self._give_up_aborted(ranges, aborted)
        self._advance()
        return ranges

    def _skip_missing(self, fetch_offset: int, base: int) -> None:
        """The log has nothing from ``fetch_offset`` up to ``base``: what is known there was compacted away."""
        if base <= fetch_offset:
            return
        for span in self._spans.exactly(fetch_offset, base - 1):
            if span.can_be_acquired:
                self._finish(span, RecordState.ARCHIVED)
        if fetch_offset < self._gap_end:
            self._gap_from = max(self._gap_from, base)
        self._advance()

    def _give_up_aborted(self, ranges: list[AcquiredRange], aborted: Sequence[tuple[int, int]]) -> list[AcquiredRange]:
        left = without(ranges, aborted)
        kept = {(one.first, one.last) for one in left}
        for one in ranges:
            if (one.first, one.last) in kept:
                continue
            for low, high in aborted:
                if low <= one.last and high >= one.first:
                    for span in self._spans.exactly(max(low, one.first), min(high, one.last)):
                        self._finish(span, RecordState.ARCHIVED)
        return left

    # -- what members say ----------------------------------------------------------------------------------------------------

    def acknowledge(self, member: str, acks: Sequence[Acknowledgement], now_ms: int) -> Change | ErrorCode:
        """All of ``acks`` or none. INVALID_RECORD_STATE (121) for records that the member does not hold, INVALID_REQUEST (42) for
        offsets beyond what was delivered. Records below the start are ignored: they were given up meanwhile."""
        limits = self._limits()
        error = refused(self._spans, self._start, member, acks, renews=limits.renews)
        if error is not ErrorCode.NONE:
            return error
        mark = object()
        changed: list[Span] = []
        rejected: list[Span] = []
        others: list[Span] = []
        for ack in acks:
            for first, last, kind in runs(ack, self._start):
                for span in self._spans.exactly(first, last):
                    if kind is AckType.RENEW:
                        span.deadline_ms = now_ms + limits.lock_ms
                        self._soonest_ms = min(self._soonest_ms, span.deadline_ms)
                        continue
                    self._begin(span, mark, limits.given_up if kind is AckType.REJECT else STATE_AFTER[kind], limits)
                    changed.append(span)
                    (rejected if kind is AckType.REJECT else others).append(span)
        letters = dead_letters(rejected, Cause.REJECTED) + dead_letters(others, Cause.EXHAUSTED)
        return Change(state_batches(changed), self._start, self._complete, mark, letters)

    def release(self, member: str) -> Change | None:
        """The member's session ended: whatever it holds is available again, or given up after too many deliveries."""
        limits, mark = self._limits(), object()
        held = [span for span in self._spans if span.state is RecordState.ACQUIRED and span.member == member]
        for span in held:
            self._begin(span, mark, RecordState.AVAILABLE, limits)
        letters = dead_letters(held, Cause.EXHAUSTED)
        return Change(state_batches(held), self._start, self._complete, mark, letters) if held else None

    def _begin(self, span: Span, mark: object, state: RecordState, limits: ShareLimits) -> None:
        if state is RecordState.AVAILABLE and span.count >= limits.delivery_count:
            state = limits.given_up
        span.begin(mark, state)
        if state.is_terminal:
            self._complete += span.size

    def complete(self, change: Change, now_ms: int, *, persisted: bool) -> Change | None:
        """The change is durable; or it could not be made durable, and the records are as before, unless their locks timed out
        meanwhile. What is returned is in force then, and to be persisted."""
        if not change.batches or change.mark is None:
            return None
        late: list[Span] = []
        for span in self._spans.within(change.batches[0].first, change.batches[-1].last):
            if span.change is not change.mark:
                continue
            if persisted:
                span.settle()
                if span.state is RecordState.AVAILABLE:
                    self._freed_from(span.first)
                continue
            if span.state.is_terminal:
                self._complete -= span.size
            span.roll_back()
            self._soonest_ms = min(self._soonest_ms, span.deadline_ms)
            if span.deadline_ms <= now_ms:
                self._time_out(span, self._limits())
                late.append(span)
        letters = dead_letters(late, Cause.EXHAUSTED)
        again = Change(state_batches(late), self._start, self._complete, None, letters) if letters else None
        self._advance()
        return again

    def archive(self, letter: DeadLetter) -> Change | None:
        """The dead letters of these offsets are written, or lost: they are finished. That is in force already; it is returned to
        be persisted. None if they are below the start by now."""
        spans = self._spans.exactly(letter.first, letter.last)
        done = [span for span in spans if span.state is RecordState.ARCHIVING and span.change is None]
        for span in done:
            self._finish(span, RecordState.ARCHIVED)
        change = Change(state_batches(done), self._start, self._complete, None) if done else None
        self._advance()
        return change

    # -- time, and the log ---------------------------------------------------------------------------------------------------

    def next_deadline(self) -> int:
        """When ``expire`` may have something to do; far away when nothing is acquired."""
        return self._soonest_ms

    def expire(self, now_ms: int) -> Change | None:
        """Frees records whose lock has timed out. The change is in force already; it is returned to be persisted."""
        if now_ms < self._soonest_ms:
            return None
        limits = self._limits()
        expired = []
        self._soonest_ms = NEVER_MS
        for span in self._spans:
            if span.state is RecordState.ACQUIRED:
                if span.deadline_ms <= now_ms:
                    self._time_out(span, limits)
                    expired.append(span)
                else:
                    self._soonest_ms = min(self._soonest_ms, span.deadline_ms)
        if not expired:
            return None
        letters = dead_letters(expired, Cause.EXHAUSTED)
        change = Change(state_batches(expired), self._start, self._complete, None, letters)
        self._advance()
        return change

    def _time_out(self, span: Span, limits: ShareLimits) -> None:
        if span.count >= limits.delivery_count and not limits.dead_letters:
            self._finish(span, RecordState.ARCHIVED)
        elif span.count >= limits.delivery_count:
            span.leave(RecordState.ARCHIVING)
        else:
            span.leave(RecordState.AVAILABLE)
            self._freed_from(span.first)

    def move_start(self, offset: int) -> bool:
        """The log begins at ``offset`` now: records below it are gone. Whether that concerned any."""
        if offset <= self._start:
            return False
        for span in self._spans.drop_below(offset):
            if span.state.is_terminal:
                self._complete -= span.size
        self._start = offset
        self._end = max(self._end, offset - 1)
        self._advance()
        return True

    def _finish(self, span: Span, state: RecordState) -> None:
        span.leave(state)
        self._complete += span.size

    def _freed_from(self, offset: int) -> None:
        self._free_from = offset if self._free_from is None else min(self._free_from, offset)

    def _advance(self) -> None:
        """Moves the start over what is finished, and over holes that have no records."""
        spans = self._spans
        while len(spans):
            lowest = spans.lowest
            if self._start < lowest.first:
                hole = spans.hole_from(max(self._start, self._gap_from), min(self._gap_end, lowest.first))
                if hole is not None:
                    return
                self._start = lowest.first
            if not lowest.is_finished:
                return
            self._start = lowest.last + 1
            self._complete -= lowest.size
            spans.drop_below(self._start)
        self._start = self._end + 1

    def spans(self) -> list[tuple[int, int, RecordState, int, str | None]]:
        """What is in flight: first and last offset, state, delivery count, and the member that holds it."""
        return [(span.first, span.last, span.state, span.count, span.member) for span in self._spans]

    def check(self) -> None:
        """Asserts the invariants."""
        self._spans.check()
        assert self._start <= self._end + 1, (self._start, self._end)
        assert self._complete == sum(span.size for span in self._spans if span.state.is_terminal)
        for span in self._spans:
            assert self._start <= span.first and span.last <= self._end, (self._start, span.first, span.last, self._end)
            assert span.state is not RecordState.ACQUIRED or span.deadline_ms >= self._soonest_ms
            assert not span.can_be_acquired or (self._free_from is not None and self._free_from <= span.first)
        # Only records that may never have been delivered keep the start below what is finished.
        assert not len(self._spans) or not self._spans.lowest.is_finished or self._gap_from < self._gap_end


def _room(end: int, in_flight: int, fetch_offset: int, last: int, max_records: int, max_locks: int) -> tuple[int, int]:
    """How many records may be acquired, and up to which offset, when the last one that was delivered is ``end``."""
    room = min(max_records, max_locks - in_flight)
    if room > 0 or fetch_offset > end:
        return room, last
    return min(max_records, end - fetch_offset + 1), min(last, end)
