"""Fetching from the nearest replica (KIP-392): the replica to which a consumer is sent.

Kafka's rack-aware rule: among the replicas in the consumer's rack that hold the offset, take the leader if it is one; otherwise
the one with the highest log end, then the one that caught up last. Without a replica in that rack, the leader.
"""

from __future__ import annotations

from tidelog.model.errors import ErrorCode
from tidelog.replication.partition_view import PartitionView
from tidelog.replication.reads import PartitionRead

NOBODY_ELSE = -1


def preferred_replica(partition: PartitionView, rack: str, fetch_offset: int) -> int:
    """The broker to read from instead of this leader; -1 when that is the leader itself."""
    leadership, brokers = partition.leadership, partition.host.brokers
    if leadership is None or not rack or brokers.rack_of(partition.broker_id) == rack:
        return NOBODY_ELSE
    near = [
        replica
        for replica in leadership.replicas.values()
        if replica.log_start_offset <= fetch_offset <= replica.log_end_offset
        and brokers.is_alive(replica.broker_id)
        and brokers.rack_of(replica.broker_id) == rack
    ]
    if not near:
        return NOBODY_ELSE
    return max(near, key=lambda each: (each.log_end_offset, each.caught_up_ms, -each.broker_id)).broker_id


def send_elsewhere(partition: PartitionView, replica: int, leader_epoch: int) -> PartitionRead:
    """The answer that sends a consumer to ``replica``, without records."""
    error = partition.check_leader(leader_epoch)
    log = partition.log
    if error is not ErrorCode.NONE or log is None:
        return PartitionRead(error)
    read = PartitionRead(error, log.high_watermark, log.last_stable_offset, log.log_start_offset)
    read.preferred_replica, read.is_news = replica, True
    return read
