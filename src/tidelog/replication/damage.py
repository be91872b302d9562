"""A follower with damaged batches copies them from its leader again.

Decided here: when it may. It gives up everything from the first damaged batch on, so for a while it lacks committed records: only
a replica outside of the ISR may do that, because it cannot be elected before it has them again (unclean election apart). A start
puts each follower there: the controller takes a broker that registers out of every ISR that has another member. A leader, and the
last replica in sync, keep what they have.
"""

from __future__ import annotations

import logging

from tidelog.model.errors import StorageFailure
from tidelog.replication.partition import Partition
from tidelog.replication.replica_manager import ReplicaManager
from tidelog.storage.aside import keep_bytes
from tidelog.storage.log import UnifiedLog
from tidelog.storage.log_manager import LogManager
from tidelog.storage.segment import LOG_SUFFIX

logger = logging.getLogger(__name__)


def first_damaged(log: UnifiedLog) -> int | None:
    """The first offset that is known to be damaged."""
    return next((segment.rotten[0].first_offset for segment in log.segments if segment.rotten), None)


def mend(partition: Partition, replicas: ReplicaManager, now_ms: int) -> None:
    """Before the partition is followed: see the module. A log dir that fails goes offline. Blocks for syncs."""
    try:
        if give_up_damaged(partition, replicas.logs, now_ms):
            replicas.restart_move(partition, now_ms)
    except StorageFailure as failure:
        replicas.storage_failed(failure)


def give_up_damaged(partition: Partition, logs: LogManager, now_ms: int) -> bool:
    """Cuts the log of a follower before its first damaged batch, and keeps damaged bytes aside; whether it did. Blocks for syncs.

    Nothing while the replica is in sync, or a flush is under way. StorageFailure when the log dir fails.
    """
    log = partition.log
    if log is None or log.failure is not None or log.flush_in_flight or partition.broker_id in partition.isr:
        return False
    offset = first_damaged(log)
    if offset is None:
        return False
    logger.warning("%s: the records from offset %d on are copied from the leader again", log.topic_partition, offset)
    try:
        for segment in log.segments:
            for each in segment.rotten:
                keep_bytes(log.fs, segment.file, segment.path(LOG_SUFFIX), each.position, each.end)
    except OSError as problem:
        raise log.fail(f"copy of damaged bytes in {log.dir}", problem) from problem
    logs.truncate(log, offset, now_ms)
    partition.truncated()
    return True
