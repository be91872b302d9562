"""The scrub of the metadata log, its snapshots and the small files beside it, on brokers and controllers: at the pace of the
scrub of partitions.

Damaged records and snapshots are replaced by a new snapshot, since the committed image is in memory (``raft/renewal.py``). Small
files are written again (``raft/mark_scrub.py``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from tidelog.config.resolve import BrokerConfig
from tidelog.controller.quorum_member import QuorumMember
from tidelog.raft import quorum_state, renewal
from tidelog.raft.effects import Effect, Persist
from tidelog.raft.mark_files import FLUSHED
from tidelog.raft.mark_scrub import check_marks
from tidelog.raft.snapshots import SnapshotCheck, SnapshotId
from tidelog.server.runtime import LoopRuntime
from tidelog.server.upkeep.scrubbing import PassingFile, ScrubWorker

log = logging.getLogger(__name__)


class MetadataScrub(ScrubWorker):
    """The scrub of one process's metadata log. ``do`` has the effects done that a call returns, after those that are due."""

    def __init__(
        self, member: QuorumMember, config: BrokerConfig, runtime: LoopRuntime, do: Callable[[Callable[[], list[Effect]]], None]
    ) -> None:
        super().__init__(config, runtime)
        self._member = member
        self._do = do

    @property
    def damaged(self) -> int:
        """Damaged ranges and snapshots known now, of those that are needed."""
        metadata_log = self._member.log
        start = metadata_log.log.log_start_offset
        ranges = (each for segment in metadata_log.log.segments for each in segment.rotten)
        return sum(each.next_offset > start for each in ranges) + len(metadata_log.unreadable)

    async def look(self) -> None:
        """One pass."""
        metadata_log = self._member.log
        await self.look_at(metadata_log.log)
        for snapshot_id in list(metadata_log.snapshots):
            try:
                await self._look_at_snapshot(snapshot_id)
            except FileNotFoundError:
                continue  # retention or a newer snapshot removed it meanwhile
            except OSError as problem:
                log.error("the scrub cannot read %s/%s: %s", metadata_log.dir, snapshot_id.file_name, problem)

        if metadata_log.log.failure is None:
            await self._look_at_marks()

    async def _look_at_marks(self) -> None:
        metadata_log, quorum = self._member.log, self._member.machine.quorum
        try:
            damaged = await self._runtime.run_long(partial(check_marks, metadata_log.fs, metadata_log.dir, quorum.lost.end))
        except OSError as problem:
            log.error("the scrub cannot check the files in %s: %s", metadata_log.dir, problem)
            return
        self.found += len(damaged)
        state = quorum.persisted
        if quorum_state.FILE_NAME in damaged and state is not None:
            self._do(lambda: [Persist(state)])
        if FLUSHED in damaged:
            metadata_log.flushed_mark_is_damaged()

    async def _look_at_snapshot(self, snapshot_id: SnapshotId) -> None:
        metadata_log = self._member.log
        file = await self._runtime.run_long(
            partial(metadata_log.fs.open, f"{metadata_log.dir}/{snapshot_id.file_name}", write=False)
        )
        try:
            check = await self.run(SnapshotCheck(PassingFile(file)))
        finally:
            file.close()
        still_there = snapshot_id in metadata_log.snapshots and snapshot_id not in metadata_log.unreadable
        if check.problem is not None and still_there:
            renewal.note_damage(metadata_log, snapshot_id, check.problem)
            self.found += 1
