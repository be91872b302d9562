"""Damage that a snapshot of the committed image makes up for: a damaged snapshot, and damaged records that are in memory.

A snapshot file that does not read is never offered to other replicas, and a start uses an older one or the log in its place. Once
this replica's image covers what is damaged, a new snapshot replaces it; the log below the new one, and older snapshots, go.
"""

from __future__ import annotations

import logging

from tidelog.raft.metadata_log import MetadataLog
from tidelog.raft.snapshots import DELETED_SUFFIX, SnapshotId, problem_of_snapshot

_logger = logging.getLogger(__name__)


def look_at(log: MetadataLog, snapshot_id: SnapshotId) -> str | None:
    """What is wrong with a snapshot; None for a good one. Each file is read once, when it is first needed. Blocks; OSError."""
    if snapshot_id not in log.sound and snapshot_id not in log.unreadable:
        problem = problem_of_snapshot(log.fs, f"{log.dir}/{snapshot_id.file_name}")
        if problem is None:
            log.sound.add(snapshot_id)
        else:
            note_damage(log, snapshot_id, problem)
    return log.unreadable.get(snapshot_id)


def note_damage(log: MetadataLog, snapshot_id: SnapshotId, problem: str) -> None:
    """The snapshot is not served any more."""
    log.sound.discard(snapshot_id)
    log.unreadable[snapshot_id] = problem
    _logger.error(
        "%s/%s is damaged: %s. It is not used; this node writes a new one as soon as it has the records", log.dir,
        snapshot_id.file_name, problem,
    )  # fmt: skip


def leave_out_damaged(log: MetadataLog) -> None:
    """Drops damaged snapshots from the newest on until one is good. Their files stay. Blocks; OSError."""
    for each in reversed(log.snapshots):
        if each.is_bootstrap or look_at(log, each) is None:
            return
        log.snapshots = [other for other in log.snapshots if other != each]


def needs_snapshot(log: MetadataLog, next_offset: int) -> bool:
    """Whether a snapshot of everything below ``next_offset`` makes up for damage."""
    unreadable = max((each.offset for each in log.unreadable), default=0)
    rotten = any(
        log.log.log_start_offset < each.next_offset <= next_offset for segment in log.log.segments for each in segment.rotten
    )
    return rotten or 0 < unreadable <= next_offset


def keep_only(log: MetadataLog, kept: SnapshotId, now_ms: int) -> list[str]:
    """Deletes what the snapshot ``kept`` replaces: the log below it and all other snapshots. Returns a description. Nothing is
    deleted while a flush is running. StorageFailure when the disk fails."""
    if log.log.flush_in_flight:
        return []
    old = [each for each in (*log.snapshots, *log.unreadable) if not each.is_bootstrap and each != kept]
    try:
        if kept.offset > log.log.log_start_offset:
            log.log.delete_records_before(kept.offset)
            log.log.retention_step(now_ms).remove()
        for each in old:
            path = f"{log.dir}/{each.file_name}"
            if log.fs.exists(path):
                log.fs.rename(path, path + DELETED_SUFFIX)
                log.fs.remove(path + DELETED_SUFFIX)
    except OSError as problem:
        raise log.log.fail(f"damage in {log.dir}", problem) from problem
    log.unreadable.clear()
    log.sound &= {kept}
    log.snapshots = [each for each in log.snapshots if each.is_bootstrap or each == kept]
    return [f"what was damaged below {kept.offset}: snapshot {kept.file_name} replaces it"]
