"""A replica's side of replication: what the leader answered to Fetch and FetchSnapshot.

Records are checked whole before any of them is appended: the checksum of each batch, that they follow the log without a gap,
epochs that never fall and are not above the leader's. The next fetch goes out only when they are synced, because it says that
they are. A diverging epoch cuts the log, never below what is committed. A snapshot is fetched piece by piece, and takes the log's
place when it is whole.
"""

from __future__ import annotations

from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.fetch import FetchResponse, PartitionData
from tidelog.protocol.messages.fetch_snapshot import FetchSnapshotResponse
from tidelog.raft import messages
from tidelog.raft.effects import AppendFetched, BeginSnapshot, InstallSnapshot, StoreSnapshotPart
from tidelog.raft.follower_state import FetchingSnapshot, FollowerState
from tidelog.raft.log_shape import LogEnd
from tidelog.raft.quorum import Quorum
from tidelog.raft.snapshots import SnapshotId
from tidelog.raft.voter_history import VoterSets
from tidelog.records.batch import BatchHeader, CorruptBatch, TruncatedBatch, crc_is_valid, iter_headers
from tidelog.records.control import control_type
from tidelog.records.record import iter_records

LARGEST_SNAPSHOT_BYTES = 1 << 34


def fetched(quorum: Quorum, answer: FetchResponse, now_ms: int) -> bool:
    """The leader of our epoch answered without an error. False: it makes no sense, ask again later."""
    partition = messages.fetched_partition(answer.responses, "partition_index")
    if partition is None:
        return False
    state = quorum.following()
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    if diverging.epoch >= 0 or diverging.end_offset >= 0:
        if diverging.epoch < 0 or diverging.end_offset < 0:
            return False
        quorum.truncate(quorum.shape.truncation_for(LogEnd(diverging.epoch, diverging.end_offset)))
    elif snapshot.epoch >= 0 or snapshot.end_offset >= 0:
        if snapshot.epoch < 0 or snapshot.end_offset <= 0:
            return False
        _begin_snapshot(quorum, state, SnapshotId(snapshot.end_offset, snapshot.epoch))
    else:
        data = bytes(partition.records or b"")
        if data and not _append(quorum, data):
            return False
        _take_high_watermark(quorum, partition)
    state.fetched(now_ms, quorum.config.fetch_timeout_ms)
    return True


def _begin_snapshot(quorum: Quorum, state: FollowerState, snapshot_id: SnapshotId) -> None:
    if snapshot_id.offset <= quorum.high_watermark or snapshot_id in quorum.shape.snapshots:
        # What is committed is here already; an older snapshot would take it away.
        return
    state.snapshot = FetchingSnapshot(snapshot_id)
    quorum.effects.add(BeginSnapshot(snapshot_id))


def _append(quorum: Quorum, data: bytes) -> bool:
    view = memoryview(data)
    checked = _checked(quorum, view)
    if not checked:
        return False
    base = quorum.shape.end_offset
    end = checked[-1].position + checked[-1].size
    for header in checked:
        quorum.shape.append(header.leader_epoch, header.base_offset, header.next_offset)
        if header.is_control:
            messages.note_control(quorum.sets, header.base_offset, _control_records(header, view))
    quorum.effects.add(AppendFetched(base, data[:end], quorum.shape.generation))
    return True


def _checked(quorum: Quorum, view: memoryview) -> list[BatchHeader]:
    """The whole batches, when they go on where the log ends; empty when not."""
    headers: list[BatchHeader] = []
    offset, epoch = quorum.shape.end_offset, quorum.shape.last_epoch
    try:
        for header in iter_headers(view):
            follows = header.base_offset == offset and epoch <= header.leader_epoch <= quorum.epoch
            possible = header.next_offset > offset and header.records_count >= 0
            if not follows or not possible or not crc_is_valid(view, header):
                quorum.story.append(f"epoch {quorum.epoch}: a batch at {header.base_offset} does not follow {offset}")
                return []
            if header.is_control:
                # What cannot be read must be found before anything of it is taken over.
                scratch = VoterSets(quorum.sets.voters, quorum.sets.kraft_version, header.base_offset - 1)
                messages.note_control(scratch, header.base_offset, _control_records(header, view))
            headers.append(header)
            offset, epoch = header.next_offset, header.leader_epoch
    except TruncatedBatch:
        # The answer's limit cut the last batch; it comes whole with the next.
        pass
    except CorruptBatch as error:
        quorum.story.append(f"epoch {quorum.epoch}: fetched records are damaged: {error}")
        return []
    return headers


def _control_records(header: BatchHeader, view: memoryview) -> list[tuple[int, bytes | None]]:
    """CorruptBatch when they are not as many as the header says."""
    batch = view[header.position : header.position + header.size]
    records = [(control_type(each.key), each.value) for each in iter_records(batch)]
    if len(records) != header.next_offset - header.base_offset:
        raise CorruptBatch(f"{len(records)} control records at offsets {header.base_offset} to {header.last_offset}")
    return records


def _take_high_watermark(quorum: Quorum, partition: PartitionData) -> None:
    if partition.high_watermark >= 0:
        quorum.raise_high_watermark(min(partition.high_watermark, quorum.shape.end_offset))


def fetched_snapshot(quorum: Quorum, answer: FetchSnapshotResponse, error: ErrorCode, now_ms: int) -> bool:
    """A piece of the snapshot, or the news that it is gone: then the next Fetch tells of another."""
    partition = messages.only_partition(answer, "name")
    state = quorum.following()
    wanted = state.snapshot
    if partition is None or wanted is None:
        return False
    if error in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE):
        state.snapshot = None
        state.fetched(now_ms, quorum.config.fetch_timeout_ms)
        return True
    if error is not ErrorCode.NONE:
        return False
    got = SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    data = bytes(partition.unaligned_records)
    end = wanted.position + len(data)
    if got != wanted.snapshot_id or partition.position != wanted.position or not data:
        return False
    if not end <= partition.size <= LARGEST_SNAPSHOT_BYTES:
        return False
    quorum.effects.add(StoreSnapshotPart(got, wanted.position, data))
    wanted.position = end
    if end == partition.size:
        state.snapshot = None
        quorum.installing = True
        quorum.effects.add(InstallSnapshot(got, end))
    state.fetched(now_ms, quorum.config.fetch_timeout_ms)
    return True
