"""When a partition has to be flushed (flush.messages, flush.ms, closed segments), and what is flushed.

One flush per log runs at a time, in the background. A flush requested meanwhile is done by the next one, which covers all
requests. What a finished flush exposes: ``Partition.finish_flush``.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.replication.partition_view import PartitionView
from tidelog.storage.flush_job import FlushJob
from tidelog.storage.unified_log import UnifiedLog


def needs_flush(partition: PartitionView) -> bool:
    """Whether an acknowledgement or a closed segment waits for a flush that has not started."""
    return partition.flush_needed_to >= 0 or (partition.log is not None and bool(partition.log.files.segments.unsealed))


def next_flush(partition: PartitionView) -> FlushJob | None:
    """A flush of everything appended so far, to run in a thread; None while one is running: the next one covers it."""
    log = partition.log
    return None if log is None or partition.deleted or log.flush_in_flight else log.flush_job()


def overdue(logs: Iterable[UnifiedLog], now_ms: int) -> list[UnifiedLog]:
    """Logs with unflushed data whose flush.ms has passed, and no flush running."""
    return [
        log
        for log in logs
        if log.log_end_offset > log.recovery_point
        and not log.flush_in_flight
        and log.failure is None
        and now_ms - log.files.last_flush_ms >= log.config.flush_ms
    ]
