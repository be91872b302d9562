"""InFlight: the records of a share partition that were delivered and are not finished, as sorted ranges of equal state.

Ranges (``Span``) never overlap and are split where a change covers only a part of one. Spans that came from one acquisition
belong to one ``Group``: throttling looks at the group as a whole. Offsets between two spans are holes; what they mean is known to
the share partition.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from tidelog.replication.share.record_state import InFlightRange, RecordState


class Group:
    """Offsets that were acquired together first: ``first`` to ``last`` inclusive."""

    __slots__ = ("first", "last")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last

    @property
    def size(self) -> int:
        """The number of offsets."""
        return self.last - self.first + 1


class Span:
    """Offsets ``first`` to ``last`` inclusive in one state. ``member`` holds them until ``deadline_ms`` while they are ACQUIRED.

    ``change`` is the unpersisted change that made the current state; ``before`` is then the state to return to if it fails.
    """

    __slots__ = ("before", "change", "count", "deadline_ms", "first", "group", "last", "member", "state")

    def __init__(self, first: int, last: int, state: RecordState, count: int, group: Group) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.count = count
        self.group = group
        self.member: str | None = None
        self.deadline_ms = 0
        self.change: object | None = None
        self.before: tuple[str, int] | None = None
        """The member and its deadline before the change."""

    @property
    def size(self) -> int:
        """The number of offsets."""
        return self.last - self.first + 1

    @property
    def can_be_acquired(self) -> bool:
        """Whether a member may acquire it now."""
        return self.state is RecordState.AVAILABLE and self.change is None

    @property
    def is_finished(self) -> bool:
        """Whether its state is terminal, and persisted as far as it has to be."""
        return self.state.is_terminal and self.change is None

    def acquire(self, member: str, deadline_ms: int) -> None:
        """The member has it until ``deadline_ms``; this counts as a delivery."""
        assert self.can_be_acquired, (self.first, self.last, self.state)
        self.state, self.count = RecordState.ACQUIRED, self.count + 1
        self.member, self.deadline_ms = member, deadline_ms

    def leave(self, state: RecordState) -> None:
        """It is held no more. There is no way back from here: ``begin`` keeps one."""
        self.state, self.member, self.deadline_ms = state, None, 0

    def begin(self, change: object, state: RecordState) -> None:
        """An acknowledgement that is to be persisted."""
        assert self.state is RecordState.ACQUIRED and self.change is None and self.member is not None
        self.change, self.before = change, (self.member, self.deadline_ms)
        self.leave(state)

    def roll_back(self) -> None:
        """The change was not persisted: the member holds it as before."""
        assert self.before is not None
        self.state = RecordState.ACQUIRED
        self.member, self.deadline_ms = self.before
        self.change = self.before = None

    def settle(self) -> None:
        """The change was persisted."""
        self.change = self.before = None

    def cut(self, at: int) -> Span:
        """Keeps the offsets below ``at`` and returns a span of the others."""
        assert self.first < at <= self.last
        upper = Span(at, self.last, self.state, self.count, self.group)
        upper.member, upper.deadline_ms, upper.change, upper.before = self.member, self.deadline_ms, self.change, self.before
        self.last = at - 1
        return upper


class InFlight:
    """The spans in order."""

    __slots__ = ("_firsts", "_spans")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._spans: list[Span] = []

    def __len__(self) -> int:
        return len(self._spans)

    def __iter__(self) -> Iterator[Span]:
        return iter(self._spans)

    @property
    def lowest(self) -> Span:
        """The first span; there must be one."""
        return self._spans[0]

    @property
    def highest(self) -> Span:
        """The last span; there must be one."""
        return self._spans[-1]

    def add(self, span: Span) -> None:
        """Adds a span where there was a hole."""
        at = bisect_right(self._firsts, span.first)
        assert at == 0 or self._spans[at - 1].last < span.first, (span.first, span.last)
        assert at == len(self._spans) or span.last < self._firsts[at], (span.first, span.last)
        self._firsts.insert(at, span.first)
        self._spans.insert(at, span)

    def drop_below(self, offset: int) -> list[Span]:
        """Removes everything below ``offset`` and returns it."""
        self.split(offset)
        at = bisect_right(self._firsts, offset - 1)
        dropped = self._spans[:at]
        del self._spans[:at], self._firsts[:at]
        return dropped

    def clear(self) -> None:
        """Removes everything."""
        self._spans.clear()
        self._firsts.clear()

    def split(self, at: int) -> None:
        """Makes sure that no span reaches over the border below ``at``."""
        index = bisect_right(self._firsts, at - 1) - 1
        if index >= 0 and self._spans[index].last >= at:
            upper = self._spans[index].cut(at)
            self._firsts.insert(index + 1, at)
            self._spans.insert(index + 1, upper)

    def within(self, first: int, last: int) -> list[Span]:
        """The spans that have offsets between ``first`` and ``last`` inclusive; they may reach beyond."""
        low = bisect_right(self._firsts, first) - 1
        if low < 0 or self._spans[low].last < first:
            low += 1
        return self._spans[low : bisect_right(self._firsts, last)]

    def at(self, offset: int) -> InFlightRange | None:
        """What is known of one offset; None in a hole."""
        found = self.within(offset, offset)
        if not found:
            return None
        span = found[0]
        return InFlightRange(
            span.first, span.last, span.state, span.count, span.member, span.deadline_ms, span.change is not None
        )

    def exactly(self, first: int, last: int) -> list[Span]:
        """Like ``within``, split at the ends, so that no span reaches beyond."""
        self.split(first)
        self.split(last + 1)
        return self.within(first, last)

    def hole_from(self, first: int, end: int) -> tuple[int, int] | None:
        """The first hole from ``first`` on, below ``end``: its first and last offset inclusive. None without one."""
        for span in self.within(first, end):
            if first < min(span.first, end):
                return first, min(span.first, end) - 1
            first = max(first, span.last + 1)
        return (first, end - 1) if first < end else None

    def check(self) -> None:
        """Asserts the invariants."""
        assert self._firsts == [span.first for span in self._spans]
        last = -1
        for span in self._spans:
            assert last < span.first <= span.last, (last, span.first, span.last)
            assert span.group.first <= span.first and span.last <= span.group.last
            assert (span.member is not None) == (span.state is RecordState.ACQUIRED), (span.first, span.state)
            assert (span.change is None) == (span.before is None)
            assert span.change is None or span.state is not RecordState.ACQUIRED
            last = span.last
