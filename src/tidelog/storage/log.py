"""UnifiedLog: one partition's log on this broker. What is appended, where it ends, what readers may see.

Decided here: when the active segment rolls, and how the offsets move: log start <= last stable <= high watermark <= log end;
recovery point <= log end. Whatever fails on the disk takes the log out of service for good (StorageFailure).

The larger questions have a module each, and are methods here: how a batch is appended (appending.py; whether it may be,
validation.py), how a read is cut (reading.py), the work that blocks (flush.py, recovery.py), what goes by age and size
(retention.py), what only followers need (following.py). All methods run on the loop, except where they say otherwise.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from tidelog.model.errors import StorageFailure
from tidelog.model.ids import TopicPartition
from tidelog.model.ports import FileSystem, Rng
from tidelog.records.batch import BatchHeader
from tidelog.storage import appending, flush, following, reading, retention
from tidelog.storage.checkpoints import PARTITION_METADATA, encode_partition_metadata
from tidelog.storage.epochs import LeaderEpochCache
from tidelog.storage.log_config import LogConfig, Origin
from tidelog.storage.producer_state import ProducerStateManager
from tidelog.storage.segment import LogSegment, RollLimits
from tidelog.storage.validation import Rules, Verdict, validate


class UnifiedLog:
    """One partition's segments in ascending order, the last one active, and the state that goes with them."""

    __slots__ = (
        "aborting",
        "active",
        "config",
        "dir",
        "failure",
        "flush_in_flight",
        "fs",
        "high_watermark",
        "last_flush_ms",
        "leader_epochs",
        "limits",
        "log_dir",
        "log_end_offset",
        "log_start_offset",
        "metadata_synced",
        "names_synced",
        "on_roll",
        "pending_snapshots",
        "producers",
        "recovery_point",
        "rng",
        "rules",
        "segments",
        "snapshot_offset",
        "topic_id",
        "topic_partition",
        "unsealed",
    )

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: bytes | None,
        config: LogConfig,
        segments: list[LogSegment],
        *,
        leader_epochs: LeaderEpochCache,
        producers: ProducerStateManager,
        log_start_offset: int,
        recovery_point: int,
        rng: Rng | None = None,
    ) -> None:
        """Made by ``create_log`` and by ``recovery.load_log``. ``segments``: at least one; producers stand at the log's end."""
        self.fs = fs
        self.dir = directory
        self.log_dir = directory.rpartition("/")[0]
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.segments = segments
        self.active = segments[-1]
        self.aborting: list[LogSegment] = []
        """Segments with an entry in their transaction index, ascending. Replaced, never changed: threads read it."""
        self.leader_epochs = leader_epochs
        self.producers = producers
        self.log_start_offset = log_start_offset
        self.log_end_offset = self.active.next_offset
        self.high_watermark = log_start_offset
        self.recovery_point = recovery_point
        self.rng = rng
        self.failure: StorageFailure | None = None
        """Why this log serves no more; set once."""
        self.flush_in_flight = False
        self.last_flush_ms = 0
        self.metadata_synced = True
        """Whether partition.metadata is on stable storage; set False by whoever wrote or wants it written anew."""
        self.names_synced = True
        self.snapshot_offset = -1
        """Of the newest producer snapshot on the disk, as far as known."""
        self.on_roll: Callable[[UnifiedLog], None] | None = None
        """Told that a segment was closed: time to run a flush job, which seals it."""
        self.unsealed = [segment for segment in segments[:-1] if not segment.sealed]
        self.pending_snapshots: list[tuple[int, bytes]] = []
        self.set_config(config)

    def set_config(self, config: LogConfig) -> None:
        """The topic's settings changed; they hold from the next append on."""
        self.config = config
        self.rules = Rules.of(config)
        jitter = 0
        if config.segment_jitter_ms > 0 and self.rng is not None:
            jitter = self.rng.randrange(0, min(config.segment_jitter_ms, config.segment_ms) + 1)
        self.limits = RollLimits(config.segment_bytes, config.segment_ms - jitter, config.segment_index_bytes)

    # --- appending -----------------------------------------------------------------------------------------------------

    append_as_leader = appending.append_as_leader
    append_validated = appending.append_validated
    note_producer = appending.note_producer

    def validate(
        self, records: bytearray | memoryview, now_ms: int, *, origin: Origin = Origin.CLIENT, zstd_allowed: bool = True
    ) -> Verdict:
        """First half of an append. A verdict with ``deep`` set gives way to ``verdict.deep.run()``, in a thread if it is long."""
        return validate(records, self.rules, origin=origin, now_ms=now_ms, zstd_allowed=zstd_allowed)

    def must_roll(self, header: BatchHeader, now_ms: int, *, after_bytes: int = 0) -> bool:
        """Whether a batch starts a new segment, with ``after_bytes`` of batches before it that are still to be written."""
        segment, size = self.active, after_bytes + header.size
        if after_bytes and segment.size == 0 and size > self.config.segment_bytes:
            return True
        return segment.must_roll(size, header.last_offset, header.max_timestamp, now_ms, self.limits)

    append_as_follower = following.append

    def roll(self, now_ms: int, *, at_least: int = 0) -> LogSegment:
        """Closes the active segment and starts one at the log's end (or at ``at_least``, when the leader's log has a gap)."""
        base_offset = max(self.log_end_offset, at_least)
        active = self.active
        if active.size == 0 and active.base_offset == base_offset:
            active.created_ms = now_ms
            return active
        self.producers.end_offset = base_offset
        self.pending_snapshots.append((base_offset, self.producers.encode_snapshot()))
        try:
            segment = LogSegment.create(self.fs, self.dir, base_offset, now_ms)
        except OSError as problem:
            raise self.fail(f"new segment {base_offset} in {self.dir}", problem) from problem
        active.next_offset = self.log_end_offset
        self.unsealed.append(active)
        self.segments.append(segment)
        self.active = segment
        self.log_end_offset = base_offset
        self.names_synced = False
        if self.on_roll is not None:
            self.on_roll(self)
        return segment

    def roll_if_old(self, now_ms: int) -> bool:
        """Closes an active segment that grew older than segment.ms without a new append (the cleaner's and retention's need)."""
        active = self.active
        if active.size and active.must_roll(0, self.log_end_offset, now_ms, now_ms, self.limits):
            self.roll(now_ms)
            return True
        return False

    # --- reading -------------------------------------------------------------------------------------------------------

    read = reading.read
    warm_up = reading.warm_up
    aborted_transactions = reading.aborted_transactions
    end_of_read = reading.end_of_read
    offset_for_timestamp = reading.offset_for_timestamp
    max_timestamp_offset = reading.max_timestamp_offset

    def reading_may_block(self, offset: int, *, committed: bool = False) -> bool:
        """Whether ``read`` would open files and load an index: better ``warm_up`` in a thread first. ``committed``: whether
        ``aborted_transactions`` would, in the first segments that it asks; it seldom asks more."""
        if offset < self.active.base_offset and not self.segment_for(offset).indexes_loaded():
            return True
        return committed and bool(self.aborting) and not reading.aborts_are_loaded(self, offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(greatest epoch at or below ``epoch``, its end offset), (-1, -1) when unknown."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    def segment_index(self, offset: int) -> int:
        """The number of the segment that holds ``offset`` (the first one for an offset before it)."""
        segments = self.segments
        if offset >= segments[-1].base_offset:
            return len(segments) - 1
        return max(bisect_right(segments, offset, key=_base_offset) - 1, 0)

    def segment_for(self, offset: int) -> LogSegment:
        """The segment that holds ``offset``."""
        active = self.active
        return active if offset >= active.base_offset else self.segments[self.segment_index(offset)]

    @property
    def last_stable_offset(self) -> int:
        """Readers of committed data stop here: the first undecided offset, at most the high watermark."""
        unstable = self.producers.first_unstable_offset()
        return self.high_watermark if unstable is None or unstable > self.high_watermark else max(unstable, self.log_start_offset)

    @property
    def recovery_checkpoint(self) -> int:
        """What to write down of the recovery point while the log goes on: an offset in the first segment that is not sealed.

        Were it the end of an open segment, and that segment closed next, recovery would begin behind it and believe indexes
        that were never synced.
        """
        first = self.unsealed[0] if self.unsealed else self.active
        return min(self.recovery_point, first.next_offset - 1) if first.size else self.recovery_point

    @property
    def size_bytes(self) -> int:
        """Of all ``.log`` files."""
        return sum(segment.size for segment in self.segments)

    # --- moving offsets ------------------------------------------------------------------------------------------------

    def update_high_watermark(self, offset: int) -> int:
        """Clamped to [log start, log end]; the new high watermark. Whether it may move back is the partition's affair."""
        offset = min(max(offset, self.log_start_offset), self.log_end_offset)
        self.high_watermark = offset
        self.producers.high_watermark_moved(offset)
        return offset

    def delete_records_before(self, offset: int) -> bool:
        """DeleteRecords and the leader's log start: records below ``offset`` are gone for readers. False when nothing changed.

        ValueError above the high watermark. Files go later, by retention.
        """
        if offset > self.high_watermark:
            raise ValueError(
                f"{self.topic_partition}: cannot delete before {offset}, above the high watermark {self.high_watermark}"
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.leader_epochs.truncate_from_start(offset)
        return True

    truncate_to = following.truncate_to
    truncate_fully_and_start_at = following.truncate_fully_and_start_at
    retention_step = retention.step

    # --- making it safe ------------------------------------------------------------------------------------------------

    flush_job = flush.flush_job
    flushed = flush.flushed
    closing_job = flush.closing_job
    close = flush.close
    flush = flush.flush_now

    def fail(self, what: str, problem: Exception) -> StorageFailure:
        """Takes the log out of service; the exception to raise."""
        if self.failure is None:
            self.failure = StorageFailure(self.log_dir, f"{what}: {problem}")
        return self.failure

    def close_files(self) -> None:
        """Gives descriptors back; files are opened again when needed."""
        for segment in self.segments:
            segment.close_file()

    def note_aborting(self, segment: LogSegment) -> None:
        """The segment's transaction index has an entry now."""
        if segment not in self.aborting[-1:] and segment not in self.aborting:
            self.aborting = sorted([*self.aborting, segment], key=_base_offset)

    def forget_unsealed(self, segment: LogSegment) -> None:
        """A segment went away, or is the active one again."""
        self.unsealed = [other for other in self.unsealed if other is not segment]

    def forget_pending_snapshots(self, above: int) -> None:
        """Snapshots of a state that truncation undid."""
        self.pending_snapshots = [(offset, raw) for offset, raw in self.pending_snapshots if offset <= above]

    def drop_cold_indexes(self) -> None:
        """Gives memory back: sealed segments load their indexes again when somebody reads them."""
        for segment in self.segments[:-1]:
            segment.drop_indexes()

    def check(self) -> None:
        """The invariants."""
        assert self.log_start_offset <= self.high_watermark <= self.log_end_offset
        assert self.recovery_point <= self.log_end_offset
        assert self.log_start_offset <= self.last_stable_offset <= self.high_watermark
        bases = [segment.base_offset for segment in self.segments]
        assert bases == sorted(set(bases)), bases
        assert self.active is self.segments[-1] and self.active.next_offset == self.log_end_offset
        self.producers.check_invariants()
        self.leader_epochs.check()


def _base_offset(segment: LogSegment) -> int:
    return segment.base_offset


def create_log(
    fs: FileSystem,
    directory: str,
    topic_partition: TopicPartition,
    topic_id: bytes | None,
    config: LogConfig,
    now_ms: int,
    *,
    start_offset: int = 0,
    producer_expiration_ms: int = 86_400_000,
    rng: Rng | None = None,
) -> UnifiedLog:
    """A new partition: its directory, partition.metadata before any data (trap 54), one empty segment. OSError as it comes.

    Names and partition.metadata are synced by the first flush job, not here: 2,000 partitions are made in a moment.
    """
    fs.make_dirs(directory)
    if topic_id is not None:
        file = fs.open(f"{directory}/{PARTITION_METADATA}", create=True)
        file.write(0, encode_partition_metadata(topic_id))
        file.close()
    segment = LogSegment.create(fs, directory, start_offset, now_ms)
    producers = ProducerStateManager(producer_expiration_ms)
    producers.end_offset = start_offset
    log = UnifiedLog(
        fs,
        directory,
        topic_partition,
        topic_id,
        config,
        [segment],
        leader_epochs=LeaderEpochCache(),
        producers=producers,
        log_start_offset=start_offset,
        recovery_point=start_offset,
        rng=rng,
    )
    log.last_flush_ms = now_ms
    log.metadata_synced = topic_id is None
    log.names_synced = False
    return log
