"""A follower's side of replication: the leader's answers to Fetch and FetchSnapshot.

All records of an answer are checked before any is appended: the checksum of each batch, no gap to the log, epochs that never
decrease and do not exceed the leader's. The next fetch is sent only when they are synced, because it confirms that they are. A
diverging epoch cuts the log, never below the high watermark. A snapshot is fetched part by part and replaces the log when it is
complete.
"""

from __future__ import annotations

from typing import NamedTuple

from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.fetch import FetchResponse
from tidelog.protocol.messages.fetch_snapshot import FetchSnapshotResponse
from tidelog.protocol.messages.fetch_snapshot import ResponsePartitionSnapshot as PartitionSnapshot
from tidelog.raft import messages
from tidelog.raft.effects import BeginSnapshot, ForgetLoss, StoreSnapshotPart
from tidelog.raft.follower_state import FetchingSnapshot, FollowerState
from tidelog.raft.log_shape import NOTHING_LOST, LogEnd
from tidelog.raft.lost_records import LostRecords
from tidelog.raft.quorum import Quorum
from tidelog.raft.raft_log import FetchedBatch
from tidelog.raft.snapshots import SnapshotId
from tidelog.raft.voter_history import VoterSets, VoterSetsView, note_control
from tidelog.records.batch import BatchHeader, CorruptBatch, TruncatedBatch, crc_is_valid, iter_headers
from tidelog.records.control import control_type
from tidelog.records.record import iter_records

LARGEST_SNAPSHOT_BYTES = 1 << 34


def fetched(quorum: Quorum, answer: FetchResponse, now_ms: int) -> bool:
    """An answer without an error from the leader of our epoch. False: it makes no sense, ask again later."""
    partition = messages.fetched_partition(answer.responses, "partition_index")
    state, log = quorum.state, quorum.log
    if partition is None or not isinstance(state, FollowerState):
        return False
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    if diverging.epoch >= 0 or diverging.end_offset >= 0:
        if diverging.epoch < 0 or diverging.end_offset < 0:
            return False
        at = log.shape.truncation_for(LogEnd(diverging.epoch, diverging.end_offset))
        log.truncate(at, quorum.leader_id, quorum.epoch)
    elif snapshot.epoch >= 0 or snapshot.end_offset >= 0:
        if snapshot.epoch < 0 or snapshot.end_offset <= 0:
            return False
        snapshot_id = SnapshotId(snapshot.end_offset, snapshot.epoch)
        # Committed records are already here; an older snapshot would remove them.
        if snapshot_id.offset > log.high_watermark and snapshot_id not in log.shape.snapshots:
            state = state._replace(snapshot=FetchingSnapshot(snapshot_id))
            quorum.out.add(BeginSnapshot(snapshot_id))
    else:
        data = bytes(partition.records or b"")
        if data and not _append(quorum, data):
            return False
        if partition.high_watermark >= 0:
            log.raise_high_watermark(min(partition.high_watermark, log.shape.end_offset))
        if quorum.lost.end != NOTHING_LOST and caught_up(data, partition.high_watermark, log.shape.end_offset):
            quorum.lost = LostRecords()
            quorum.out.add(ForgetLoss())
            quorum.note("has everything again that it had before the damage")
    quorum.amend(state.fetched(now_ms, quorum.config.fetch_timeout_ms))
    return True


def caught_up(data: bytes, high_watermark: int, end_offset: int) -> bool:
    """Whether an answer says that the log was as long as the leader's: a leader hands out all that it has, committed or not.

    That ends the mending of a damaged log. Whatever this replica confirmed before, and a majority with it, is in the log of each
    leader of this epoch or a later one; the log that was compared is on the disk, as a follower does not fetch before that.
    """
    return not data and high_watermark <= end_offset


def _append(quorum: Quorum, data: bytes) -> bool:
    checked = check_fetched(memoryview(data), quorum.log.shape.end, quorum.epoch, quorum.log.sets)
    if checked.wrong:
        quorum.note(checked.wrong)
    if not checked.batches:
        return False
    quorum.log.append_fetched(checked.batches, data[: checked.size])
    return True


class Checked(NamedTuple):
    """The whole batches of an answer and their size in bytes; or, without any, what is ``wrong``."""

    batches: tuple[FetchedBatch, ...] = ()
    size: int = 0
    wrong: str = ""


def check_fetched(view: memoryview, end: LogEnd, own_epoch: int, sets: VoterSetsView) -> Checked:
    """The batches that continue the log. ``own_epoch``: no batch may have a later one."""
    batches: list[FetchedBatch] = []
    offset, epoch, size = end.offset, end.epoch, 0
    try:
        for header in iter_headers(view):
            follows = header.base_offset == offset and epoch <= header.leader_epoch <= own_epoch
            possible = header.next_offset > offset and header.records_count >= 0
            if not follows or not possible or not crc_is_valid(view, header):
                return Checked(wrong=f"a batch at {header.base_offset} does not follow {offset}")
            control: tuple[tuple[int, bytes | None], ...] = ()
            if header.is_control:
                # Unreadable data must be found before any of it is appended.
                control = _control_records(header, view)
                scratch = VoterSets(sets.voters, sets.kraft_version, header.base_offset - 1)
                note_control(scratch, header.base_offset, control)
            offset, epoch, size = header.next_offset, header.leader_epoch, header.position + header.size
            batches.append(FetchedBatch(header.base_offset, offset, epoch, control))
    except TruncatedBatch:
        # The answer's size limit cut the last batch; the next fetch returns it whole.
        pass
    except CorruptBatch as error:
        return Checked(wrong=f"fetched records are damaged: {error}")
    return Checked(tuple(batches), size)


def _control_records(header: BatchHeader, view: memoryview) -> tuple[tuple[int, bytes | None], ...]:
    """CorruptBatch when their number differs from the header."""
    batch = view[header.position : header.position + header.size]
    records = tuple((control_type(each.key), each.value) for each in iter_records(batch))
    if len(records) != header.next_offset - header.base_offset:
        raise CorruptBatch(f"{len(records)} control records at offsets {header.base_offset} to {header.last_offset}")
    return records


def fetched_snapshot(quorum: Quorum, answer: FetchSnapshotResponse, error: ErrorCode, now_ms: int) -> bool:
    """A part of the snapshot, or an error because it is gone: then the next Fetch names another."""
    partition = messages.only_partition(answer, "name")
    state = quorum.state
    if partition is None or not isinstance(state, FollowerState) or state.snapshot is None:
        return False
    wanted: FetchingSnapshot | None = None
    if error not in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE):
        part = next_part(state.snapshot, partition) if error is ErrorCode.NONE else None
        if part is None:
            return False
        quorum.out.add(part)
        end = part.position + len(part.data)
        wanted = state.snapshot._replace(position=end) if end < partition.size else None
        if wanted is None:
            quorum.log.install(part.snapshot_id, end)
    quorum.amend(state._replace(snapshot=wanted).fetched(now_ms, quorum.config.fetch_timeout_ms))
    return True


def next_part(wanted: FetchingSnapshot, partition: PartitionSnapshot) -> StoreSnapshotPart | None:
    """The requested part; None when the answer holds anything else."""
    got = SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    data = bytes(partition.unaligned_records)
    if got != wanted.snapshot_id or partition.position != wanted.position or not data:
        return None
    fits = wanted.position + len(data) <= partition.size <= LARGEST_SNAPSHOT_BYTES
    return StoreSnapshotPart(got, wanted.position, data) if fits else None
