"""RaftLog: what a replica knows of its metadata log, and the only place that changes it: its shape, what the records in it say
of the voters, and how far it is committed.

Each change makes the effect that does the same to the bytes. Which change is right is decided elsewhere: ``replication`` for
what a leader sends, ``membership`` for voters, ``Quorum`` for the records that begin an epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    """The quorum has lost what was committed, or says what cannot be: this replica must not go on."""


@dataclass(frozen=True, slots=True)
class FetchedBatch:
    """A batch that was checked. ``control``: its control records, empty for one of data."""

    base_offset: int
    next_offset: int
    epoch: int
    control: tuple[tuple[int, bytes | None], ...] = ()


class RaftLog:
    """See the module."""

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
        """-1 until this process knows of one."""
        return self._high_watermark

    @property
    def installing(self) -> bool:
        """A snapshot is being put in the log's place: until that is done there is nothing to campaign with."""
        return self._installing

    @property
    def is_synced(self) -> bool:
        """Whether this replica's disk has all of it."""
        return self._shape.synced == self._shape.end_offset

    def append_control(self, epoch: int, records: Sequence[tuple[ControlType, bytes]]) -> int:
        """As the leader of ``epoch``, one batch; the last offset. What it says of the voters counts from here on."""
        base = self._shape.end_offset
        self._shape.append(epoch, base, base + len(records))
        self._effects.add(AppendControl(base, epoch, tuple(records), self._shape.generation))
        note_control(self._sets, base, records)
        return base + len(records) - 1

    def append_fetched(self, batches: Sequence[FetchedBatch], data: bytes) -> None:
        """What the leader sent, after it was checked."""
        base = self._shape.end_offset
        for each in batches:
            self._shape.append(each.epoch, each.base_offset, each.next_offset)
            note_control(self._sets, each.base_offset, each.control)
        self._effects.add(AppendFetched(base, data, self._shape.generation))

    def appended(self, epoch: int, next_offset: int) -> None:
        """The controller put records of ``epoch`` there, up to ``next_offset``."""
        self._shape.append(epoch, self._shape.end_offset, next_offset)

    def truncate(self, offset: int, leader_id: int, epoch: int) -> None:
        """Cut at ``offset``, as the leader of ``epoch`` asks. QuorumFault when committed records would go."""
        if offset < self._high_watermark:
            raise QuorumFault(
                f"the leader {leader_id} of epoch {epoch} asks to cut the metadata log at {offset}, below what "
                f"is committed ({self._high_watermark}): a majority of the voters has lost its log. Restore it before going on"
            )
        self._shape.truncate(offset)
        self._sets.truncate(offset)
        self._effects.add(Truncate(offset, self._shape.generation))

    def raise_high_watermark(self, offset: int) -> None:
        """It never goes back."""
        if offset > self._high_watermark:
            self._high_watermark = offset
            self._effects.add(HighWatermarkMoved(offset))

    def was_synced(self, end_offset: int, generation: int) -> bool:
        """Takes the report of a sync; False when the log was cut since."""
        return self._shape.was_synced(end_offset, generation)

    # snapshots

    def install(self, snapshot_id: SnapshotId, size: int) -> None:
        """All of a fetched snapshot is there: it is to take the log's place."""
        self._installing = True
        self._effects.add(InstallSnapshot(snapshot_id, size))

    def installed(self, snapshot_id: SnapshotId, size: int, kraft_version: int, voters: VoterSet | None) -> None:
        """It has taken it. ``voters``: what it says of them."""
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
        """Old snapshots, and the log below ``start_offset``, are gone."""
        self._shape.cleaned(start_offset, kept)

    def check(self) -> None:
        """The invariants."""
        self._shape.check()
        assert self._high_watermark <= self._shape.end_offset, (self._high_watermark, self._shape.end_offset)
