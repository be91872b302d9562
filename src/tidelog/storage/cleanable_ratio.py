"""How far a log may be compacted now, and how dirty it is (Kafka's LogToClean).

A log is clean up to its checkpointed offset. Cleanable is what follows, up to the first segment that is active, not synced yet,
at or past the last stable offset, or younger than min.compaction.lag.ms. Whether that is worth a cleaning: ``is_due``.
"""

from __future__ import annotations

from typing import NamedTuple

from tidelog.storage.log_config import NEVER_MS
from tidelog.storage.segment import LogSegment
from tidelog.storage.undecided import first_undecided
from tidelog.storage.unified_log import UnifiedLog


class CleanableRange(NamedTuple):
    """What a cleaning of the log would do now. Bytes are those of whole segments.

    ``overdue``: records have been dirty for longer than max.compaction.lag.ms. ``checkpoint_is_wrong``: the checkpointed offset
    lies outside the log, and the log start is used instead.
    """

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    overdue: bool
    checkpoint_is_wrong: bool

    @property
    def dirty_ratio(self) -> float:
        """The share of dirty bytes among those below the first uncleanable offset; 0.0 when there are none."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, min_dirty_ratio: float) -> bool:
        """Whether it is worth a cleaning: dirty enough (min.cleanable.dirty.ratio), or overdue and not empty."""
        return self.dirty_ratio > min_dirty_ratio or (self.overdue and self.cleanable_bytes > 0)


def cleanable_range(log: UnifiedLog, checkpoint: int | None, now_ms: int) -> CleanableRange:
    """Up to which offset ``log`` is clean, and up to which it may be cleaned."""
    first_dirty = log.log_start_offset if checkpoint is None else checkpoint
    wrong = not log.log_start_offset <= first_dirty <= log.log_end_offset
    if wrong:
        first_dirty = log.log_start_offset
    segments = log.segments
    holding = log.segment_index(first_dirty)
    dirty = [segment for segment in segments[holding:] if segment is not log.active]
    bound = min(log.last_stable_offset, log.active.base_offset)
    if log.files.undecided and (undecided := first_undecided(log)) is not None:
        bound = min(bound, undecided)
    min_lag = log.config.min_compaction_lag_ms
    for segment in dirty:
        if not segment.sealed or (min_lag > 0 and segment.largest_timestamp()[0] > now_ms - min_lag):
            bound = min(bound, segment.base_offset)
            break
    # Segments are cleaned as a whole: the one that contains the bound is not cleaned.
    first_uncleanable = segments[log.segment_index(max(bound, first_dirty))].base_offset
    below = segments[: log.segment_index(first_uncleanable)] if first_uncleanable > segments[0].base_offset else []
    clean = sum(segment.size for segment in below if segment.base_offset < first_dirty)
    cleanable = sum(segment.size for segment in below[holding:])
    return CleanableRange(first_dirty, first_uncleanable, clean, cleanable, _overdue(log, dirty, now_ms), wrong)


def _overdue(log: UnifiedLog, dirty: list[LogSegment], now_ms: int) -> bool:
    max_lag = log.config.max_compaction_lag_ms
    if max_lag >= NEVER_MS:
        return False
    stamps = [stamp for segment in dirty if (stamp := segment.read_first_timestamp()) > 0]
    return bool(stamps) and min(stamps) < now_ms - max_lag
