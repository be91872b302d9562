"""One fetch in progress: read, count, wait, read again.

What is decided here: when a fetch has enough (min_bytes, an error, divergence), how the byte limits are spent over the
partitions, and what is read again after a wait. The first batch of the first partition that has any is always whole, however
large (KIP-74), so that a consumer with small limits still moves on.

Elsewhere: what the answer holds (``fetch_sessions``), what a partition may show (``partition``), the bytes of the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from tidelog.model.errors import ErrorCode
from tidelog.replication.delayed import ParkedFetch
from tidelog.replication.fetch_sessions import FetchAnswer, FetchContext, FetchPartition
from tidelog.replication.partition import Partition, PartitionRead


class Partitions(Protocol):
    """What a fetch needs of the replica manager."""

    def locate(self, wanted: FetchPartition) -> Partition | ErrorCode:
        """The partition that ``wanted`` names, or why there is none."""
        ...


class Fetch:
    """A fetch between its request and its answer. ``reads`` runs parallel to the context's partitions."""

    __slots__ = (
        "_committed",
        "_follower",
        "_manager",
        "_max_bytes",
        "_min_bytes",
        "bytes_read",
        "context",
        "has_news",
        "reads",
    )

    def __init__(
        self,
        manager: Partitions,
        context: FetchContext,
        *,
        min_bytes: int,
        max_bytes: int,
        committed: bool,
        follower: bool,
    ) -> None:
        self._manager = manager
        self.context = context
        self._max_bytes = max_bytes
        self._min_bytes = min(min_bytes, max_bytes)
        self._committed = committed
        self._follower = follower
        self.bytes_read = 0
        self.has_news = not context.partitions
        """There is something to say whatever the number of bytes: an error, divergence, or nothing was asked."""
        self.reads: list[PartitionRead] = []
        for wanted in context.partitions:
            self.reads.append(self._read(wanted))

    @property
    def is_complete(self) -> bool:
        """Whether it may be answered before its time is over."""
        return self.has_news or self.bytes_read >= self._min_bytes

    def _read(self, wanted: FetchPartition) -> PartitionRead:
        partition = wanted.partition
        if partition is None or partition.deleted:
            located = self._manager.locate(wanted)
            if isinstance(located, ErrorCode):
                wanted.partition = None
                self.has_news = True
                return PartitionRead(located)
            partition = wanted.partition = located
        left = self._max_bytes - self.bytes_read
        read = partition.read(
            wanted.fetch_offset,
            left if left < wanted.max_bytes else wanted.max_bytes,
            min_one=self.bytes_read == 0,
            committed=self._committed,
            leader_epoch=wanted.current_leader_epoch,
            last_fetched_epoch=wanted.last_fetched_epoch,
            follower=self._follower,
        )
        if read.error is not ErrorCode.NONE or read.diverging is not None:
            self.has_news = True
        self.bytes_read += read.size
        return read

    def park(self, deadline_ms: int) -> ParkedFetch:
        """Wait for what is missing. To be finished by whoever waits, in any case."""
        parked = ParkedFetch(deadline_ms, self._min_bytes - self.bytes_read, committed=self._committed)
        for index, wanted in enumerate(self.context.partitions):
            if wanted.partition is not None:
                parked.watch(wanted.partition, index)
        return parked

    def read_again(self, indices: Iterable[int]) -> None:
        """Read what changed while the fetch was parked; what did not change is kept as it was read."""
        for index in indices:
            self.bytes_read -= self.reads[index].size
            self.reads[index] = self._read(self.context.partitions[index])

    def finish(self, now_ms: int) -> FetchAnswer:
        """What to answer. To be called once."""
        return self.context.finish(self.reads, now_ms)
