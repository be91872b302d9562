"""Selects segments to delete by age, size and log start (topic settings retention.ms, retention.bytes, cleanup.policy).

Deletable is always a run of sealed segments from the oldest on, never past the high watermark. Sealed, because only then the
producer state at the next segment's start is on disk; it must not be lost with the batches it came from. An active segment that
has expired is rolled, and is deleted once a flush job has sealed it. A segment is as old as its greatest timestamp. Files are
renamed to ``.deleted`` immediately and removed after ``file.delete.delay.ms``: a reader may still use them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from tidelog.storage.log_view import LogView
from tidelog.storage.producer_state import SNAPSHOT_SUFFIX
from tidelog.storage.segment import DELETED_SUFFIX, LOG_SUFFIX, LogSegment, file_stem


class RetentionResult(NamedTuple):
    """Segments that readers no longer see; ``remove`` may run from ``due_ms`` on, in any thread."""

    segments: tuple[LogSegment, ...]
    snapshots: tuple[str, ...]
    due_ms: int
    reasons: tuple[str, ...]

    def remove(self) -> None:
        """Removes the files. Raises OSError."""
        for segment in self.segments:
            segment.remove_files()
        if self.segments:
            fs = self.segments[0].file_system
            for path in self.snapshots:
                if fs.exists(path):
                    fs.remove(path)


class RetentionPlan(NamedTuple):
    """The oldest segments, each with the reason for its deletion. ``roll``: the active segment has expired as well; it is
    deleted once it is closed and sealed."""

    doomed: tuple[tuple[LogSegment, str], ...] = ()
    roll: bool = False


def plan(log: LogView, now_ms: int) -> RetentionPlan:
    """The segments that may be deleted. None while a flush job is running, which may be writing their indexes. Raises OSError."""
    if log.flush_in_flight or log.failure is not None:
        return RetentionPlan()
    doomed = _below_log_start(log)
    if log.config.delete:
        doomed += _by_age(log, now_ms, len(doomed))
        doomed += _by_size(log, len(doomed))
    roll = bool(doomed) and doomed[-1][0] is log.active
    return RetentionPlan(tuple(doomed[:-1] if roll else doomed), roll)


def _deletable(log: LogView, position: int) -> LogSegment | None:
    """The segment at ``position`` if it may be deleted: sealed and below the high watermark, or active and not empty."""
    if position >= len(log.segments):
        return None
    segment = log.segments[position]
    if segment is log.active:
        return segment if segment.size and log.log_end_offset <= log.high_watermark else None
    return segment if segment.sealed and log.segments[position + 1].base_offset <= log.high_watermark else None


def _below_log_start(log: LogView) -> list[tuple[LogSegment, str]]:
    doomed: list[tuple[LogSegment, str]] = []
    while (
        len(doomed) + 1 < len(log.segments)
        and log.segments[len(doomed) + 1].base_offset <= log.log_start_offset
        and log.segments[len(doomed)].sealed
    ):
        doomed.append((log.segments[len(doomed)], f"log start offset is {log.log_start_offset}"))
    return doomed


def _by_age(log: LogView, now_ms: int, skip: int) -> list[tuple[LogSegment, str]]:
    retention_ms = log.config.retention_ms
    doomed: list[tuple[LogSegment, str]] = []
    if retention_ms < 0:
        return doomed
    segment = _deletable(log, skip)
    while segment is not None:
        greatest = segment.largest_timestamp()[0]
        if now_ms - _or_modified(segment, greatest) <= retention_ms:
            break
        greatest = _or_modified(segment, segment.confirm_largest_timestamp())
        if now_ms - greatest <= retention_ms:
            break
        doomed.append((segment, f"{now_ms - greatest} ms old, retention.ms is {retention_ms}"))
        segment = _deletable(log, skip + len(doomed))
    return doomed


def _or_modified(segment: LogSegment, timestamp: int) -> int:
    """The timestamp, or the file's modification time for a segment whose records have no timestamps."""
    return timestamp if timestamp >= 0 else segment.file_system.stat(segment.path(LOG_SUFFIX)).modified_ms


def _by_size(log: LogView, skip: int) -> list[tuple[LogSegment, str]]:
    limit = log.config.retention_bytes
    doomed: list[tuple[LogSegment, str]] = []
    if limit < 0:
        return doomed
    excess = sum(segment.size for segment in log.segments[skip:]) - limit
    segment = _deletable(log, skip)
    while segment is not None and excess - segment.size >= 0:
        excess -= segment.size
        doomed.append((segment, f"log is larger than retention.bytes {limit}"))
        segment = _deletable(log, skip + len(doomed))
    return doomed


def set_aside(log: LogView, segments: Collection[LogSegment], *, keep_snapshot_at: int = -1) -> tuple[str, ...]:
    """Renames the segments' files and the producer snapshots at their base offsets to ``.deleted``; returns the names of the
    snapshots. Raises OSError."""
    snapshots: list[str] = []
    for segment in segments:
        # The log is renamed first: after a crash in between, no log may be without its snapshot.
        segment.rename_files(DELETED_SUFFIX)
        snapshot = f"{log.dir}/{file_stem(segment.base_offset)}{SNAPSHOT_SUFFIX}"
        if segment.base_offset != keep_snapshot_at and log.fs.exists(snapshot):
            log.fs.rename(snapshot, snapshot + DELETED_SUFFIX)
            snapshots.append(snapshot + DELETED_SUFFIX)
    return tuple(snapshots)
