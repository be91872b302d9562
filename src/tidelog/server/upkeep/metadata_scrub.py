"""The scrub of the metadata log and its snapshots, on brokers and controllers: at the pace of the scrub of partitions.

What is damaged is replaced by a new snapshot, since the committed image is in memory (``raft/renewal.py``).
"""

from __future__ import annotations

import logging
from functools import partial

from tidelog.config.resolve import BrokerConfig
from tidelog.controller.quorum_member import QuorumMember
from tidelog.raft import renewal
from tidelog.raft.snapshots import SnapshotCheck, SnapshotId
from tidelog.server.runtime import LoopRuntime
from tidelog.server.upkeep.scrubbing import PassingFile, ScrubWorker

log = logging.getLogger(__name__)


class MetadataScrub(ScrubWorker):
    """The scrub of one process's metadata log."""

    def __init__(self, member: QuorumMember, config: BrokerConfig, runtime: LoopRuntime) -> None:
        super().__init__(config, runtime)
        self._member = member

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
