"""LogShape: what Raft needs to know about the log: start, end, epochs and snapshots.

It holds no bytes. The machine changes the shape when it decides; the runner then applies the same change to the log, in the same
order. Each change has a ``generation``: a report about synced data counts only for the generation it was written in, because a
sync that was in progress when the log was cut does not cover what was written after the cut.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple, Protocol

from tidelog.raft.snapshots import SnapshotId


class LogEnd(NamedTuple):
    """Compared as Raft compares logs: by the epoch of the last record, then by the end offset."""

    epoch: int
    offset: int


NOTHING_LOST = LogEnd(0, 0)
"""The end that every log reaches."""


class Fit(Enum):
    """How a replica's log relates to this one."""

    VALID = "valid"
    DIVERGING = "diverging"
    SNAPSHOT = "snapshot"


class Fitness(NamedTuple):
    """``at``: where the logs diverge (DIVERGING), or the snapshot to start with (SNAPSHOT)."""

    fit: Fit
    at: LogEnd


class ShapeView(Protocol):
    """A read-only ``LogShape``."""

    @property
    def start_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def synced(self) -> int: ...
    @property
    def generation(self) -> int: ...
    @property
    def snapshots(self) -> Mapping[SnapshotId, int]: ...
    @property
    def end(self) -> LogEnd: ...
    @property
    def last_epoch(self) -> int: ...
    @property
    def newest_snapshot(self) -> SnapshotId | None: ...
    def fitness(self, offset: int, epoch: int) -> Fitness: ...
    def truncation_for(self, diverging: LogEnd) -> int: ...


class LogShape:
    """The mutable shape, changed only by ``RaftLog``."""

    def __init__(
        self,
        *,
        start_offset: int = 0,
        end_offset: int = 0,
        epochs: Iterable[tuple[int, int]] = (),
        snapshots: Iterable[tuple[SnapshotId, int]] = (),
    ) -> None:
        """``epochs``: (epoch, its first offset), ascending; ``snapshots``: (id, size in bytes), without the 0-0 checkpoint."""
        self._start_offset = start_offset
        self._end_offset = end_offset
        self._snapshots: dict[SnapshotId, int] = dict(sorted(each for each in snapshots if not each[0].is_bootstrap))
        self._generation = 0
        self._synced = end_offset
        self._epochs: list[int] = []
        self._starts: list[int] = []
        for epoch, start in epochs:
            self._note(epoch, start)

    @property
    def start_offset(self) -> int:
        return self._start_offset

    @property
    def end_offset(self) -> int:
        return self._end_offset

    @property
    def synced(self) -> int:
        """Everything below is on this replica's disk."""
        return self._synced

    @property
    def generation(self) -> int:
        return self._generation

    @property
    def snapshots(self) -> Mapping[SnapshotId, int]:
        """Their sizes in bytes, the oldest first."""
        return self._snapshots

    @property
    def end(self) -> LogEnd:
        """The end of the last record; epoch 0 for an empty log."""
        return LogEnd(self.last_epoch, self._end_offset)

    @property
    def last_epoch(self) -> int:
        if self._epochs:
            return self._epochs[-1]
        newest = self.newest_snapshot
        return newest.epoch if newest is not None else 0

    @property
    def newest_snapshot(self) -> SnapshotId | None:
        return next(reversed(self._snapshots), None)

    @property
    def oldest_snapshot(self) -> SnapshotId | None:
        return next(iter(self._snapshots), None)

    def append(self, epoch: int, first_offset: int, next_offset: int) -> None:
        """Appends records of ``epoch``."""
        assert first_offset == self._end_offset, (first_offset, self._end_offset)
        assert next_offset > first_offset, (first_offset, next_offset)
        assert epoch >= self.last_epoch, (epoch, self.last_epoch)
        self._note(epoch, first_offset)
        self._end_offset = next_offset

    def _note(self, epoch: int, start: int) -> None:
        if not self._epochs or epoch > self._epochs[-1]:
            while self._starts and self._starts[-1] >= start:
                # An epoch without records here: a snapshot ended with it.
                self._epochs.pop()
                self._starts.pop()
            self._epochs.append(epoch)
            self._starts.append(start)

    def truncate(self, offset: int) -> None:
        """Removes everything at or above ``offset``."""
        assert self._start_offset <= offset <= self._end_offset, (self._start_offset, offset, self._end_offset)
        self._generation += 1
        self._end_offset = offset
        self._synced = min(self._synced, offset)
        while self._starts and self._starts[-1] >= offset:
            self._starts.pop()
            self._epochs.pop()

    def start_at(self, snapshot_id: SnapshotId, size: int) -> None:
        """Empties the log and continues after a snapshot that is safe."""
        self._generation += 1
        self._snapshots = {snapshot_id: size}
        self._start_offset = self._end_offset = self._synced = snapshot_id.offset
        self._epochs, self._starts = [snapshot_id.epoch], [snapshot_id.offset]

    def snapshot_written(self, snapshot_id: SnapshotId, size: int) -> None:
        """Records a local snapshot."""
        self._snapshots = dict(sorted([*self._snapshots.items(), (snapshot_id, size)]))

    def cleaned(self, start_offset: int, kept: Iterable[SnapshotId]) -> None:
        """The log was cleaned: it starts at ``start_offset``, and only these snapshots are left."""
        wanted = list(kept)
        self._snapshots = {each: size for each, size in self._snapshots.items() if each in wanted}
        self._start_offset = max(self._start_offset, start_offset)
        while len(self._starts) > 1 and self._starts[1] <= self._start_offset:
            del self._starts[0], self._epochs[0]
        if self._starts and self._starts[0] < self._start_offset:
            self._starts[0] = self._start_offset

    def was_synced(self, end_offset: int, generation: int) -> bool:
        """Records a sync; False when the log was cut after the synced data was written."""
        if generation != self._generation:
            return False
        assert end_offset <= self._end_offset, (end_offset, self._end_offset)
        self._synced = max(self._synced, end_offset)
        return True

    def end_of(self, epoch: int) -> LogEnd:
        """The largest epoch up to ``epoch`` with records here, and its end offset."""
        at = bisect_right(self._epochs, epoch)
        if at == 0:
            oldest = self.oldest_snapshot
            if oldest is not None and oldest.offset == self._start_offset:
                return LogEnd(oldest.epoch, self._start_offset)
            return LogEnd(0, self._start_offset) if not self._starts else LogEnd(epoch, self._starts[0])
        end = self._starts[at] if at < len(self._starts) else self._end_offset
        return LogEnd(self._epochs[at - 1], end)

    def fitness(self, offset: int, epoch: int) -> Fitness:
        """Whether a replica whose log ends at ``offset``, with a last record of ``epoch``, can continue with this log.

        An empty replica gets the newest snapshot, if there is one, rather than a long log.
        """
        newest, oldest = self.newest_snapshot, self.oldest_snapshot
        if newest is not None and offset == 0:
            return Fitness(Fit.SNAPSHOT, LogEnd(newest.epoch, newest.offset))
        if self._start_offset == 0 and offset == 0:
            return Fitness(Fit.VALID, LogEnd(0, 0))
        if newest is not None and oldest is not None and self._needs_snapshot(oldest, offset, epoch):
            return Fitness(Fit.SNAPSHOT, LogEnd(newest.epoch, newest.offset))
        end = self.end_of(epoch)
        if end.epoch != epoch or end.offset < offset:
            return Fitness(Fit.DIVERGING, end)
        return Fitness(Fit.VALID, LogEnd(epoch, offset))

    def _needs_snapshot(self, oldest: SnapshotId, offset: int, epoch: int) -> bool:
        if offset < self._start_offset:
            return True
        if oldest.offset != self._start_offset:
            return False
        return epoch < oldest.epoch or (offset == self._start_offset and epoch != oldest.epoch)

    def truncation_for(self, diverging: LogEnd) -> int:
        """Where to cut this log when a leader has ``diverging.epoch`` only up to ``diverging.offset``."""
        mine = self.end_of(diverging.epoch)
        if mine.epoch == diverging.epoch:
            return max(self._start_offset, min(mine.offset, diverging.offset))
        return max(self._start_offset, mine.offset)

    def check(self) -> None:
        """Asserts the invariants."""
        assert self._start_offset <= self._synced <= self._end_offset, (self._start_offset, self._synced, self._end_offset)
        assert self._epochs == sorted(set(self._epochs)), self._epochs
        assert self._starts == sorted(set(self._starts)), self._starts
        assert not self._starts or self._starts[-1] <= self._end_offset, (self._starts, self._end_offset)
