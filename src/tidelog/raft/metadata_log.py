"""The ``__cluster_metadata-0`` log of one voter: what Raft appends and commits, on top of storage's UnifiedLog.

Records go in as one batch per atomic group. Nothing is committed before it is synced; the recovery of storage cuts a torn
tail at the next start. Snapshots live in the same directory and decide from where the log is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tidelog.metadata.records import MetadataLogError
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import METADATA_TOPIC, TopicPartition
from tidelog.model.ports import FileSystem
from tidelog.raft.continuity import Damage
from tidelog.raft.log_shape import LogEnd
from tidelog.raft.mark_files import FLUSHED, encode_flushed, read_flushed, write_flushed
from tidelog.raft.snapshots import DELETED_SUFFIX, Snapshot, SnapshotId, list_snapshots, read_snapshot
from tidelog.records.batch import BatchHeader, crc_is_valid, read_header
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.control import ControlType, control_batch
from tidelog.records.record import Record, iter_records
from tidelog.storage import reading
from tidelog.storage.cut_bytes import keep_bytes
from tidelog.storage.flush_job import FlushJob
from tidelog.storage.log_config import Origin
from tidelog.storage.reboot_detection import note_kernel
from tidelog.storage.unified_log import UnifiedLog

PARTITION = TopicPartition(METADATA_TOPIC, 0)
MAX_BATCH_BYTES = 8 * 1024 * 1024
READ_BYTES = 1 << 20
MARK_EVERY = 1000
"""After so many flushed records the note of what is flushed is written again."""
START_AGAIN = "Start the node again: a start takes the damaged records from the other voters, or says what to do"


class MetadataLogConfig(NamedTuple):
    """The ``metadata.log.*`` and ``metadata.max.*`` options; sizes in bytes, times in ms, -1 for no limit."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 86_400_000
    max_record_bytes_between_snapshots: int = 20 * 1024 * 1024
    max_snapshot_interval_ms: int = 3_600_000
    retention_bytes: int = 100 * 1024 * 1024
    retention_ms: int = 7 * 86_400_000
    max_batch_bytes: int = MAX_BATCH_BYTES
    """Not an option: Kafka's voters do not read larger batches. Smaller only in tests."""


class MetadataLog:
    """One voter's log and snapshots."""

    def __init__(self, fs: FileSystem, log: UnifiedLog, config: MetadataLogConfig) -> None:
        self.fs = fs
        self.log = log
        self.config = config
        self.snapshots = list_snapshots(fs, log.dir)
        self.unreadable: dict[SnapshotId, str] = {}
        """Damaged snapshots, and what is wrong with them; see ``renewal``."""
        self.sound: set[SnapshotId] = set()
        """Snapshots that this process has found to be whole."""
        self.damaged: Damage | None = None
        """What cannot be read of the log, and is needed: ``mending`` has to take care of it."""
        self.end_before_damage = LogEnd(self.last_epoch, log.log_end_offset)
        """The end that the log had with the damaged part, or a later one."""
        self._flushed_mark = read_flushed(fs, log.dir)
        self._mark_in_job: LogEnd | None = None
        self._mark_is_damaged = False

    @property
    def dir(self) -> str:
        """The partition's directory."""
        return self.log.dir

    @property
    def end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def last_epoch(self) -> int:
        """The epoch of the last batch; 0 when there is none."""
        return max(self.log.leader_epochs.latest, 0)

    @property
    def newest_snapshot(self) -> SnapshotId | None:
        """The newest real snapshot, not the 0-0 checkpoint."""
        real = [each for each in self.snapshots if not each.is_bootstrap]
        return real[-1] if real else None

    def read_snapshot(self, snapshot_id: SnapshotId) -> Snapshot:
        """The checked contents of a snapshot. Blocks."""
        return read_snapshot(self.fs, f"{self.dir}/{snapshot_id.file_name}")

    def batches_from(self, offset: int) -> Iterator[tuple[BatchHeader, list[Record]]]:
        """Every batch from ``offset`` to the end, or to the first damaged one, with its records. Blocks: for loading.
        MetadataLogError for a gap, and for a batch that was damaged since the log was opened."""
        end = self.end_offset if self.damaged is None else self.damaged.rotten.first_offset
        while offset < end:
            found = reading.read(self.log, offset, READ_BYTES, upto=self.end_offset, min_one=True)
            if found.error is not ErrorCode.NONE or found.slice is None:
                raise MetadataLogError(
                    f"{self.dir} begins at offset {self.log.log_start_offset}, and there is no snapshot that reaches so far: "
                    f"offset {offset} is gone. Restore the directory, or set up the voter as a new one"
                )
            data = memoryview(found.slice.read())
            position = 0
            if data and (begins := read_header(data).base_offset) > offset:
                raise MetadataLogError(f"{self.dir}: the records from offset {offset} to {begins - 1} are missing. {START_AGAIN}")
            # What follows a damaged batch may be in the same read, and so may a batch whose checksum fits its wrong header.
            while position < len(data) and offset < end:
                header = read_header(data, position)
                if not crc_is_valid(data, header):
                    raise MetadataLogError(
                        f"{self.dir}: the batch at offset {header.base_offset} has a wrong checksum. {START_AGAIN}"
                    )
                if header.next_offset > offset:
                    yield header, list(iter_records(data[position : position + header.size]))
                    offset = header.next_offset
                position += header.size

    def append_values(self, values: Sequence[bytes], epoch: int, now_ms: int) -> int:
        """Metadata records (framed values) as one batch; the last offset. StorageFailure when the disk fails."""
        records = [RecordData(None, value, now_ms) for value in values]
        return self._append(build_batch(records, base_offset=self.end_offset, leader_epoch=epoch), epoch, now_ms)

    def append_control(self, records: Sequence[tuple[ControlType, bytes]], epoch: int, now_ms: int) -> int:
        """Raft's own records as one control batch; the last offset."""
        return self._append(
            control_batch(records, timestamp_ms=now_ms, base_offset=self.end_offset, leader_epoch=epoch), epoch, now_ms
        )

    def _append(self, batch: bytearray, epoch: int, now_ms: int) -> int:
        result = self.log.append_as_leader(memoryview(batch), epoch, now_ms, origin=Origin.RAFT)
        assert result.error is ErrorCode.NONE, (result.error, result.error_message)
        return result.last_offset

    def flush_job(self) -> FlushJob:
        """Flushes everything appended so far; see UnifiedLog.flush_job. The job notes what is flushed after the first records of
        an epoch, and now and then: no checksum in a batch covers its epoch."""
        job = self.log.flush_job()
        reached = LogEnd(self.last_epoch, job.upto)
        lags = reached.epoch != self._flushed_mark.epoch or reached.offset >= self._flushed_mark.offset + MARK_EVERY
        if lags or self._mark_is_damaged:
            self._mark_is_damaged = False
            job.file_writes.append((FLUSHED, encode_flushed(reached)))
            self._mark_in_job = reached
        return job

    def flushed(self, job: FlushJob, now_ms: int) -> int:
        """The offset below which everything is synced. StorageFailure when the job failed, and for every later call."""
        self.log.flushed(job, now_ms)
        if self._mark_in_job is not None:
            self._flushed_mark, self._mark_in_job = self._mark_in_job, None
        return self.log.recovery_point

    def flushed_mark_is_damaged(self) -> None:
        """The note of what is flushed is written again with the next flush."""
        self._mark_is_damaged = True

    def committed(self, high_watermark: int) -> None:
        """The quorum has committed everything below ``high_watermark``."""
        self.log.update_high_watermark(high_watermark)

    def snapshot_written(self, snapshot_id: SnapshotId) -> None:
        """A snapshot file was written."""
        self.snapshots = sorted({*self.snapshots, snapshot_id})

    def clean(self, now_ms: int) -> list[str]:
        """Deletes old snapshots, and the log below the oldest one kept, past the retention limits.

        The newest snapshot always stays. Returns a description of what was deleted. Blocks briefly: it renames and removes files.
        """
        removed: list[str] = []
        try:
            while (reason := self._snapshot_to_drop(now_ms)) is not None:
                removed.append(self._drop_oldest(reason, now_ms))
        except OSError as problem:
            raise self.log.fail(f"retention in {self.dir}", problem) from problem
        return removed

    def _snapshot_to_drop(self, now_ms: int) -> str | None:
        real = [each for each in self.snapshots if not each.is_bootstrap]
        if len(real) < 2 or self.log.flush_in_flight:
            return None
        oldest = self.fs.stat(f"{self.dir}/{real[0].file_name}")
        age = now_ms - oldest.modified_ms
        if 0 <= self.config.retention_ms < age:
            return f"{age} ms old, metadata.max.retention.ms is {self.config.retention_ms}"
        total = self.log.files.segments.size_bytes + sum(self.fs.stat(f"{self.dir}/{each.file_name}").size for each in real)
        if 0 <= self.config.retention_bytes < total:
            return f"{total} bytes in all, metadata.max.retention.bytes is {self.config.retention_bytes}"
        return None

    def _drop_oldest(self, reason: str, now_ms: int) -> str:
        real = [each for each in self.snapshots if not each.is_bootstrap]
        doomed, kept = real[0], real[1]
        self.log.delete_records_before(kept.offset)
        self.log.retention_step(now_ms).remove()
        path = f"{self.dir}/{doomed.file_name}"
        self.fs.rename(path, path + DELETED_SUFFIX)
        self.fs.remove(path + DELETED_SUFFIX)
        self.snapshots = [each for each in self.snapshots if each != doomed]
        return f"snapshot {doomed.file_name} and the log below {kept.offset}: {reason}"

    def cut_before(self, damage: Damage, now_ms: int) -> list[str]:
        """Ends the log before the damage, or at the newest snapshot if that is later. What is cut is kept under names that no
        start looks at, which are returned. Blocks; raises OSError, and StorageFailure as ``truncate_to`` does."""
        kept: list[str] = []
        for segment in self.log.segments:
            path = segment.path(".log")
            if path == damage.path:
                keep_bytes(self.fs, segment.file, path, damage.rotten.position, segment.size, made=kept)
            elif segment.base_offset >= damage.rotten.next_offset:
                keep_bytes(self.fs, segment.file, path, 0, segment.size, made=kept)
        newest, offset = self.newest_snapshot, damage.rotten.first_offset
        self.about_to_cut(offset)
        if newest is not None and newest.offset >= offset:  # the damaged batch may be the last one below it
            self.start_after(newest, now_ms)
        else:
            self.log.truncate_to(offset, now_ms)
        return kept

    def start_after(self, snapshot_id: SnapshotId, now_ms: int) -> None:
        """Empties the log; it continues after the snapshot. Blocks."""
        self.log.truncate_fully_and_start_at(snapshot_id.offset, now_ms)
        self.log.leader_epochs.assign(snapshot_id.epoch, snapshot_id.offset)

    def about_to_cut(self, offset: int) -> None:
        """The log is to be cut at ``offset``: what will be written behind the cut is not flushed yet. Blocks for a sync."""
        if offset < self._flushed_mark.offset:
            self._mark_flushed(offset)

    def note_opened(self) -> None:
        """The log is recovered and synced. Blocks for a sync. StorageFailure when the disk fails."""
        self._mark_flushed(self.log.recovery_point)

    def _mark_flushed(self, offset: int) -> None:
        mark = LogEnd(self.log.leader_epochs.epoch_for(offset - 1), offset)
        try:
            write_flushed(self.fs, self.dir, mark)
            note_kernel(self.fs, self.dir)
        except OSError as problem:
            raise self.log.fail(f"{self.dir}: note of what is flushed", problem) from problem
        self._flushed_mark = mark

    def close(self) -> None:
        """Flushes and closes the files. Blocks."""
        self.log.close()
        self._mark_flushed(self.log.log_end_offset)
