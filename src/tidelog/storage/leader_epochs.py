"""LeaderEpochCache: the start offset of each leader epoch, and so its end (KIP-101, KIP-279).

This module decides how a new epoch changes entries that contradict it, and the answer for an unknown epoch. Invariants: epochs
and start offsets are both strictly ascending; every start offset is at or below the log's end. The file is written by flush jobs
and at close: after a crash, the batches past the recovery point give their epochs again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from tidelog.model.ids import NO_EPOCH, NO_OFFSET


class LeaderEpochCache:
    """Sorted (epoch, start offset) pairs of one log."""

    __slots__ = ("dirty", "epochs", "latest", "start_offsets")

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self.epochs: list[int] = []
        self.start_offsets: list[int] = []
        self.latest = NO_EPOCH
        """The greatest epoch, -1 without one."""
        for epoch, start_offset in entries or ():
            self.assign(epoch, start_offset)
        self.dirty = False
        """Whether the file is out of date."""

    def take_changes(self) -> list[tuple[int, int]] | None:
        """The content to write; None if the file is up to date. The caller must write it."""
        if not self.dirty:
            return None
        self.dirty = False
        return self.entries()

    def write_again(self) -> None:
        """Writes the file with the next flush, changed or not."""
        self.dirty = True

    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset), ascending."""
        return list(zip(self.epochs, self.start_offsets, strict=True))

    def assign(self, epoch: int, start_offset: int) -> None:
        """``epoch`` starts at ``start_offset``; ignored if the epoch is known. Contradicting entries (an epoch as high, a
        start as late) are removed: those epochs had no record."""
        if epoch < 0:
            raise ValueError(f"leader epoch {epoch} is negative")
        if epoch == self.latest and start_offset >= self.start_offsets[-1]:
            return
        while self.epochs and (self.epochs[-1] >= epoch or self.start_offsets[-1] >= start_offset):
            self.epochs.pop()
            self.start_offsets.pop()
        self.epochs.append(epoch)
        self.start_offsets.append(start_offset)
        self.latest = epoch
        self.dirty = True

    def admits(self, epoch: int, first: int, last: int) -> bool:
        """Whether the records from ``first`` to ``last`` may be of ``epoch``: the entries before and behind them agree."""
        behind = bisect_right(self.start_offsets, first)
        if behind > 0 and self.epochs[behind - 1] >= epoch:
            return self.epochs[behind - 1] == epoch
        return behind == len(self.epochs) or (self.epochs[behind] >= epoch and self.start_offsets[behind] > last)

    def insert(self, epoch: int, start_offset: int) -> None:
        """``epoch`` begins at ``start_offset``, which is learned late: entries behind it stay. It must be admitted."""
        at = bisect_right(self.start_offsets, start_offset)
        if at > 0 and self.epochs[at - 1] == epoch:
            return
        if at < len(self.epochs) and self.epochs[at] == epoch:
            self.start_offsets[at] = start_offset
        else:
            self.epochs.insert(at, epoch)
            self.start_offsets.insert(at, start_offset)
        if at > 0 and self.start_offsets[at - 1] == start_offset:  # that epoch had no record
            del self.epochs[at - 1], self.start_offsets[at - 1]
        self.latest = self.epochs[-1]
        self.dirty = True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(the greatest epoch at or below ``epoch``, its end offset); (-1, -1) when unknown.

        For an epoch older than all entries: that epoch and the start of the oldest entry, since no earlier record is left.
        """
        if epoch == NO_EPOCH or not self.epochs or epoch > self.latest:
            return NO_EPOCH, NO_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        higher = bisect_right(self.epochs, epoch)
        if higher == 0:
            return epoch, self.start_offsets[0]
        return self.epochs[higher - 1], self.start_offsets[higher]

    def epoch_for(self, offset: int) -> int:
        """The epoch of the record at ``offset``; -1 when it is older than all entries."""
        found = bisect_right(self.start_offsets, offset) - 1
        return self.epochs[found] if found >= 0 else NO_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """The log now ends at ``end_offset``: removes epochs that start there or later."""
        keep = bisect_left(self.start_offsets, end_offset)
        if keep < len(self.epochs):
            del self.epochs[keep:]
            del self.start_offsets[keep:]
            self.latest = self.epochs[-1] if self.epochs else NO_EPOCH
            self.dirty = True

    def truncate_from_start(self, start_offset: int) -> None:
        """The log now starts at ``start_offset``: the epoch that contains it starts there."""
        covering = bisect_right(self.start_offsets, start_offset) - 1
        if covering >= 0 and (covering > 0 or self.start_offsets[0] != start_offset):
            del self.epochs[:covering]
            del self.start_offsets[:covering]
            self.start_offsets[0] = start_offset
            self.dirty = True

    def clear(self) -> None:
        """Removes all entries."""
        self.dirty = self.dirty or bool(self.epochs)
        self.epochs, self.start_offsets, self.latest = [], [], NO_EPOCH

    def check(self) -> None:
        """Asserts the invariants."""
        assert all(a < b for a, b in zip(self.epochs, self.epochs[1:], strict=False)), self.epochs
        assert all(a < b for a, b in zip(self.start_offsets, self.start_offsets[1:], strict=False)), self.start_offsets
        assert self.latest == (self.epochs[-1] if self.epochs else NO_EPOCH)
