"""Applies the Raft machine's effects to the metadata log, and reads from an opened log what the machine needs.

The runner of the machine calls these functions in the order of the effects; no flush job may be in progress when the end of the
log is cut or replaced.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.metadata.records import MetadataLogError
from tidelog.model.errors import ErrorCode, KafkaError, StorageFailure
from tidelog.protocol.messages.fetch_snapshot import FetchSnapshotResponse, ResponsePartitionSnapshot
from tidelog.raft import renewal
from tidelog.raft.effects import AppendControl, AppendFetched, ReplySnapshotPart, Truncate
from tidelog.raft.log_shape import LogShape
from tidelog.raft.metadata_log import MetadataLog
from tidelog.raft.snapshots import PART_SUFFIX, READ_ONLY, Snapshot, SnapshotId, read_snapshot
from tidelog.raft.voter_history import BEFORE_THE_LOG, VoterSets, note_control
from tidelog.raft.voters import VoterSet
from tidelog.records.batch import CorruptBatch, crc_is_valid
from tidelog.records.control import ControlType, control_type, parse_voters
from tidelog.records.record import iter_records
from tidelog.storage.producer_replay import iter_batches


def log_shape(log: MetadataLog) -> LogShape:
    """Start and end of the log, its epochs and its snapshots."""
    entries = [(epoch, start) for epoch, start in log.log.leader_epochs.entries() if start <= log.end_offset]
    sizes = [(each, log.fs.stat(f"{log.dir}/{each.file_name}").size) for each in log.snapshots]
    return LogShape(start_offset=log.log.log_start_offset, end_offset=log.end_offset, epochs=entries, snapshots=sizes)


def voter_sets(log: MetadataLog, snapshot: tuple[SnapshotId, Snapshot] | None, configured: VoterSet) -> VoterSets:
    """The voter sets, from the newest snapshot (or the 0-0 checkpoint, or the configuration) and the whole log. Blocks."""
    start = 0
    sets = VoterSets(configured, 0)
    if snapshot is not None and snapshot[1].voters is not None:
        snapshot_id, content = snapshot
        offset = BEFORE_THE_LOG if snapshot_id.is_bootstrap else snapshot_id.offset - 1
        assert content.voters is not None
        sets = VoterSets(content.voters, content.kraft_version or 0, offset)
    if snapshot is not None:
        start = snapshot[0].offset
    for header, records in log.batches_from(max(start, log.log.log_start_offset)):
        if header.is_control:
            note_control(sets, header.base_offset, [(control_type(each.key), each.value) for each in records])
    return sets


def voters_behind_damage(log: MetadataLog) -> list[VoterSet]:
    """The voter sets in a damaged snapshot, and in and behind the damaged range, as far as they can be read. A wrong
    checksum does not keep a set out, so none of them is more than a hint. Blocks."""
    found: list[VoterSet] = []
    damage = log.damaged
    for each in log.unreadable:
        file = log.fs.open(f"{log.dir}/{each.file_name}", write=False)
        for header, batch in iter_batches(file, 0, file.size()):
            found += _voters_in(batch) if header.is_control else ()
        file.close()
    for segment in log.log.segments:
        position, in_file = 0, damage is not None and segment.path(".log") == damage.path
        if damage is None or (segment.base_offset < damage.rotten.first_offset and not in_file):
            continue
        if in_file:
            position = damage.rotten.position
        while position < segment.size:
            # No batch that is damaged reaches past its range, whatever length it claims.
            until = min((each.end for each in segment.rotten if each.end > position), default=segment.size)
            for header, batch in iter_batches(segment.file, position, until):
                found += _voters_in(batch) if header.is_control else ()
            position = until
    return found


def may_hide_voters(log: MetadataLog) -> bool:
    """Whether a voter set that cannot be read may have been in the damaged range. A batch with a wrong checksum counts, unless it
    reads as records without keys: those of a control batch have one. Blocks."""
    damage = log.damaged
    assert damage is not None
    position, end = damage.rotten.position, damage.rotten.end
    file = next((each.file for each in log.log.segments if each.path(".log") == damage.path), None)
    if file is None or position == end:
        return True
    for header, batch in iter_batches(file, position, end):
        if header.is_control or _may_have_keys(batch):
            return True
        position += header.size
    return position < end


def last_voters(log: MetadataLog, before: VoterSet) -> VoterSet | None:
    """The latest voter set of the whole log, its damaged part included; None where that is not certain. ``before``: the set
    before the damage. A batch with a wrong checksum holds no voters if it reads as records without keys. Blocks."""
    damage = log.damaged
    assert damage is not None
    rotten, found = damage.rotten, before
    if log.unreadable or rotten.position == rotten.end:
        return None
    expected = -1
    for segment in log.log.segments:
        in_file = segment.path(".log") == damage.path
        if segment.base_offset < rotten.first_offset and not in_file:
            continue
        position = rotten.position if in_file else 0
        for header, batch in iter_batches(segment.file, position, segment.size):
            if expected not in (-1, header.base_offset):
                return None
            if crc_is_valid(batch, header):
                found = (_voters_in(batch) or [found])[-1] if header.is_control else found
            elif header.is_control or _may_have_keys(batch):
                return None
            expected = rotten.next_offset if expected < 0 else header.next_offset
            position += header.size
        if position < segment.size:
            return None
    return found if expected >= log.end_before_damage.offset else None


def _may_have_keys(batch: memoryview) -> bool:
    try:
        return any(each.key is not None for each in iter_records(batch))
    except CorruptBatch:
        return True


def _voters_in(batch: memoryview) -> list[VoterSet]:
    try:
        records = [(control_type(each.key), each.value) for each in iter_records(batch)]
        return [VoterSet.of(parse_voters(value)) for kind, value in records if kind == ControlType.KRAFT_VOTERS]
    except CorruptBatch:
        return []


def append_control(log: MetadataLog, effect: AppendControl, now_ms: int) -> None:
    """Appends the leader's own control records. StorageFailure when the disk fails."""
    assert log.end_offset == effect.base_offset, (log.end_offset, effect.base_offset)
    log.append_control(effect.records, effect.epoch, now_ms)


def append_fetched(log: MetadataLog, effect: AppendFetched, now_ms: int) -> None:
    """Appends batches from the leader, which the machine has checked. StorageFailure when the disk fails."""
    assert log.end_offset == effect.base_offset, (log.end_offset, effect.base_offset)
    highest = (1 << 31) - 1
    try:
        log.log.append_as_follower(memoryview(effect.data), highest, now_ms)
    except KafkaError as error:
        raise StorageFailure(log.dir, f"batches from the quorum's leader do not fit: {error}") from error


def truncate(log: MetadataLog, effect: Truncate, now_ms: int) -> None:
    """Cuts the end of the log. Blocks for a sync."""
    log.about_to_cut(effect.offset)
    log.log.truncate_to(effect.offset, now_ms)
    assert log.end_offset == effect.offset, (log.end_offset, effect.offset)


class IncomingSnapshot:
    """A snapshot being fetched, in a ``.part`` file until it is complete. Every method blocks and may raise OSError."""

    def __init__(self, log: MetadataLog, snapshot_id: SnapshotId) -> None:
        self.id = snapshot_id
        self._fs = log.fs
        self._dir = log.dir
        self._path = f"{log.dir}/{snapshot_id.file_name}"
        self._file = self._fs.open(self._path + PART_SUFFIX, create=True)
        self._file.truncate(0)

    def write(self, position: int, data: bytes) -> None:
        self._file.write(position, data)

    def finish(self) -> Snapshot | None:
        """Syncs the file under its name and reads it; None when it is damaged and was deleted."""
        self._file.sync()
        self._file.close()
        part = self._path + PART_SUFFIX
        try:
            snapshot = read_snapshot(self._fs, part)
        except MetadataLogError:
            self._fs.remove(part)
            return None
        self._fs.set_mode(part, READ_ONLY)
        self._fs.rename(part, self._path)
        self._fs.sync_dir(self._dir)
        return snapshot

    def close(self) -> None:
        self._file.close()


def snapshot_part(log: MetadataLog, effect: ReplySnapshotPart) -> FetchSnapshotResponse:
    """Adds the bytes to the answer. Blocks; may raise OSError.

    SNAPSHOT_NOT_FOUND when the file is damaged, or was deleted since the machine decided: the log was cleaned, or restarted at
    another snapshot.
    """
    topic = effect.response.topics[0]
    try:
        if renewal.look_at(log, effect.snapshot_id) is not None:
            raise FileNotFoundError(effect.snapshot_id.file_name)
        file = log.fs.open(f"{log.dir}/{effect.snapshot_id.file_name}", write=False)
    except FileNotFoundError:
        leader = topic.partitions[0].current_leader
        topic.partitions = [ResponsePartitionSnapshot(error_code=ErrorCode.SNAPSHOT_NOT_FOUND, current_leader=leader)]
        return effect.response
    try:
        topic.partitions[0].unaligned_records = file.read(effect.position, effect.max_bytes)
    finally:
        file.close()
    return effect.response


def start_at_snapshot(log: MetadataLog, snapshot_id: SnapshotId, now_ms: int) -> None:
    """Empties the log and continues it after an existing snapshot; older snapshots are deleted. Blocks."""
    log.about_to_cut(0)
    log.start_after(snapshot_id, now_ms)
    for old in _others(log, snapshot_id):
        if log.fs.exists(f"{log.dir}/{old.file_name}"):
            log.fs.remove(f"{log.dir}/{old.file_name}")
    log.snapshots, log.unreadable = [snapshot_id], {}


def _others(log: MetadataLog, kept: SnapshotId) -> Iterator[SnapshotId]:
    return (each for each in dict.fromkeys((*log.snapshots, *log.unreadable)) if each != kept)
