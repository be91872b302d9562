"""The ``__cluster_metadata-0`` log of one voter: what Raft appends and commits, on top of storage's UnifiedLog.

Records go in as one batch per atomic group. Nothing is committed before it is synced; the recovery of storage cuts a torn
tail at the next start. Snapshots live in the same directory and decide from where the log is needed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidelog.metadata.records import MetadataLogError
from tidelog.model.errors import ConfigError, ErrorCode, StorageFailure
from tidelog.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, TopicPartition
from tidelog.model.ports import FileSystem
from tidelog.raft.marks import read_flushed, write_flushed
from tidelog.raft.snapshots import DELETED_SUFFIX, Snapshot, SnapshotId, list_snapshots, read_snapshot, remove_leftovers
from tidelog.records.batch import BatchHeader, crc_is_valid, read_header
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.control import ControlType, control_batch
from tidelog.records.record import Record, iter_records
from tidelog.storage import reading
from tidelog.storage.boot import kernel_survived, note_kernel
from tidelog.storage.checkpoints import PARTITION_METADATA, encode_partition_metadata, replace_file
from tidelog.storage.flush import FlushJob
from tidelog.storage.log import UnifiedLog
from tidelog.storage.log_config import LogConfig, Origin
from tidelog.storage.log_creation import create_log
from tidelog.storage.recovery import LoadRequest, load_log
from tidelog.storage.rotten_range import RottenRange

PARTITION = TopicPartition(METADATA_TOPIC, 0)
MAX_BATCH_BYTES = 8 * 1024 * 1024
READ_BYTES = 1 << 20
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Damage:
    """A rotten range of the metadata log, and the segment's file that it is in."""

    path: str
    rotten: RottenRange


@dataclass(frozen=True, slots=True)
class MetadataLogConfig:
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
        self.damaged: Damage | None = None
        """What cannot be read of the log, and is needed: ``mending`` has to take care of it."""
        self._flushed_mark = read_flushed(fs, log.dir)

    @staticmethod
    def open(fs: FileSystem, log_dir: str, config: MetadataLogConfig, now_ms: int) -> MetadataLog:
        """Creates or recovers it. Blocks. StorageFailure when the directory cannot be read; ConfigError for segments that
        cannot hold the largest batch."""
        if config.segment_bytes < config.max_batch_bytes:
            raise ConfigError(
                f"metadata.log.segment.bytes is {config.segment_bytes}, but must be at least {config.max_batch_bytes}: "
                "a batch of the metadata log can be that large."
            )
        directory = f"{log_dir}/{PARTITION}"
        log_config = LogConfig(
            segment_bytes=config.segment_bytes,
            segment_ms=config.segment_ms,
            retention_ms=-1,
            max_message_bytes=config.max_batch_bytes,
        )
        try:
            fs.make_dirs(directory)
            remove_leftovers(fs, directory)
            if not fs.exists(f"{directory}/{PARTITION_METADATA}"):
                replace_file(fs, f"{directory}/{PARTITION_METADATA}", encode_partition_metadata(METADATA_TOPIC_ID))
            has_log = any(name.endswith(".log") for name in fs.listdir(directory))
        except OSError as problem:
            raise StorageFailure(log_dir, f"the metadata log cannot be opened: {problem}") from problem
        if has_log:
            log = load_log(fs, _load_request(fs, directory, log_config), now_ms)
        else:
            log = create_log(fs, directory, PARTITION, METADATA_TOPIC_ID, log_config, now_ms)
        opened = MetadataLog(fs, log, config)
        opened._start_at_snapshot(now_ms)
        opened.damaged = opened._first_damaged()
        return opened

    def _start_at_snapshot(self, now_ms: int) -> None:
        """A snapshot past the end of the log came from another voter just before a crash: the log continues after it."""
        newest = self.newest_snapshot
        if newest is not None and newest.offset > self.log.log_end_offset:
            _logger.warning("The metadata log ends at %d, before snapshot %s: emptied", self.log.log_end_offset, newest)
            self.log.truncate_fully_and_start_at(newest.offset, now_ms)
            self.log.leader_epochs.assign(newest.epoch, newest.offset)
        oldest = next((each.offset for each in self.snapshots if not each.is_bootstrap), 0)
        start = self.log.log_start_offset
        epochs = self.log.leader_epochs.entries()
        if start < oldest and (start > 0 or (epochs and epochs[0][1] > start)):
            # It was cleaned, and the segment with the earlier records is still there. Their epochs are no longer known: to a
            # replica that diverged there, this log would seem to continue the replica's.
            self.log.update_high_watermark(oldest)
            self.log.delete_records_before(oldest)

    def _first_damaged(self) -> Damage | None:
        """The first rotten range that no snapshot stands in for. A snapshot does for all below it: then the log begins there."""
        newest = self.newest_snapshot
        for segment in self.log.segments:
            for rotten in segment.rotten:
                if newest is None or rotten.next_offset > newest.offset:
                    return Damage(segment.path(".log"), rotten)
        if newest is not None and any(segment.rotten for segment in self.log.segments):
            _logger.error("%s: the damaged records lie below snapshot %s, and are not needed", self.dir, newest.file_name)
            self.log.update_high_watermark(newest.offset)
            self.log.delete_records_before(newest.offset)
            self.snapshots = [each for each in self.snapshots if each.is_bootstrap or each == newest]
        return None

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
            while position < len(data):
                header = read_header(data, position)
                if not crc_is_valid(data, header):
                    raise MetadataLogError(
                        f"{self.dir}: the batch at offset {header.base_offset} has a wrong checksum. Start the node again: a "
                        "start takes the damaged records from the other voters, or says what to do"
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
        """Flushes everything appended so far; see UnifiedLog.flush_job."""
        return self.log.flush_job()

    def flushed(self, job: FlushJob, now_ms: int) -> int:
        """The offset below which everything is synced. StorageFailure when the job failed, and for every later call."""
        self.log.flushed(job, now_ms)
        return self.log.recovery_point

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

    def about_to_cut(self, offset: int) -> None:
        """The log is to be cut at ``offset``: what will be written behind the cut is not flushed yet. Blocks for a sync."""
        if offset < self._flushed_mark:
            self._mark_flushed(offset)

    def note_opened(self) -> None:
        """The log is recovered and synced. Blocks for a sync. StorageFailure when the disk fails."""
        self._mark_flushed(self.log.recovery_point)

    def _mark_flushed(self, offset: int) -> None:
        try:
            write_flushed(self.fs, self.dir, offset)
            note_kernel(self.fs, self.dir)
        except OSError as problem:
            raise self.log.fail(f"{self.dir}: note of what is flushed", problem) from problem
        self._flushed_mark = offset

    def close(self) -> None:
        """Flushes and closes the files. Blocks."""
        self.log.close()
        self._mark_flushed(self.log.log_end_offset)


def _load_request(fs: FileSystem, directory: str, config: LogConfig) -> LoadRequest:
    """Every batch is read, whatever was flushed. StorageFailure when the disk fails."""
    try:
        survived, flushed = kernel_survived(fs, directory), read_flushed(fs, directory)
    except OSError as problem:
        raise StorageFailure(directory.rpartition("/")[0], f"the metadata log cannot be opened: {problem}") from problem
    return LoadRequest(directory, PARTITION, config, False, survived, flushed, read_all=True)
