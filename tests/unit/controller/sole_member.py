"""The only member of its quorum, with a runner that does everything at once, in the order in which the loop would."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.unit.controller.conftest import Rules
from tidelog.controller.committed_image import Listener
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.quorum_member import MemberConfig, Pending, QuorumMember
from tidelog.controller.result import ControllerResult
from tidelog.metadata.image import ClusterImage, ControllerImage
from tidelog.metadata.image import Endpoint as Place
from tidelog.metadata.supported_features import supported_ranges
from tidelog.model.ids import Uuid
from tidelog.model.ports import FileSystem, Rng
from tidelog.raft import quorum_state
from tidelog.raft.effects import AppendControl, Effect, HighWatermarkMoved, LeaderChanged, Persist
from tidelog.raft.log_changes import append_control
from tidelog.raft.metadata_log import MetadataLog, MetadataLogConfig
from tidelog.raft.raft_config import RaftConfig
from tidelog.raft.snapshots import SnapshotJob
from tidelog.raft.voters import ReplicaKey, VoterSet
from tidelog.records.control import Endpoint, Voter
from tidelog.storage.checkpoints import read_meta_properties
from tidelog.storage.flush_job import FlushJob


class SoleMember:
    """Started, it leads and is active. ``now_ms`` of a call is the wall clock; the machine's stands still."""

    def __init__(
        self, fs: FileSystem, log_dir: Path | str, *, rng: Rng | None = None, now_ms: int, port: int = 9093, **more: Any
    ) -> None:
        meta = read_meta_properties(fs, str(log_dir))
        assert meta is not None and meta.directory_id is not None
        self.fs = fs
        self.now_ms = now_ms
        self.released: list[Pending] = []
        self.flush_in_flight = False
        self.member = QuorumMember.open(
            fs,
            MemberConfig(
                RaftConfig(
                    ReplicaKey(meta.node_id, Uuid(meta.directory_id)), meta.cluster_id, (Endpoint("CONTROLLER", "h", port),)
                ),
                str(log_dir),
                ControllerImage(
                    meta.node_id, Uuid(b"c" * 16), {"CONTROLLER": Place("CONTROLLER", "h", port)}, supported_ranges()
                ),
                VoterSet.of([Voter(meta.node_id, bytes(16), ())]),
                **{"log": MetadataLogConfig(), **more},
            ),
            rng=rng or random.Random(3),
            rules=Rules(),
            now_ms=now_ms,
            steady_ms=0,
        )
        self.do(self.member.machine.tick(0))
        while self.flush_needed or self.member.controller is None:
            self.flush_now(now_ms)

    @property
    def log(self) -> MetadataLog:
        return self.member.log

    @property
    def image(self) -> ClusterImage:
        return self.member.image

    @property
    def controller(self) -> QuorumController:
        assert self.member.controller is not None
        return self.member.controller

    @property
    def epoch(self) -> int:
        return self.member.machine.epoch

    @property
    def high_watermark(self) -> int:
        return self.member.machine.high_watermark

    def do(self, effects: list[Effect]) -> None:
        member = self.member
        for effect in effects:
            if isinstance(effect, Persist):
                quorum_state.store(self.fs, member.log.dir, effect.state)
            elif isinstance(effect, LeaderChanged):
                member.leader_changed(effect)
            elif isinstance(effect, AppendControl):
                append_control(member.log, effect, self.now_ms)
            else:
                assert isinstance(effect, HighWatermarkMoved), effect
                self.released += member.high_watermark_moved(effect.offset)
        if member.may_activate:
            self.do(member.activate(self.now_ms, 0))

    def submit(self, handler: Callable[[QuorumController, Any, int], ControllerResult], request: Any, now_ms: int) -> Pending:
        self.now_ms = now_ms
        pending, effects = self.member.submit(handler, request, now_ms, 0)
        self.do(effects)
        return pending

    @property
    def flush_needed(self) -> bool:
        """Is there something appended that no flush job has taken?"""
        return self.log.log.failure is None and not self.flush_in_flight and self.log.end_offset > self.high_watermark

    def flush_job(self) -> FlushJob:
        """Everything so far. Run it, then hand it to ``flushed``."""
        assert not self.flush_in_flight
        job = self.log.flush_job()
        self.flush_in_flight = True
        return job

    def flushed(self, job: FlushJob, now_ms: int) -> list[Pending]:
        """The requests that are committed with it."""
        self.now_ms = now_ms
        self.flush_in_flight = False
        end_offset = self.log.flushed(job, now_ms)
        self.do(self.member.machine.log_synced(end_offset, self.member.machine.quorum.log.shape.generation, 0))
        released, self.released = self.released, []
        return released

    def flush_now(self, now_ms: int) -> list[Pending]:
        job = self.flush_job()
        job.run()
        return self.flushed(job, now_ms)

    def add_listener(self, listener: Listener) -> None:
        self.member.committed.listeners.append(listener)

    def snapshot_due(self, now_ms: int) -> bool:
        return self.member.snapshot_due(now_ms)

    def snapshot_job(self, now_ms: int) -> SnapshotJob:
        return self.member.snapshot_job(now_ms)

    def snapshot_finished(self, job: SnapshotJob, now_ms: int) -> list[str]:
        return self.member.snapshot_finished(job, now_ms)

    def close(self, now_ms: int) -> None:
        """What is pending is committed first."""
        self.flush_now(now_ms)
        self.log.close()
