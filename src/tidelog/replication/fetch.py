"""One fetch in progress: read, count, wait, read again.

What is decided here: when a fetch has enough (min_bytes, an error, divergence), how the byte limits are spent over the
partitions, and what is read again after a wait. The first batch of the first partition that has any is always whole, however
large (KIP-74), so that a consumer with small limits still moves on.

Elsewhere: what the answer holds (``fetch_sessions``), what a partition may show (``partition``), the bytes of the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from tidelog.model.errors import ErrorCode, StorageFailure
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
        "_warm",
        "bytes_read",
        "cold",
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
        self.cold: list[int] = []
        """Partitions, by index, that were not read because that would wait for a disk: ``warm_up`` in a thread, ``read_warm``."""
        self._warm = False
        self.reads: list[PartitionRead] = []
        for index, wanted in enumerate(context.partitions):
            self.reads.append(self._read(index, wanted))

    @property
    def is_complete(self) -> bool:
        """Whether it may be answered before its time is over."""
        return self.has_news or self.bytes_read >= self._min_bytes

    def _read(self, index: int, wanted: FetchPartition) -> PartitionRead:
        partition = wanted.partition
        if partition is None or partition.deleted:
            located = self._manager.locate(wanted)
            if isinstance(located, ErrorCode):
                wanted.partition = None
                self.has_news = True
                return PartitionRead(located)
            partition = wanted.partition = located
        log = partition.log
        if log is not None and not self._warm and log.reading_may_block(wanted.fetch_offset):
            self.cold.append(index)
            return PartitionRead(ErrorCode.NONE)
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
            self.reads[index] = self._read(index, self.context.partitions[index])

    def warm_up(self) -> None:
        """Load what reading the ``cold`` partitions needs. Blocks: to be run in a thread."""
        for index in self.cold:
            wanted = self.context.partitions[index]
            log = wanted.partition.log if wanted.partition is not None else None
            if log is not None:
                # A failing disk is found again, and told, when the loop reads.
                with suppress(StorageFailure):
                    log.read(wanted.fetch_offset, 1, upto=log.high_watermark, min_one=True)

    def read_warm(self) -> None:
        """Read what was ``cold``; nothing is, afterwards."""
        cold, self.cold = self.cold, []
        self._warm = True
        self.read_again(cold)
        self._warm = False

    def finish(self, now_ms: int) -> FetchAnswer:
        """What to answer. To be called once."""
        return self.context.finish(self.reads, now_ms)
