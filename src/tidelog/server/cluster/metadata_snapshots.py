"""Writes snapshots of the metadata in a thread, when enough records came since the last one."""

from __future__ import annotations

import logging

from tidelog.controller.quorum_member import QuorumMember
from tidelog.raft.snapshots import SnapshotJob
from tidelog.server.cluster.raft_runner import FATAL, RaftRunner
from tidelog.server.runtime import LoopRuntime

log = logging.getLogger(__name__)


class SnapshotWriting:
    """The snapshots of one quorum member."""

    def __init__(self, member: QuorumMember, runtime: LoopRuntime, runner: RaftRunner) -> None:
        self._member = member
        self._runtime = runtime
        self._runner = runner

    def step(self) -> None:
        """Begins a snapshot when one is due; called periodically."""
        if self._runner.refusal is not None or not self._member.snapshot_due(self._runtime.now_ms()):
            return
        job = self._member.snapshot_job(self._runtime.now_ms())
        self._runtime.run_long(lambda: job.run(self._runtime.breathe)).add_done_callback(lambda _: self._finished(job))

    def _finished(self, job: SnapshotJob) -> None:
        try:
            removed = self._member.snapshot_finished(job, self._runtime.now_ms())
        except FATAL as failure:
            self._runner.fail(failure)
            return
        log.info("metadata snapshot %s written, %d bytes", job.id.file_name, job.size)
        for what in removed:
            log.info("metadata: removed %s", what)
