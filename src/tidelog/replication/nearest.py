"""Fetching from the nearest replica (KIP-392): whom a consumer is sent to.

Kafka's rack-aware rule: a replica in the consumer's rack that holds the offset, the leader if it is one of them, else the one
that is furthest, then the one that caught up last. Without any in that rack, the leader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.model.errors import ErrorCode
from tidelog.replication.reads import PartitionRead

if TYPE_CHECKING:
    from tidelog.replication.partition import Partition

NOBODY_ELSE = -1


def preferred_replica(partition: Partition, rack: str, fetch_offset: int) -> int:
    """The broker to read from instead of this leader; -1 when that is the leader itself."""
    leadership, host = partition.leadership, partition.host
    if leadership is None or not rack or host.rack_of(partition.broker_id) == rack:
        return NOBODY_ELSE
    near = [
        replica
        for replica in leadership.replicas.values()
        if replica.log_start_offset <= fetch_offset <= replica.log_end_offset
        and host.is_alive(replica.broker_id)
        and host.rack_of(replica.broker_id) == rack
    ]
    if not near:
        return NOBODY_ELSE
    return max(near, key=lambda each: (each.log_end_offset, each.caught_up_ms, -each.broker_id)).broker_id


def send_elsewhere(partition: Partition, replica: int, leader_epoch: int) -> PartitionRead:
    """A consumer is to read from ``replica``; it gets no records here."""
    error = partition.check_leader(leader_epoch)
    log = partition.log
    if error is not ErrorCode.NONE or log is None:
        return PartitionRead(error)
    read = PartitionRead(error, log.high_watermark, log.last_stable_offset, log.log_start_offset)
    read.preferred_replica = replica
    return read
