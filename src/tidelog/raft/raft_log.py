"""RaftLog: a replica's knowledge of its metadata log, and the only place that changes it: shape, voter sets and high
watermark.

Each change emits the effect that changes the bytes in the same way. The decisions are elsewhere: ``follower_fetch`` for records
from a leader, ``voter_changes`` for voters, ``Quorum`` for the records that begin an epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidelog.raft.effects import (
    AppendControl,
    AppendFetched,
    Effects,
    HighWatermarkMoved,
    InstallSnapshot,
    Truncate,
)
from tidelog.raft.log_shape import LogShape, ShapeView
from tidelog.raft.snapshots import SnapshotId
from tidelog.raft.voter_history import VoterSets, VoterSetsView, note_control
from tidelog.raft.voters import VoterSet
from tidelog.records.control import ControlType


class QuorumFault(Exception):
    """The quorum has lost committed records, or contradicts itself: this replica must stop."""


class FetchedBatch(NamedTuple):
    """A checked batch. ``control``: its control records, empty for a data batch."""

    base_offset: int
    next_offset: int
    epoch: int
    control: tuple[tuple[int, bytes | None], ...] = ()


class RaftLog:
    """Owns its fields; other modules read them through views."""

    def __init__(self, shape: LogShape, sets: VoterSets, effects: Effects) -> None:
        self._shape = shape
        self._sets = sets
        self._effects = effects
        self._high_watermark = -1
        self._installing = False

    @property
    def shape(self) -> ShapeView:
        return self._shape

    @property
    def sets(self) -> VoterSetsView:
        return self._sets

    @property
    def voters(self) -> VoterSet:
        """The latest set in the log, committed or not."""
        return self._sets.voters

    @property
    def high_watermark(self) -> int:
        """-1 until this process knows one."""
        return self._high_watermark

    @property
    def installing(self) -> bool:
        """A snapshot is replacing the log; until that is done this replica cannot campaign."""
        return self._installing

    @property
    def is_synced(self) -> bool:
        """Whether everything is on this replica's disk."""
        return self._shape.synced == self._shape.end_offset

    def append_control(self, epoch: int, records: Sequence[tuple[ControlType, bytes]]) -> int:
        """Appends one control batch as the leader of ``epoch``; returns the last offset. Its voter records take effect here."""
        base = self._shape.end_offset
        self._shape.append(epoch, base, base + len(records))
        self._effects.add(AppendControl(base, epoch, tuple(records), self._shape.generation))
        note_control(self._sets, base, records)
        return base + len(records) - 1

    def append_fetched(self, batches: Sequence[FetchedBatch], data: bytes) -> None:
        """Appends checked batches from the leader."""
        base = self._shape.end_offset
        for each in batches:
            self._shape.append(each.epoch, each.base_offset, each.next_offset)
            note_control(self._sets, each.base_offset, each.control)
        self._effects.add(AppendFetched(base, data, self._shape.generation))

    def appended(self, epoch: int, next_offset: int) -> None:
        """The controller appended records of ``epoch`` up to ``next_offset``."""
        self._shape.append(epoch, self._shape.end_offset, next_offset)

    def truncate(self, offset: int, leader_id: int, epoch: int) -> None:
        """Cuts at ``offset``, as the leader of ``epoch`` demands. QuorumFault when committed records would be lost."""
        if offset < self._high_watermark:
            raise QuorumFault(
                f"the leader {leader_id} of epoch {epoch} asks to cut the metadata log at {offset}, below what "
                f"is committed ({self._high_watermark}): a majority of the voters has lost its log. Restore it before going on"
            )
        self._shape.truncate(offset)
        self._sets.truncate(offset)
        self._effects.add(Truncate(offset, self._shape.generation))

    def raise_high_watermark(self, offset: int) -> None:
        """It never decreases."""
        if offset > self._high_watermark:
            self._high_watermark = offset
            self._effects.add(HighWatermarkMoved(offset))

    def was_synced(self, end_offset: int, generation: int) -> bool:
        """Records a sync; False when the log was cut since."""
        return self._shape.was_synced(end_offset, generation)

    # snapshots

    def install(self, snapshot_id: SnapshotId, size: int) -> None:
        """A fetched snapshot is complete and replaces the log."""
        self._installing = True
        self._effects.add(InstallSnapshot(snapshot_id, size))

    def installed(self, snapshot_id: SnapshotId, size: int, kraft_version: int, voters: VoterSet | None) -> None:
        """It has replaced the log. ``voters``: the voter set in it."""
        assert self._installing, snapshot_id
        self._installing = False
        self._shape.start_at(snapshot_id, size)
        self._sets.reset(snapshot_id.offset - 1, voters or self._sets.voters, kraft_version)
        self.raise_high_watermark(snapshot_id.offset)

    def install_refused(self) -> None:
        """It was damaged."""
        self._installing = False

    def snapshot_written(self, snapshot_id: SnapshotId, size: int) -> None:
        """A snapshot of this replica's own image."""
        assert snapshot_id.offset <= self._high_watermark, snapshot_id
        self._shape.snapshot_written(snapshot_id, size)

    def cleaned(self, start_offset: int, kept: list[SnapshotId]) -> None:
        """Old snapshots, and the log below ``start_offset``, were deleted."""
        self._shape.cleaned(start_offset, kept)

    def check(self) -> None:
        """Asserts the invariants."""
        self._shape.check()
        assert self._high_watermark <= self._shape.end_offset, (self._high_watermark, self._shape.end_offset)
