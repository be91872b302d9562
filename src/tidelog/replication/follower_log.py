"""What a follower does to its log on behalf of the leader: append, truncate, start over.

Decided here: where a log that diverged from the leader's is truncated (KIP-101, KIP-595), and where a log starts that has nothing
in common with it. Truncation below the high watermark happens only after the controller elected a leader that lacked committed
records (unclean election); it is logged.

Elsewhere: how the parts of a log are truncated (``storage.unified_log``), the requests to the leader (``fetcher``).
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from tidelog.model import ids
from tidelog.records.batch import CorruptBatch, read_header
from tidelog.replication.partition import Partition
from tidelog.storage.log_manager import LogManager
from tidelog.storage.truncation import Deferred
from tidelog.storage.unified_log import UnifiedLog
from tidelog.storage.validation import validate_replicated

logger = logging.getLogger(__name__)


class Position(NamedTuple):
    """A follower's log end, the epoch of its last batch (-1 while the log is empty), and its log start."""

    offset: int
    last_epoch: int
    log_start_offset: int


def position(log: UnifiedLog) -> Position:
    """The position that the next fetch names."""
    return Position(log.log_end_offset, log.leader_epochs.latest, log.log_start_offset)


def append(partition: Partition, logs: LogManager, records: memoryview, leader_epoch: int, now_ms: int) -> int:
    """Append a leader's batches; returns their size in bytes, which ``Partition.take_watermarks`` asks for. KafkaError for
    batches that a leader must not send, StorageFailure.

    Records are deleted one by one but sent in batches, so a leader's log may start within a batch. An empty log here that starts
    within the first batch takes that batch whole, and the deleted records stay deleted (blocks for syncs).
    """
    log = partition.log
    assert log is not None
    start = log.log_start_offset
    first = _batch_around_start(log, records)
    if first is not None:
        logs.truncate(log, first, now_ms, fully=True)
    log.append_as_follower(records, leader_epoch, now_ms)
    if first is not None:
        log.start_within_first_batch(start)
    return len(records)


def _batch_around_start(log: UnifiedLog, records: memoryview) -> int | None:
    """The base offset of the first batch, if the log is empty and starts within that batch."""
    start = log.log_start_offset
    if start < log.log_end_offset or not len(records):
        return None
    try:
        first = read_header(records)
    except CorruptBatch:
        return None
    within = first.base_offset < start <= first.last_offset
    return first.base_offset if within and not validate_replicated(records, first.base_offset).error else None


def truncation_offset(log: UnifiedLog, leader_epoch: int, leader_end_offset: int) -> int:
    """Where to truncate when the leader reports that ``leader_epoch``, its largest epoch not above ours, ended at
    ``leader_end_offset``. If the epochs still differ, the next fetch finds out."""
    if leader_end_offset < 0:
        return log.high_watermark
    end = min(leader_end_offset, log.log_end_offset)
    if leader_epoch == ids.NO_EPOCH:
        return end
    our_epoch, our_end = log.leader_epochs.end_offset_for(leader_epoch, log.log_end_offset)
    if our_end < 0:
        return end
    if our_epoch != leader_epoch:
        # Our epoch ended before the leader's began; everything after it is not in the leader's log.
        return min(our_end, log.log_end_offset)
    return min(end, our_end)


def truncate(partition: Partition, logs: LogManager, offset: int, now_ms: int, deferred: Deferred) -> None:
    """Truncate the log to ``offset``. StorageFailure when the log dir fails."""
    log = partition.log
    assert log is not None
    if offset >= log.log_end_offset:
        return
    if offset < log.high_watermark:
        logger.warning(
            "%s: truncation to offset %d, below the high watermark %d: the leader was elected without these records",
            log.topic_partition,
            offset,
            log.high_watermark,
        )
    else:
        logger.info("%s: truncation from %d to %d", log.topic_partition, log.log_end_offset, offset)
    logs.truncate(log, offset, now_ms, deferred if offset >= log.active.base_offset else None)
    partition.truncated()


def start_over(partition: Partition, logs: LogManager, offset: int, now_ms: int) -> None:
    """Nothing in this log is in the leader's any more: delete it all and start at ``offset``."""
    log = partition.log
    assert log is not None
    logger.warning(
        "%s: offsets %d to %d are below the leader's log start: starting over at %d",
        log.topic_partition,
        log.log_start_offset,
        log.log_end_offset,
        offset,
    )
    logs.truncate(log, offset, now_ms, fully=True)
    partition.truncated()
