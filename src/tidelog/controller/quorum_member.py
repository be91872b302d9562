"""QuorumMember: one process's part in the metadata quorum: log, Raft machine, what is committed, the controller while it leads.

    effects of the machine -> the log (here), files, sockets and timers (``server.cluster.raft_runner``)
    high watermark         -> the committed image moves on; requests that waited for it are answered
    leader                 -> once its epoch has committed something, the controller is active: it begins with the committed
                              image, which is all there is: what came before the epoch is committed with its first record
    leader no more         -> the controller is dropped; waiting requests get NOT_CONTROLLER and may be sent to the next one

Pure but for the file system: nothing here waits, and time comes in. When the disk under the log fails, every later call raises
the StorageFailure, and the driver stops.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tidelog.controller.activation import abort_records, bootstrap_of
from tidelog.controller.committed_image import AppendedGroup, CommittedImage
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.record_batches import encoded_batches
from tidelog.controller.result import ConfigRules, ControllerResult, ControllerSettings, KRaftVersion
from tidelog.controller.snapshot_loading import image_of_snapshot
from tidelog.metadata.image import ClusterImage, ControllerImage
from tidelog.metadata.records import MetadataLogError, MetadataRecord
from tidelog.metadata.supported_features import check_levels
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ports import FileSystem, Rng
from tidelog.protocol.messages.no_op_record import NoOpRecord
from tidelog.raft import quorum_state, renewal
from tidelog.raft.effects import Effect, LeaderChanged
from tidelog.raft.kraft_upgrade import upgrade_refusal
from tidelog.raft.log_changes import log_shape, start_at_snapshot, voter_sets
from tidelog.raft.log_opening import open_log
from tidelog.raft.machine import RaftMachine
from tidelog.raft.mark_files import read_lost_voters
from tidelog.raft.mending import mend
from tidelog.raft.metadata_log import MetadataLog, MetadataLogConfig
from tidelog.raft.raft_config import RaftConfig
from tidelog.raft.snapshots import Snapshot, SnapshotId, SnapshotJob
from tidelog.raft.voters import VoterSet


class MemberConfig(NamedTuple):
    """``configured`` is ``controller.quorum.voters``; empty for a dynamic quorum."""

    raft: RaftConfig
    log_dir: str
    controller: ControllerImage
    configured: VoterSet
    log: MetadataLogConfig = MetadataLogConfig()
    settings: ControllerSettings = ControllerSettings()
    partition_dir: str | None = None
    """A directory with records of some partition, if there is one: proof that the cluster is not new."""


class Pending:
    """One submitted request. ``response`` is valid once ``done``; records at or below ``offset`` must be committed first."""

    __slots__ = ("done", "offset", "response", "token")

    def __init__(self, token: int, offset: int, response: Any, done: bool) -> None:
        self.token = token
        self.offset = offset
        self.response = response
        self.done = done


class QuorumMember:
    """Two clocks: ``now_ms`` is wall time, for what is written; ``steady_ms`` is monotonic."""

    def __init__(
        self, config: MemberConfig, log: MetadataLog, machine: RaftMachine, image: ClusterImage, *, rng: Rng, rules: ConfigRules
    ) -> None:
        """Use ``open``."""
        self.config = config
        self.log = log
        self.machine = machine
        self.committed = CommittedImage(image)
        self.controller: QuorumController | None = None
        """Set while this replica leads and its epoch has committed a record."""
        self.generation = machine.quorum.log.shape.generation
        """Generation of the last applied log change."""
        self.behind = False
        """More is committed than has been read: ``high_watermark_moved`` must be called again."""
        self.more_due = False
        """The last ``tick`` left work to do."""
        self._rng = rng
        self._rules = rules
        self._settings = config.settings
        self._waiting: deque[Pending] = deque()
        self._tokens = 0
        self._epoch_start = -1
        self._last_append_ms = 0
        self._last_snapshot_ms = 0
        self._snapshot_job: SnapshotJob | None = None

    @staticmethod
    def open(fs: FileSystem, config: MemberConfig, *, rng: Rng, rules: ConfigRules, now_ms: int, steady_ms: int) -> QuorumMember:
        """Recovers the log and flushes it, so that what a killed process left in the page cache counts as safe. Blocks.

        MetadataLogError or UnsupportedFeatureLevel when the directory cannot be served; StorageFailure when the disk fails.
        """
        log = open_log(fs, config.log_dir, config.log, now_ms)
        job = log.flush_job()
        job.run()
        log.flushed(job, now_ms)
        newest = log.newest_snapshot or (log.snapshots[0] if log.snapshots else None)
        snapshot = None if newest is None else (newest, log.read_snapshot(newest))
        image = ClusterImage(cluster_id=config.raft.cluster_id)
        if snapshot is not None:
            image = image_of_snapshot(config.raft.cluster_id, *snapshot)
        check_levels(image.features)
        sets = voter_sets(log, snapshot, config.configured)
        lost_end = mend(log, config.raft, sets, now_ms)
        machine = RaftMachine(
            config.raft,
            shape=log_shape(log),
            sets=sets,
            lost_end=lost_end,
            witnesses=read_lost_voters(fs, log.dir, lost_end),
            state=quorum_state.load(fs, log.dir),
            rng=rng,
            now_ms=steady_ms,
        )
        if machine.quorum.is_only_voter and image.metadata_version == 0 and log.end_offset == 0:
            # Checked before anything is written: a directory that cannot be served is left unchanged.
            bootstrap_of(fs, config.log_dir)
        member = QuorumMember(config, log, machine, image, rng=rng, rules=rules)
        member._last_snapshot_ms = now_ms
        return member

    @property
    def image(self) -> ClusterImage:
        """The committed image."""
        return self.committed.image

    # What the machine says

    def leader_changed(self, effect: LeaderChanged) -> list[Pending]:
        """Requests that waited for a leadership that has ended; they are refused."""
        self.controller = None
        self.committed.forget_appended()
        self._epoch_start = effect.epoch_start
        refused, self._waiting = list(self._waiting), deque()
        return refused

    def high_watermark_moved(self, offset: int, turn_bytes: int | None = None) -> list[Pending]:
        """Completes the requests that are committed. With ``turn_bytes``: see ``CommittedImage.advance`` and ``behind``."""
        self.log.committed(offset)
        if self.controller is None:
            self.behind = self.committed.advance(self.log, offset, turn_bytes=turn_bytes)
        else:
            # Committed records are in memory, and waiting requests are answered now.
            self.behind = self.committed.advance(self.log, offset, self.controller.image)
        check_levels(self.image.features)
        released = []
        while self._waiting and self._waiting[0].offset < offset:
            pending = self._waiting.popleft()
            pending.done = True
            released.append(pending)
        return released

    @property
    def may_activate(self) -> bool:
        """Leads, is not active yet, and has committed and read everything before its epoch."""
        leads = self.controller is None and self.machine.is_leader and self._epoch_start >= 0
        return leads and self.committed.next_offset > self._epoch_start

    def activate(self, now_ms: int, steady_ms: int) -> list[Effect]:
        """Activates the controller: ends an open transaction, writes the first records to an empty log, and registers the
        controller.

        MetadataLogError when the log is empty and the cluster cannot be new.
        """
        assert self.may_activate
        if self.image.metadata_version == 0 and self.config.partition_dir is not None:
            # A new cluster here would look as if every topic had been deleted.
            raise MetadataLogError(
                f"{self.log.dir} holds no metadata, but {self.config.partition_dir} holds a partition: the metadata log was lost "
                "or is damaged. Restore it, or move the partitions away to begin a new cluster."
            )
        self.controller = QuorumController(
            self.image, rng=self._rng, rules=self._rules, settings=self._settings, node_id=self.config.controller.id
        )
        effects: list[Effect] = []
        self.controller.next_offset = self.log.end_offset
        if self.committed.transaction_open:
            effects += self._append(abort_records(), now_ms, steady_ms, replay=False)
        if self.image.metadata_version == 0:
            records = self.controller.bootstrap(bootstrap_of(self.log.fs, self.config.log_dir)).records
            effects += self._append(records, now_ms, steady_ms)
        registration = self.controller.register_controller(self.config.controller).records
        return effects + self._append(registration, now_ms, steady_ms)

    def set_settings(self, settings: ControllerSettings) -> None:
        """Uses changed node options for later decisions."""
        self._settings = settings
        if self.controller is not None:
            self.controller.set_settings(settings)

    # Requests to the active controller

    def submit(
        self,
        handler: Callable[[QuorumController, Any, int], ControllerResult],
        request: Any,
        now_ms: int,
        steady_ms: int,
    ) -> tuple[Pending, list[Effect]]:
        """Lets the controller decide. KafkaError NOT_CONTROLLER when this is not the active one, or as the decision raises it."""
        if self.controller is None or not self.machine.is_leader:
            leader = self.machine.leader_id
            raise KafkaError(
                ErrorCode.NOT_CONTROLLER,
                f"This controller is not the active one; that is node {leader}."
                if leader >= 0
                else "There is no active controller.",
            )
        # Records of the quorum itself, such as a new voter, move the offset as well.
        self.controller.next_offset = self.log.end_offset
        self.controller.kraft = KRaftVersion(self.machine.kraft_version, upgrade_refusal(self.machine.quorum))
        result = handler(self.controller, request, now_ms)
        effects = self._append(result.records, now_ms, steady_ms)
        offset = self.log.end_offset - 1 if result.records else (self._waiting[-1].offset if self._waiting else -1)
        if result.raises_kraft_version and self.machine.is_leader:
            effects += self.machine.upgrade_kraft_version(steady_ms)
            offset = self.machine.quorum.log.shape.end_offset - 1
        self._tokens += 1
        pending = Pending(self._tokens, offset, result.response, done=offset < self.machine.high_watermark)
        if not pending.done:
            self._waiting.append(pending)
        return pending, effects

    def tick(self, now_ms: int, steady_ms: int) -> list[Effect]:
        """Runs one time-driven step; called regularly while this is the active controller, and again soon while there is
        ``more_due``, so that a hundred expired brokers do not delay the heartbeats of the others."""
        self.more_due = False
        if self.controller is None or not self.machine.is_leader:
            return []
        self.controller.next_offset = self.log.end_offset
        result = self.controller.tick(now_ms, steady_ms)
        self.more_due = bool(result.response)
        return self._append(result.records, now_ms, steady_ms)

    def sign_of_life(self, now_ms: int, steady_ms: int, idle_ms: int) -> list[Effect]:
        """Appends a NoOp record after ``idle_ms`` without a write, so that the high watermark advances."""
        if self.controller is None or steady_ms - self._last_append_ms < idle_ms or not self.machine.is_leader:
            return []
        return self._append((NoOpRecord(),), now_ms, steady_ms)

    def _append(self, records: Sequence[MetadataRecord], now_ms: int, steady_ms: int, *, replay: bool = True) -> list[Effect]:
        """Appends an atomic group, as the leader. StorageFailure when the disk fails."""
        if not records or not self.machine.is_leader:
            # It resigned with the previous append; the next leader decides.
            return []
        controller = self.controller
        assert controller is not None
        epoch = self.machine.epoch
        assert self.log.end_offset == self.machine.quorum.log.shape.end_offset, "an effect on the log has not been done yet"
        base_offset, size = self.log.end_offset, 0
        for values in encoded_batches(records, controller.image.metadata_version, self.log.config.max_batch_bytes):
            self.log.append_values(values, epoch, now_ms)
            size += sum(map(len, values))
        last_offset = self.log.end_offset - 1
        group = AppendedGroup(base_offset, last_offset, epoch, now_ms, size, records)
        self._last_append_ms = steady_ms
        if replay:
            delta = controller.replay(records, last_offset, epoch, now_ms)
            group = group._replace(delta=delta, image=controller.image)
        else:
            controller.advance(last_offset, epoch, now_ms)
        self.committed.appended(group)
        return self.machine.appended(last_offset + 1, steady_ms)

    # Snapshots

    def snapshot_loaded(
        self, snapshot_id: SnapshotId, snapshot: Snapshot, size: int, now_ms: int, steady_ms: int
    ) -> list[Effect]:
        """A fetched snapshot is on disk under its name; log and image restart after it. Blocks."""
        start_at_snapshot(self.log, snapshot_id, now_ms)
        self.committed.load(snapshot_id, snapshot)
        effects = self.machine.snapshot_installed(snapshot_id, size, snapshot.kraft_version or 0, snapshot.voters, steady_ms)
        self.generation = self.machine.quorum.log.shape.generation
        return effects

    def snapshot_due(self, now_ms: int) -> bool:
        """Enough new committed records, or old enough ones, and no snapshot in progress."""
        committed, config = self.committed, self.log.config
        if self._snapshot_job is not None or committed.transaction_open:
            return False
        if self._makes_up_for_damage:
            return True
        if committed.bytes_since_snapshot == 0:
            return False
        due_ms = self._last_snapshot_ms + config.max_snapshot_interval_ms
        return committed.bytes_since_snapshot >= config.max_record_bytes_between_snapshots or (
            config.max_snapshot_interval_ms > 0 and now_ms >= due_ms
        )

    @property
    def _makes_up_for_damage(self) -> bool:
        """Whether a snapshot written now replaces damaged records or a damaged snapshot."""
        reached = self.image.offset + 1
        return reached <= self.machine.high_watermark and renewal.needs_snapshot(self.log, reached)

    def snapshot_job(self, now_ms: int) -> SnapshotJob:
        """Writes a snapshot of the committed image. Run it in a thread, then pass it to ``snapshot_finished``."""
        voters, level = self.machine.quorum.log.sets.at(self.image.offset + 1)
        job = SnapshotJob(
            self.log.fs,
            self.log.dir,
            self.image,
            voters if level >= 1 else None,
            now_ms,
            makes_up_for_damage=self._makes_up_for_damage,
        )
        self._snapshot_job = job
        self.committed.bytes_since_snapshot = 0
        self._last_snapshot_ms = now_ms
        return job

    def snapshot_finished(self, job: SnapshotJob, now_ms: int) -> list[str]:
        """Deletes old snapshots and log segments past retention after a snapshot was written. Returns a description of what
        was deleted."""
        assert job is self._snapshot_job, "not the snapshot that was begun"
        self._snapshot_job = None
        if job.error is not None:
            raise self.log.log.fail(f"snapshot {job.id.file_name}", job.error) from job.error
        if job.id.offset < self.log.log.log_start_offset or (
            job.id.offset == self.log.log.log_start_offset and not job.makes_up_for_damage
        ):
            return []
        self.log.snapshot_written(job.id)
        self.machine.snapshot_written(job.id, job.size)
        if job.makes_up_for_damage:
            removed = renewal.keep_only(self.log, job.id, now_ms)
        else:
            removed = self.log.clean(now_ms)
        self.machine.log_cleaned(self.log.log.log_start_offset, self.log.snapshots)
        return removed
