"""When a partition has to be flushed, and what may be shown and acknowledged once it is (flush.messages, segments closed).

One flush of a log runs at a time, in the background; whoever needs one meanwhile waits for the next, which takes all along.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.model import ids
from tidelog.replication.delayed import tell_watchers
from tidelog.storage.flush import FlushJob

if TYPE_CHECKING:
    from tidelog.replication.partition import Partition


def needs_flush(partition: Partition) -> bool:
    """Whether somebody's acknowledgement, or a segment closed meanwhile, waits for a flush that has not begun."""
    return partition.flush_needed_to >= 0 or (partition.log is not None and bool(partition.log.files.segments.unsealed))


def demand_flush(partition: Partition, upto: int) -> None:
    """What a follower appended below ``upto`` has to be flushed."""
    partition.flush_needed_to = upto
    partition.host.flush(partition)


def begin_flush(partition: Partition) -> FlushJob | None:
    """A flush of everything appended so far, to be run in a thread; None when one is running: the next one takes it along."""
    log = partition.log
    return None if log is None or partition.deleted or log.flush_in_flight else log.flush_job()


def finish_flush(partition: Partition, job: FlushJob, now_ms: int) -> None:
    """``job`` has run: expose what it made safe. StorageFailure when it failed, and then for ever."""
    log = partition.log
    if log is None or partition.deleted or job.directory != log.dir:
        return
    log.flushed(job, now_ms)
    if log.recovery_point >= partition.flush_needed_to:
        partition.flush_needed_to = ids.NO_OFFSET
    partition.expose(now_ms)
    if partition.watchers:
        # acks=1 waits for the flush alone, which may be done although the high watermark stands still.
        tell_watchers(partition, 0)
