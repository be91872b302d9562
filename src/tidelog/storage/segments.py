"""Segments: the segments of one log in ascending order, and the only place that adds and removes them.

It also knows the active segment (the last), the closed ones that a flush job still has to seal, and those with aborted
transactions. Readers in other threads take a list once and keep using it: a change replaces the list.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence

from tidelog.storage.segment import LogSegment


def base_offset(segment: LogSegment) -> int:
    """The key that segments are ordered by."""
    return segment.base_offset


class Segments:
    """The segments of one log. The caller handles files: it adds a segment after creating it, and removes it with its files."""

    __slots__ = ("_aborting", "_all", "_unsealed", "active", "cuts")

    def __init__(self, segments: Sequence[LogSegment], aborting: Sequence[LogSegment] = ()) -> None:
        """``segments``: at least one."""
        self._all = list(segments)
        self.active = self._all[-1]
        """The segment for appends; set only here."""
        self.cuts = 0
        """How often the end of the log was cut: what was read before a cut may be out of date."""
        self._aborting = list(aborting)
        self._unsealed = [segment for segment in self._all[:-1] if not segment.sealed]

    @property
    def all(self) -> list[LogSegment]:
        """Ascending; read-only."""
        return self._all

    @property
    def aborting(self) -> list[LogSegment]:
        """Segments with an entry in their transaction index, ascending; read-only."""
        return self._aborting

    @property
    def unsealed(self) -> list[LogSegment]:
        """Closed segments that a flush job still has to seal."""
        return self._unsealed

    @property
    def size_bytes(self) -> int:
        """The size of all ``.log`` files."""
        return sum(segment.size for segment in self._all)

    def index_of(self, offset: int) -> int:
        """The position of the segment that holds ``offset`` (the first one for an earlier offset)."""
        segments = self._all
        if offset >= segments[-1].base_offset:
            return len(segments) - 1
        return max(bisect_right(segments, offset, key=base_offset) - 1, 0)

    def add(self, segment: LogSegment) -> None:
        """Adds a new active segment; the previous one is closed."""
        self._unsealed.append(self.active)
        self._all = [*self._all, segment]
        self.active = segment

    def keep(self, count: int) -> None:
        """Keeps only the first ``count``; the last of them becomes active again."""
        self.cuts += 1
        self._all = self._all[:count]
        self.active = self._all[-1]
        self._aborting = [segment for segment in self._aborting if segment in self._all]
        self._unsealed = [segment for segment in self._unsealed if segment in self._all[:-1]]

    def start_over(self, segment: LogSegment) -> None:
        """Replaces all segments with a new one."""
        self.cuts += 1
        self._all, self.active, self._aborting, self._unsealed = [segment], segment, [], []

    def replace(self, old: Collection[LogSegment], new: Sequence[LogSegment]) -> None:
        """Replaces ``old``, adjacent closed segments, with ``new``."""
        at = next(index for index, segment in enumerate(self._all) if segment in old)
        self._all = [*self._all[:at], *new, *self._all[at + len(old) :]]
        self._aborting = [segment for segment in self._aborting if segment not in old]
        self._unsealed = [segment for segment in self._unsealed if segment not in old]
        for segment in new:
            if segment.transactions():
                self.note_aborting(segment)

    def note_aborting(self, segment: LogSegment) -> None:
        """The segment's transaction index now has an entry."""
        if segment not in self._aborting[-1:] and segment not in self._aborting:
            self._aborting = sorted([*self._aborting, segment], key=base_offset)

    def sealed(self, segments: Sequence[LogSegment]) -> None:
        """A flush job has synced these segments with their indexes."""
        for segment in segments:
            segment.sealed = True
        self._unsealed = [segment for segment in self._unsealed if not segment.sealed]

    def each(self, do: Callable[[LogSegment], None], *, closed: bool = False) -> None:
        """Calls ``do`` with all segments, or only with closed ones."""
        for segment in self._all[:-1] if closed else self._all:
            do(segment)

    def check(self) -> None:
        """Asserts the invariants."""
        bases = [segment.base_offset for segment in self._all]
        assert bases == sorted(set(bases)), bases
        assert self.active is self._all[-1]
        assert all(segment in self._all[:-1] for segment in self._unsealed)
