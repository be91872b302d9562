"""Which replicas are in sync, and how far the high watermark follows them (KIP-497, KIP-841, KIP-966): rules over a view.

The controller owns the ISR. A leader asks for a change (AlterPartition), one per partition at a time; ``leadership`` keeps
what is assumed meanwhile. ``grown`` and ``shrunk`` return the ISR to ask for.

The high watermark is the smallest log end in the maximal ISR. It also waits for followers outside the ISR that fetch and are
close, so that they can join. It does not move while the ISR is smaller than min.insync.replicas.

Times are of the even clock. Elsewhere: how changes travel to the controller and what its answers mean
(``alter_partition_requests``), one follower (``replica``).
"""

from __future__ import annotations

from tidelog.replication.leadership import Leadership
from tidelog.replication.partition_view import HostView, PartitionView
from tidelog.replication.replica import Replica


def least_end(leadership: Leadership, host: HostView, end: int, leader_end: int, even_ms: int) -> int:
    """The offset, at most ``end``, up to which every replica that counts holds the log."""
    for replica in leadership.replicas.values():
        if replica.log_end_offset < end and (
            replica.broker_id in leadership.maximal_isr
            or (
                replica.is_asking
                and replica.caught_up_within(leader_end, even_ms, host.lag_max_ms)
                and host.brokers.may_join_isr(replica.broker_id, replica.broker_epoch)
            )
        ):
            end = replica.log_end_offset
    return end


def may_join(partition: PartitionView, replica: Replica) -> bool:
    """Whether a follower outside the ISR holds everything that is committed or was before this leader's epoch, and its broker
    is allowed to join."""
    log = partition.log
    return (
        log is not None
        and replica.log_end_offset >= max(log.high_watermark, partition.leader_epoch_start_offset)
        and partition.host.brokers.may_join_isr(replica.broker_id, replica.broker_epoch)
        and replica.broker_id in partition.replicas
    )


def grown(partition: PartitionView, even_ms: int) -> tuple[int, ...] | None:
    """The ISR with a follower that became able to join without a new fetch: its broker was fenced before, or an earlier change
    was given up. Followers of a quiet partition fetch other partitions, not this one. None: no change."""
    leadership, log = partition.leadership, partition.log
    if leadership is None or log is None or leadership.pending is not None:
        return None
    for replica in leadership.replicas.values():
        if (
            replica.broker_id not in leadership.maximal_isr
            and replica.log_end_offset == log.log_end_offset
            and replica.asked_within(even_ms, partition.host.lag_max_ms)
            and may_join(partition, replica)
        ):
            return (*partition.isr, replica.broker_id)
    return None


def shrunk(partition: PartitionView, even_ms: int) -> tuple[int, ...] | None:
    """The ISR without the followers that have lagged for longer than replica.lag.time.max.ms. None: no change."""
    leadership, log = partition.leadership, partition.log
    if leadership is None or log is None or leadership.pending is not None:
        return None
    followers, end, lag_max_ms = leadership.replicas, log.log_end_offset, partition.host.lag_max_ms
    left = tuple(
        each for each in partition.isr if each not in followers or followers[each].caught_up_within(end, even_ms, lag_max_ms)
    )
    return left if len(left) < len(partition.isr) else None


def is_followed(partition: PartitionView, even_ms: int, within_ms: int) -> bool:
    """Whether every replica that could have been elected in this leader's place fetched from it within ``within_ms``, and so
    knows of no other leader. True when there is no such replica. With fewer than ``min.insync.replicas`` in sync every
    follower counts: a replica that left the ISR since may be eligible (KIP-966), and only the controller knows which."""
    leadership = partition.leadership
    if leadership is None:
        return True
    eligible = leadership.maximal_isr if partition.spare_in_sync >= 0 else leadership.replicas
    return all(
        replica.asked_within(even_ms, within_ms) for replica in leadership.replicas.values() if replica.broker_id in eligible
    )
