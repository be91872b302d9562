"""The disk of one simulated voter: a log of batches, a quorum-state file, snapshots; and what a power loss leaves of them.

Synced things stay. Of the batches since the last sync some first ones may stay, and a cut that was not synced may not have
happened. The quorum-state file is replaced whole: while a new one is being written, a power loss leaves the one or the other.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field

from tidelog.raft.log_shape import NOTHING_LOST, LogEnd, LogShape
from tidelog.raft.quorum_state import QuorumState
from tidelog.raft.snapshots import SnapshotId
from tidelog.raft.voter_history import BEFORE_THE_LOG, VoterSets
from tidelog.raft.voters import ReplicaKey, VoterSet
from tidelog.records.batch import iter_headers
from tidelog.records.control import ControlType, control_type, parse_kraft_version, parse_voters, voters_value
from tidelog.records.record import iter_records

_HEAD = struct.Struct(">hi")


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch in the log; ``content`` is what must be equal on all replicas."""

    base_offset: int
    next_offset: int
    epoch: int
    data: bytes


def batches_of(data: bytes) -> list[Batch]:
    """The whole batches in ``data``."""
    view = memoryview(data)
    return [
        Batch(h.base_offset, h.next_offset, h.leader_epoch, bytes(view[h.position : h.position + h.size]))
        for h in iter_headers(view)
    ]


@dataclass(slots=True)
class Disk:
    """``log``: as the process sees it; ``safe``: as it was at the last sync."""

    first_voters: VoterSet
    first_level: int
    log: list[Batch] = field(default_factory=list)
    safe: list[Batch] = field(default_factory=list)
    start: int = 0
    state: QuorumState | None = None
    state_under_way: QuorumState | None = None
    snapshots: dict[SnapshotId, bytes] = field(default_factory=dict)
    lost_end: LogEnd = NOTHING_LOST
    witnesses: tuple[ReplicaKey, ...] = ()
    lost: list[Batch] = field(default_factory=list)
    """What damage took, until the voter says that it has all again."""
    parts: dict[SnapshotId, bytearray] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.log[-1].next_offset if self.log else max((each.offset for each in self.snapshots), default=0)

    def append(self, batches: list[Batch]) -> None:
        assert batches[0].base_offset == self.end, (batches[0].base_offset, self.end)
        self.log.extend(batches)

    def truncate(self, offset: int) -> None:
        while self.log and self.log[-1].next_offset > offset:
            assert self.log[-1].base_offset >= offset, (self.log[-1], offset)
            self.log.pop()

    def sync(self) -> None:
        self.safe = list(self.log)

    def holds(self, offset: int, epoch: int) -> bool:
        """Is the record at ``offset``, of that epoch, safe here? What a snapshot holds is."""
        if any(each.offset > offset for each in self.snapshots):
            return True
        return any(b.base_offset <= offset < b.next_offset and b.epoch == epoch for b in reversed(self.safe))

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches from ``offset`` on, at least one."""
        out = bytearray()
        for batch in self.log:
            if batch.next_offset > offset:
                if out and len(out) + len(batch.data) > max_bytes:
                    break
                out += batch.data
        return bytes(out)

    def start_at(self, snapshot_id: SnapshotId, content: bytes) -> None:
        """A snapshot takes the log's place."""
        self.snapshots = {snapshot_id: content}
        self.log, self.safe, self.start = [], [], snapshot_id.offset
        self.parts.clear()

    def clean(self, keep: SnapshotId) -> None:
        """Older snapshots and the log below ``keep`` go."""
        self.snapshots = {each: content for each, content in self.snapshots.items() if each >= keep}
        self.log = [each for each in self.log if each.next_offset > keep.offset]
        self.safe = [each for each in self.safe if each.next_offset > keep.offset]
        self.start = max(self.start, keep.offset)

    def power_loss(self, rng: random.Random) -> None:
        """What the next start finds."""
        # A sync that was under way while old segments went speaks of them, too.
        self.safe = [each for each in self.safe if each.next_offset > self.start]
        common = 0
        while common < min(len(self.log), len(self.safe)) and self.log[common] is self.safe[common]:
            common += 1
        cut = common < len(self.safe)
        if cut and rng.random() < 0.5:
            left = list(self.safe)
        else:
            rest = len(self.log) - common
            left = self.log[: common + rng.randint(0, rest)]
        if not cut:
            assert len(left) >= len(self.safe)
        self.log, self.safe = left, list(left)
        if self.state_under_way is not None and rng.random() < 0.5:
            self.state = self.state_under_way
        self.state_under_way = None
        self.parts.clear()

    @property
    def log_end(self) -> LogEnd:
        """As Raft compares it."""
        newest = max(self.snapshots, default=None)
        return LogEnd(self.log[-1].epoch if self.log else 0 if newest is None else newest.epoch, self.end)

    def lose_log(self) -> None:
        """A new, empty disk in the place of the log; the quorum-state file was kept."""
        self.log, self.safe, self.start = [], [], 0
        self.snapshots.clear()
        self.parts.clear()

    def shape(self) -> LogShape:
        newest = max(self.snapshots, default=None)
        if newest is not None and newest.offset > (self.log[-1].next_offset if self.log else self.start):
            self.log, self.safe, self.start = [], [], newest.offset
        epochs: list[tuple[int, int]] = []
        for batch in self.log:
            if not epochs or batch.epoch > epochs[-1][0]:
                epochs.append((batch.epoch, batch.base_offset))
        if not epochs and newest is not None:
            epochs = [(newest.epoch, newest.offset)]
        return LogShape(
            start_offset=self.start,
            end_offset=self.end,
            epochs=epochs,
            snapshots=[(each, len(content)) for each, content in self.snapshots.items()],
        )

    def voter_sets(self) -> VoterSets:
        """From the newest snapshot, then the log."""
        newest = max(self.snapshots, default=None)
        if newest is None:
            sets = VoterSets(self.first_voters, self.first_level, BEFORE_THE_LOG)
        else:
            level, voters, _ = decode_snapshot(self.snapshots[newest])
            sets = VoterSets(voters, level, newest.offset - 1)
        for batch in self.log:
            if batch.next_offset > sets.offset + 1:
                note_batch(sets, batch)
        return sets


def note_batch(sets: VoterSets, batch: Batch) -> None:
    """What a batch says of the voters."""
    header = next(iter_headers(batch.data))
    if not header.is_control:
        return
    for record in iter_records(memoryview(batch.data)):
        if record.offset <= sets.offset:
            continue
        if control_type(record.key) == ControlType.KRAFT_VERSION:
            sets.note_kraft_version(record.offset, parse_kraft_version(record.value))
        elif control_type(record.key) == ControlType.KRAFT_VOTERS:
            sets.note_voters(record.offset, VoterSet.of(parse_voters(record.value)))


def encode_snapshot(level: int, voters: VoterSet, digests: list[bytes]) -> bytes:
    """The content of a simulated snapshot: the voters, and a digest of each batch below it."""
    said = voters_value(voters.voters)
    return _HEAD.pack(level, len(said)) + said + b"".join(digests)


def decode_snapshot(content: bytes) -> tuple[int, VoterSet, bytes]:
    level, size = _HEAD.unpack_from(content)
    said = content[_HEAD.size : _HEAD.size + size]
    return level, VoterSet.of(parse_voters(said)), content[_HEAD.size + size :]
