"""A followed partition, and the back-offs of those that are not fetched for a while."""

from __future__ import annotations

import heapq

from tidelog.replication.partition import Partition


class Followed:
    """A followed partition, in one leader epoch."""

    __slots__ = ("asked", "busy", "delay_ms", "due_ms", "failed", "leader_epoch", "leader_high_watermark", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.asked = False
        """A request has named it."""
        self.busy = False
        """A long operation on the partition is running."""
        self.delay_ms = 0
        self.due_ms = 0
        """Not fetched before this time; 0: not delayed. ``BackOffs`` sets it."""
        self.failed = False
        """The last batches from the leader could not be appended."""
        self.leader_high_watermark = 0

    def fetched(self, leader_high_watermark: int) -> None:
        """The leader answered without an error."""
        self.delay_ms = 0
        self.failed = False
        self.leader_high_watermark = leader_high_watermark

    @property
    def is_current(self) -> bool:
        """Whether the partition still follows this leader in this epoch."""
        partition = self.partition
        return (
            partition.leader_epoch == self.leader_epoch
            and not partition.is_leader
            and not partition.deleted
            and partition.log is not None
        )


class BackOffs:
    """Delayed partitions by the time when they are due."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Followed]] = []
        """May hold entries that were cancelled or are due already."""
        self._count = 0

    def wait(self, entry: Followed, due_ms: int) -> None:
        """Delay ``entry`` until ``due_ms``."""
        entry.due_ms = max(1, due_ms)
        # The counter breaks ties: entries cannot be compared.
        self._count += 1
        heapq.heappush(self._heap, (entry.due_ms, self._count, entry))

    def cancel(self, entry: Followed) -> None:
        """``entry`` is followed no longer."""
        entry.due_ms = 0

    def next_due_ms(self) -> int | None:
        """When the first delayed partition is due; None when none is delayed."""
        heap = self._heap
        while heap and not heap[0][2].due_ms:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def take_due(self, now_ms: int) -> list[Followed]:
        """End the delays that are over, in their order."""
        heap, due = self._heap, []
        while heap and heap[0][0] <= now_ms:
            entry = heapq.heappop(heap)[2]
            if entry.due_ms:
                entry.due_ms = 0
                due.append(entry)
        return due
