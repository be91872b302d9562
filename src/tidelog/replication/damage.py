"""A follower with damaged batches copies them again from its leader.

A follower that gives up everything from its first damaged batch on lacks committed records until it has copied them again. So
only a replica outside the ISR may do that: it cannot be elected meanwhile (except by an unclean election). Every start puts a
follower there, because the controller removes a registering broker from each ISR that has another member. A leader, and the last
in-sync replica, keep what they have.
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
    """The offset of the first batch known to be damaged."""
    return next((segment.rotten[0].first_offset for segment in log.segments if segment.rotten), None)


def mend(partition: Partition, replicas: ReplicaManager, now_ms: int) -> None:
    """Runs before the partition is followed. A log dir that fails goes offline. Blocks for syncs."""
    try:
        if give_up_damaged(partition, replicas.logs, now_ms):
            replicas.restart_move(partition, now_ms)
    except StorageFailure as failure:
        replicas.storage_failed(failure)


def give_up_damaged(partition: Partition, logs: LogManager, now_ms: int) -> bool:
    """Cut a follower's log before its first damaged batch and save the damaged bytes; True if it was cut. Blocks for syncs.

    Does nothing while the replica is in the ISR or a flush is running. StorageFailure when the log dir fails.
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
