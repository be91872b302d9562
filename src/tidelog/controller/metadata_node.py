"""The metadata quorum's runner on this node: controller decisions become records, records become durable, then they count.

    submit -> the controller decides, its records go to the log and into the controller's own image
    flush_job -> run in a thread: one sync for everything submitted meanwhile (group commit)
    flushed -> committed: the next images are published to listeners, waiting responses are released

It is pure but for the file system it is given: nothing here waits, and time comes in. When the disk under the log fails, the
node is dead: every later call raises the StorageFailure, and whoever runs it stops.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tidelog.controller.activation import abort_records
from tidelog.controller.loading import load
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.record_batches import encoded_batches
from tidelog.controller.result import ConfigRules, ControllerResult, ControllerSettings
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.features import check_levels, default_levels
from tidelog.metadata.image import ClusterImage, ControllerImage
from tidelog.metadata.records import MetadataLogError, MetadataRecord
from tidelog.model.errors import StorageFailure
from tidelog.model.ids import Uuid
from tidelog.model.ports import FileSystem, Rng
from tidelog.protocol.messages.feature_level_record import FeatureLevelRecord
from tidelog.raft import quorum_state
from tidelog.raft.format import BOOTSTRAP_FILE
from tidelog.raft.metadata_log import MetadataLog, MetadataLogConfig
from tidelog.raft.node import RaftNode
from tidelog.raft.snapshots import SnapshotJob, read_snapshot
from tidelog.raft.voters import ReplicaKey, VoterSet
from tidelog.records.control import Endpoint, Voter
from tidelog.storage.flush import FlushJob

Listener = Callable[[ClusterImage, ClusterImage, ClusterDelta], None]
"""Called with (old image, new image, what lies between) for each commit, in order."""


@dataclass(frozen=True, slots=True)
class MetadataNodeConfig:
    """Who this node is. ``voters`` is ``controller.quorum.voters`` (None: this node alone)."""

    node_id: int
    cluster_id: str
    directory_id: Uuid
    log_dir: str
    controller: ControllerImage
    voters: VoterSet | None = None
    log: MetadataLogConfig = field(default_factory=MetadataLogConfig)
    settings: ControllerSettings = field(default_factory=ControllerSettings)
    partition_dir: str | None = None
    """A directory with some partition's records, if there is one: proof that the cluster is not new."""


class _Group(NamedTuple):
    """An atomic group that is in the log: records in memory until they are committed."""

    records: Sequence[MetadataRecord]
    last_offset: int
    epoch: int
    timestamp_ms: int


class Pending:
    """One submitted request. ``response`` counts once ``done``; records at or below ``offset`` have to be committed first."""

    __slots__ = ("done", "offset", "response", "token")

    def __init__(self, token: int, offset: int, response: Any, done: bool) -> None:
        self.token = token
        self.offset = offset
        self.response = response
        self.done = done


class MetadataNode:
    """The active controller of a quorum of one."""

    def __init__(self, log: MetadataLog, raft: RaftNode, controller: QuorumController, image: ClusterImage) -> None:
        """Use ``start``."""
        self.log = log
        self.raft = raft
        self.controller = controller
        self.image = image
        """Committed, published; what the node serves from."""
        self.failure: StorageFailure | None = None
        self.flush_in_flight = False
        self._listeners: list[Listener] = []
        self._uncommitted: deque[_Group] = deque()
        self._waiting: deque[Pending] = deque()
        self._tokens = 0
        self._snapshot_job: SnapshotJob | None = None
        self._bytes_since_snapshot = 0
        self._last_snapshot_ms = 0
        self._load_delta: ClusterDelta | None = None

    @staticmethod
    def start(fs: FileSystem, config: MetadataNodeConfig, *, rng: Rng, rules: ConfigRules, now_ms: int) -> MetadataNode:
        """Loads the directory, becomes the leader of a new epoch, and activates the controller. Blocks; all is synced on return.

        MetadataLogError or UnsupportedFeatureLevel when the directory is not one this node can serve; StorageFailure when the
        disk fails.
        """
        log = MetadataLog.open(fs, config.log_dir, config.log, now_ms)
        loaded = load(log, config.cluster_id)
        if loaded.image.metadata_version == 0 and config.partition_dir is not None:
            # Beginning a new cluster here would look as if every topic had been deleted.
            raise MetadataLogError(
                f"{log.dir} holds no metadata, but {config.partition_dir} holds a partition: the metadata log was lost or is "
                "damaged. Restore it, or move the partitions away to begin a new cluster."
            )
        # A log without metadata.version is one whose first records were never written whole.
        bootstrap = bootstrap_of(fs, config.log_dir) if loaded.image.metadata_version == 0 else []
        raft = RaftNode(
            ReplicaKey(config.node_id, config.directory_id),
            history=loaded.history,
            configured=config.voters or VoterSet.of([Voter(config.node_id, bytes(16), ())]),
            state=quorum_state.load(fs, log.dir),
            log_end=(log.last_epoch, log.end_offset),
            endpoints=tuple(Endpoint(each.name, each.host, each.port) for each in config.controller.endpoints.values()),
        )
        controller = QuorumController(loaded.image, rng=rng, rules=rules, settings=config.settings, node_id=config.node_id)
        node = MetadataNode(log, raft, controller, loaded.image)
        node._load_delta = loaded.delta
        node._bytes_since_snapshot = loaded.bytes_since_snapshot
        node._last_snapshot_ms = now_ms
        node._lead(fs, now_ms)
        node._activate(config.controller, bootstrap, loaded.transaction_open, now_ms)
        node.flush_now(now_ms)
        return node

    def _lead(self, fs: FileSystem, now_ms: int) -> None:
        outcome = self.raft.start()
        if outcome.persist is not None:
            try:
                quorum_state.store(fs, self.log.dir, outcome.persist)
            except OSError as problem:
                raise self._fail(self.log.log.fail("quorum-state", problem)) from problem
        last_offset = self.log.append_control(outcome.append, outcome.epoch, now_ms)
        self._advanced(last_offset, now_ms)

    def _advanced(self, last_offset: int, now_ms: int) -> None:
        """The log grew by something that changes nothing in the image but its offset."""
        self.controller.advance(last_offset, self.raft.epoch, now_ms)
        self._uncommitted.append(_Group((), last_offset, self.raft.epoch, now_ms))

    def _activate(self, me: ControllerImage, bootstrap: Sequence[MetadataRecord], transaction_open: bool, now_ms: int) -> None:
        if transaction_open:
            # The load dropped the open transaction's records; the log has to say the same.
            self._advanced(self._append_raw(abort_records(), now_ms), now_ms)
        if bootstrap:
            self._append(self.controller.bootstrap(bootstrap), now_ms)
        self._append(self.controller.register_controller(me), now_ms)

    # requests

    def submit(self, handler: Callable[[QuorumController, Any, int], ControllerResult], request: Any, now_ms: int) -> Pending:
        """Has the controller decide: ``handler`` is a method of QuorumController, unbound.

        The Pending is done at once when nothing has to be committed first; a response without records still waits for what
        was pending before it, because it was decided on that. KafkaError comes straight through.
        """
        if self.failure is not None:
            raise self.failure
        result = handler(self.controller, request, now_ms)
        last_offset = self._append(result, now_ms)
        if last_offset is None:
            last_offset = self._waiting[-1].offset if self._waiting else -1
        self._tokens += 1
        pending = Pending(self._tokens, last_offset, result.response, done=last_offset < self.raft.high_watermark)
        if not pending.done:
            self._waiting.append(pending)
        return pending

    def _append(self, result: ControllerResult, now_ms: int) -> int | None:
        """The last offset of the group; None when there are no records."""
        if not result.records:
            return None
        last_offset = self._append_raw(result.records, now_ms)
        self.controller.replay(result.records, last_offset, self.raft.epoch, now_ms)
        self._uncommitted.append(_Group(result.records, last_offset, self.raft.epoch, now_ms))
        return last_offset

    def _append_raw(self, records: Sequence[MetadataRecord], now_ms: int) -> int:
        """An atomic group: one batch, or when it is too large a transaction of several."""
        last_offset = -1
        for batch in encoded_batches(records, self.controller.image.metadata_version, self.log.config.max_batch_bytes):
            last_offset = self._append_batch(batch, now_ms)
            self._bytes_since_snapshot += sum(map(len, batch))
        self.controller.next_offset = last_offset + 1
        return last_offset

    def _append_batch(self, values: Sequence[bytes], now_ms: int) -> int:
        try:
            return self.log.append_values(values, self.raft.epoch, now_ms)
        except StorageFailure as failure:
            raise self._fail(failure) from failure

    def _fail(self, failure: StorageFailure) -> StorageFailure:
        self.failure = failure
        return failure

    # committing

    @property
    def flush_needed(self) -> bool:
        """Is there something appended that no flush job has taken?"""
        return self.failure is None and not self.flush_in_flight and self.log.end_offset > self.raft.high_watermark

    def flush_job(self) -> FlushJob:
        """Everything submitted so far. One at a time; run it in a thread, then hand it to ``flushed``.

        StorageFailure when the disk fails before the job can be made.
        """
        assert not self.flush_in_flight, "a flush job is under way"
        try:
            job = self.log.flush_job()
        except StorageFailure as failure:
            raise self._fail(failure) from failure
        self.flush_in_flight = True
        return job

    def flushed(self, job: FlushJob, now_ms: int) -> list[Pending]:
        """Commits what the job made safe: listeners hear of it, then the requests that waited for it are returned, done."""
        self.flush_in_flight = False
        try:
            synced = self.log.flushed(job, now_ms)
        except StorageFailure as failure:
            raise self._fail(failure) from failure
        high_watermark = self.raft.synced(synced)
        self.log.committed(high_watermark)
        self._publish(high_watermark)
        released = []
        while self._waiting and self._waiting[0].offset < high_watermark:
            pending = self._waiting.popleft()
            pending.done = True
            released.append(pending)
        return released

    def _publish(self, high_watermark: int) -> None:
        """The committed groups, together, are the next image: however many there were, listeners hear of them once."""
        delta = ClusterDelta(self.image)
        last: _Group | None = None
        while self._uncommitted and self._uncommitted[0].last_offset < high_watermark:
            last = self._uncommitted.popleft()
            for record in last.records:
                delta.replay(record)
        if last is None:
            return
        # Mostly all that was appended is committed now: then the controller's image is the same one, and shared.
        caught_up = not self._uncommitted
        image = self.controller.image if caught_up else delta.apply(last.last_offset, last.epoch, last.timestamp_ms)
        assert image.offset == last.last_offset, (image.offset, last.last_offset)
        old, self.image = self.image, image
        for listener in self._listeners:
            listener(old, image, delta)

    def flush_now(self, now_ms: int) -> list[Pending]:
        """Job and commit at once: for the start, the stop, and tools. Blocks."""
        job = self.flush_job()
        job.run()
        return self.flushed(job, now_ms)

    def add_listener(self, listener: Listener) -> None:
        """From the next commit on; ``announce`` tells it what is there already."""
        self._listeners.append(listener)

    def announce(self) -> None:
        """Tells all listeners what the load brought, as one change from an empty cluster. Once, before the first request."""
        delta, self._load_delta = self._load_delta, None
        assert delta is not None, "announced already"
        for listener in self._listeners:
            listener(delta.base, self.image, delta)

    # snapshots

    def snapshot_deadline(self) -> int:
        """When the next snapshot is due by time, in ms since the epoch."""
        return self._last_snapshot_ms + self.log.config.max_snapshot_interval_ms

    def snapshot_due(self, now_ms: int) -> bool:
        """Enough new records, or records that are old enough, and no snapshot being written."""
        if self._snapshot_job is not None or self.failure is not None or self._bytes_since_snapshot == 0:
            return False
        return self._bytes_since_snapshot >= self.log.config.max_record_bytes_between_snapshots or (
            self.log.config.max_snapshot_interval_ms > 0 and now_ms >= self.snapshot_deadline()
        )

    def snapshot_job(self, now_ms: int) -> SnapshotJob:
        """Of the committed image. Run it in a thread, then hand it to ``snapshot_finished``."""
        assert self._snapshot_job is None, "a snapshot is being written"
        voters = self.raft.voters if self.raft.kraft_version >= 1 else None
        self._snapshot_job = SnapshotJob(self.log.fs, self.log.dir, self.image, voters, now_ms)
        self._bytes_since_snapshot = 0
        self._last_snapshot_ms = now_ms
        return self._snapshot_job

    def snapshot_finished(self, job: SnapshotJob, now_ms: int) -> list[str]:
        """The file is there; old snapshots and log that are past retention go. What went, in words."""
        assert job is self._snapshot_job, "not the snapshot that was begun"
        self._snapshot_job = None
        if job.error is not None:
            raise self._fail(self.log.log.fail(f"snapshot {job.id.file_name}", job.error)) from job.error
        self.log.snapshot_written(job.id)
        return self.log.clean(now_ms)

    def close(self, now_ms: int) -> None:
        """Commits what is pending and closes the log. Blocks."""
        if self.failure is None:
            self.flush_now(now_ms)
        self.log.close()


def bootstrap_of(fs: FileSystem, log_dir: str) -> list[MetadataRecord]:
    """What ``format`` left for the first start; our default levels in a directory without it."""
    path = f"{log_dir}/{BOOTSTRAP_FILE}"
    if not fs.exists(path):
        return [FeatureLevelRecord(name=name, feature_level=level) for name, level in default_levels().items()]
    records = list(read_snapshot(fs, path).records)
    check_levels({record.name: record.feature_level for record in records if isinstance(record, FeatureLevelRecord)})
    return records
