"""When a partition has to be flushed, and what a finished flush exposes and acknowledges (flush.messages, closed segments).

One flush per log runs at a time, in the background. A flush requested meanwhile is done by the next one, which covers all
requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.model import ids
from tidelog.replication.delayed import tell_watchers
from tidelog.storage.flush import FlushJob

if TYPE_CHECKING:
    from tidelog.replication.partition import Partition


def needs_flush(partition: Partition) -> bool:
    """Whether an acknowledgement or a closed segment waits for a flush that has not started."""
    return partition.flush_needed_to >= 0 or (partition.log is not None and bool(partition.log.files.segments.unsealed))


def demand_flush(partition: Partition, upto: int) -> None:
    """Flush what a follower appended below ``upto``."""
    partition.flush_needed_to = upto
    partition.host.flush(partition)


def begin_flush(partition: Partition) -> FlushJob | None:
    """A flush of everything appended so far, to run in a thread; None while one is running: the next one covers it."""
    log = partition.log
    return None if log is None or partition.deleted or log.flush_in_flight else log.flush_job()


def finish_flush(partition: Partition, job: FlushJob, now_ms: int) -> None:
    """``job`` has run: expose what it made safe. StorageFailure when it failed; every later flush of this log fails too."""
    log = partition.log
    if log is None or partition.deleted or job.directory != log.dir:
        return
    log.flushed(job, now_ms)
    if log.recovery_point >= partition.flush_needed_to:
        partition.flush_needed_to = ids.NO_OFFSET
    partition.expose(now_ms)
    if partition.watchers:
        # acks=1 waits only for the flush, which may finish without moving the high watermark.
        tell_watchers(partition, 0)
