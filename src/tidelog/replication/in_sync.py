"""The ISR of a partition on its leader, and the high watermark that follows from it (KIP-497, KIP-841, KIP-966).

The controller owns the ISR. A leader asks for a change (AlterPartition) and meanwhile assumes the cautious outcome: a replica to
be added counts as in sync at once (the maximal ISR holds back the high watermark), and a replica to be removed counts until the
controller agrees. One change per partition is in flight at a time.

The high watermark is the smallest log end in the maximal ISR. It also waits for followers outside the ISR that fetch and are
close, so that they can join. It does not move while the ISR is smaller than min.insync.replicas.

Elsewhere: how changes travel to the controller and what its answers mean (``isr_changes``), one follower (``replica``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidelog.replication.replica import Caller, Replica

if TYPE_CHECKING:
    from tidelog.replication.partition import Partition


class Leadership:
    """The leader's state of a partition with several replicas, for as long as it leads."""

    __slots__ = ("maximal_isr", "pending", "quiet", "replicas")

    def __init__(self, followers: Sequence[int], isr: Sequence[int], now_ms: int) -> None:
        self.replicas = {each: Replica(each, now_ms if each in isr else 0) for each in followers}
        self.pending: tuple[int, ...] | None = None
        """The ISR requested from the controller."""
        self.maximal_isr = frozenset(isr)
        self.quiet = False
        """A follower may hold the whole log: the next append records until when it did."""

    def assign(self, followers: Sequence[int], isr: Sequence[int]) -> None:
        """``isr`` is in force by the controller's decision; the pending change is settled."""
        if self.replicas.keys() != set(followers):
            self.replicas = {each: self.replicas.get(each) or Replica(each, 0) for each in followers}
        self.settle(isr)

    def settle(self, isr: Sequence[int]) -> None:
        """Drop the pending change; ``isr`` is in force."""
        self.pending = None
        self.maximal_isr = frozenset(isr)

    def appending(self, old_end: int) -> None:
        """The log end moves on from ``old_end``."""
        self.quiet = False
        for replica in self.replicas.values():
            if replica.log_end_offset == old_end:
                replica.falls_behind()

    def least_end(self, partition: Partition, end: int, leader_end: int, now_ms: int) -> int:
        """The offset, at most ``end``, up to which every replica that counts holds the log."""
        host = partition.host
        for replica in self.replicas.values():
            if replica.log_end_offset < end and (
                replica.broker_id in self.maximal_isr
                or (
                    replica.is_asking
                    and replica.caught_up_within(leader_end, now_ms, host.lag_max_ms)
                    and host.may_join_isr(replica.broker_id, replica.broker_epoch)
                )
            ):
                end = replica.log_end_offset
        return end


def follower_fetched(
    partition: Partition, leadership: Leadership, replica: Replica, offset: int, log_start_offset: int, caller: Caller
) -> None:
    """A follower fetches from ``offset``, so it holds everything below."""
    log = partition.log
    assert log is not None
    before, start_before = replica.log_end_offset, replica.log_start_offset
    end = log.log_end_offset
    replica.fetched(offset, log_start_offset, end, caller)
    if offset >= end:
        leadership.quiet = True
    if leadership.pending is None and replica.broker_id not in leadership.maximal_isr:
        _expand(partition, leadership, replica)
    if offset != before:
        partition.expose(caller.last_fetch_ms)
    if log_start_offset != start_before:
        partition.tell_of_low_watermark()


def follower_left(partition: Partition, caller: Caller) -> None:
    """The fetch session of ``caller`` dropped the partition: its log dir there may have failed."""
    leadership, log = partition.leadership, partition.log
    replica = leadership.replicas.get(caller.broker_id) if leadership is not None else None
    if replica is not None and log is not None:
        replica.left(caller, log.log_end_offset)


def _expand(partition: Partition, leadership: Leadership, replica: Replica) -> None:
    log = partition.log
    assert log is not None
    if (
        replica.log_end_offset >= max(log.high_watermark, partition.leader_epoch_start_offset)
        and partition.host.may_join_isr(replica.broker_id, replica.broker_epoch)
        and replica.broker_id in partition.replicas
    ):
        leadership.pending = (*partition.isr, replica.broker_id)
        leadership.maximal_isr = frozenset(leadership.pending)
        partition.host.isr_wanted(partition)


def is_followed(partition: Partition, now_ms: int, within_ms: int) -> bool:
    """Whether every replica that could have been elected in this leader's place fetched from it within ``within_ms``, and so
    knows of no other leader. True when there is no such replica. With fewer than ``min.insync.replicas`` in sync every
    follower counts: a replica that left the ISR since may be eligible (KIP-966), and only the controller knows which."""
    leadership = partition.leadership
    if leadership is None:
        return True
    eligible = leadership.maximal_isr if len(partition.isr) >= partition.min_insync_replicas else leadership.replicas
    return all(
        replica.asked_within(now_ms, within_ms) for replica in leadership.replicas.values() if replica.broker_id in eligible
    )


def let_join(partition: Partition, now_ms: int) -> None:
    """Ask to add followers that became able to join without a new fetch: their broker was fenced before, or an earlier change
    was given up. Followers of a quiet partition fetch other partitions, not this one."""
    leadership, log = partition.leadership, partition.log
    if leadership is None or log is None or leadership.pending is not None:
        return
    for replica in leadership.replicas.values():
        if (
            replica.broker_id not in leadership.maximal_isr
            and replica.log_end_offset == log.log_end_offset
            and replica.asked_within(now_ms, partition.host.lag_max_ms)
        ):
            _expand(partition, leadership, replica)
            if leadership.pending is not None:
                return


def shrink(partition: Partition, now_ms: int) -> None:
    """Ask to remove the followers that have lagged for longer than replica.lag.time.max.ms."""
    leadership, log = partition.leadership, partition.log
    if leadership is None or log is None:
        return
    if leadership.pending is None:
        end, lag_max_ms = log.log_end_offset, partition.host.lag_max_ms
        slow = {
            each
            for each in partition.isr
            if each in leadership.replicas and not leadership.replicas[each].caught_up_within(end, now_ms, lag_max_ms)
        }
        if slow:
            leadership.pending = tuple(each for each in partition.isr if each not in slow)
            partition.host.isr_wanted(partition)
    if log.high_watermark < log.log_end_offset:
        # A close follower outside the ISR that died silently held back the high watermark.
        partition.expose(now_ms)
