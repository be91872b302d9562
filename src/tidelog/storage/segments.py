"""Segments: the segments of one log in ascending order, and the only place that changes which there are.

Beside the list it keeps which one is active (the last), which closed ones still have to be sealed by a flush job, and which have
aborted transactions. Readers in other threads take a list once and go on with it: a change replaces it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence

from tidelog.storage.segment import LogSegment


def base_offset(segment: LogSegment) -> int:
    """The key that segments are ordered by."""
    return segment.base_offset


class Segments:
    """See the module. Files are the caller's: a segment is added when it is created, and taken out when its files go."""

    __slots__ = ("_aborting", "_all", "_unsealed", "active")

    def __init__(self, segments: Sequence[LogSegment], aborting: Sequence[LogSegment] = ()) -> None:
        """``segments``: at least one."""
        self._all = list(segments)
        self.active = self._all[-1]
        """The one that is appended to; set here alone."""
        self._aborting = list(aborting)
        self._unsealed = [segment for segment in self._all[:-1] if not segment.sealed]

    @property
    def all(self) -> list[LogSegment]:
        """Ascending; not to be changed."""
        return self._all

    @property
    def aborting(self) -> list[LogSegment]:
        """Segments with an entry in their transaction index, ascending; not to be changed."""
        return self._aborting

    @property
    def unsealed(self) -> list[LogSegment]:
        """Closed segments that a flush job has yet to seal."""
        return self._unsealed

    @property
    def size_bytes(self) -> int:
        """Of all ``.log`` files."""
        return sum(segment.size for segment in self._all)

    def index_of(self, offset: int) -> int:
        """The number of the segment that holds ``offset`` (the first one for an offset before it)."""
        segments = self._all
        if offset >= segments[-1].base_offset:
            return len(segments) - 1
        return max(bisect_right(segments, offset, key=base_offset) - 1, 0)

    def add(self, segment: LogSegment) -> None:
        """A new active segment; the former one is closed."""
        self._unsealed.append(self.active)
        self._all = [*self._all, segment]
        self.active = segment

    def keep(self, count: int) -> None:
        """Only the first ``count`` are left; the last of them is active again."""
        self._all = self._all[:count]
        self.active = self._all[-1]
        self._aborting = [segment for segment in self._aborting if segment in self._all]
        self._unsealed = [segment for segment in self._unsealed if segment in self._all[:-1]]

    def start_over(self, segment: LogSegment) -> None:
        """All are gone but this new one."""
        self._all, self.active, self._aborting, self._unsealed = [segment], segment, [], []

    def replace(self, old: Collection[LogSegment], new: Sequence[LogSegment]) -> None:
        """``old``, closed ones in a row, are gone; ``new`` stand in their place."""
        at = next(index for index, segment in enumerate(self._all) if segment in old)
        self._all = [*self._all[:at], *new, *self._all[at + len(old) :]]
        self._aborting = [segment for segment in self._aborting if segment not in old]
        self._unsealed = [segment for segment in self._unsealed if segment not in old]
        for segment in new:
            if segment.transactions():
                self.note_aborting(segment)

    def note_aborting(self, segment: LogSegment) -> None:
        """The segment's transaction index has an entry now."""
        if segment not in self._aborting[-1:] and segment not in self._aborting:
            self._aborting = sorted([*self._aborting, segment], key=base_offset)

    def sealed(self, segments: Sequence[LogSegment]) -> None:
        """A flush job has made these safe, indexes and all."""
        for segment in segments:
            segment.sealed = True
        self._unsealed = [segment for segment in self._unsealed if not segment.sealed]

    def each(self, do: Callable[[LogSegment], None], *, closed: bool = False) -> None:
        """``do`` with all, or only with closed ones."""
        for segment in self._all[:-1] if closed else self._all:
            do(segment)

    def check(self) -> None:
        """The invariants."""
        bases = [segment.base_offset for segment in self._all]
        assert bases == sorted(set(bases)), bases
        assert self.active is self._all[-1]
        assert all(segment in self._all[:-1] for segment in self._unsealed)
