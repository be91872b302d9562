"""One fetch in progress: read, count, wait, read again.

Decided here: when a fetch has enough (min_bytes, an error, divergence), how the byte limits are spent over the partitions,
what is read again after a wait, and when the client's permissions are asked for again. The first batch of the first partition
that has any is always returned whole, however large (KIP-74), so that a consumer with small limits makes progress.

Elsewhere: what the answer holds (``fetch_sessions``), what a partition may show (``partition``), the bytes of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from tidelog.model.errors import ErrorCode
from tidelog.replication.fetch_partition import FetchPartition
from tidelog.replication.fetch_sessions import FetchAnswer, FetchContext
from tidelog.replication.hosted_partitions import HostedPartitions
from tidelog.replication.purgatory import ParkedFetch
from tidelog.replication.reads import PartitionRead, read_partition
from tidelog.replication.replica_selector import preferred_replica, send_elsewhere
from tidelog.replication.throttle import Throttles
from tidelog.storage import reading

_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_LOOKS_BACK = 3
"""Each pass finds what the previous one caused. Anything later is left to the next fetch."""


class Partitions(Protocol):
    """The part of the replica manager that a fetch uses."""

    throttles: Throttles
    rack_aware: bool
    """Consumers also read from followers, so followers learn of a new high watermark without delay."""

    hosted: HostedPartitions


class Gate(Protocol):
    """The client's permissions, as of the last ``renew``."""

    @property
    def decider(self) -> object:
        """Equal for two fetches exactly if the same permissions decide them."""
        ...

    def refuses(self, topic: str | None) -> bool:
        """Whether the client may not read this topic. None: the request names an id that is unknown."""
        ...

    def renew(self) -> bool:
        """Take over a change of the permissions; whether there was one."""
        ...


class Fetch:
    """A fetch between its request and its answer. ``reads`` holds the result of each partition that was read."""

    __slots__ = (
        "_any_replica",
        "_committed",
        "_gate",
        "_manager",
        "_max_bytes",
        "_min_bytes",
        "_rack",
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
        any_replica: bool = False,
        rack: str = "",
        gate: Gate | None = None,
        found: dict[FetchPartition, PartitionRead] | None = None,
    ) -> None:
        """``gate``: the client's permissions; None: it may read everything. ``found``: what was read before, of a fetch that the
        compiled lane began; None: the fetch begins here."""
        self._manager = manager
        self._gate = gate
        self.context = context
        self._max_bytes = max_bytes
        self._min_bytes = min(min_bytes, max_bytes)
        self._committed = committed
        self._any_replica = any_replica
        self._rack = rack
        self.bytes_read = 0
        self.has_news = context.size == 0
        """The answer need not wait for more bytes: an error, a divergence, or no partition was requested."""
        self.cold: list[FetchPartition] = []
        """Partitions not read because the read would wait for a disk: run ``warm_up`` in a thread, then ``read_warm``."""
        self._warm = False
        self.reads: dict[FetchPartition, PartitionRead] = {}
        if found is not None:
            self.reads = found
            self.bytes_read = sum(read.size for read in found.values())
            return
        if gate is not None:
            context.decide_by(gate.decider)
        for wanted in context.due:
            self.reads[wanted] = self._read(wanted)
        if context.caller is not None:
            self._look_back()

    def _look_back(self) -> None:
        """Read again the partitions that grew while others were read. A follower's position can make records safe, and a
        producer that waited for them may append at once. Nothing watches the partitions until the wait begins, so these
        appends would go unnoticed."""
        late = True
        for _ in range(_LOOKS_BACK):
            if not late:
                return
            late = False
            for wanted, read in list(self.reads.items()):
                log = wanted.partition.log if read.caught_up and wanted.partition is not None else None
                if log is not None and log.log_end_offset > wanted.fetch_offset:
                    late = True
                    self.reads[wanted] = self._read(wanted)

    @property
    def is_complete(self) -> bool:
        """Whether the fetch can be answered before its deadline."""
        return self.has_news or self.bytes_read >= self._min_bytes or (self._gate is not None and self._is_refused_whole)

    @property
    def _is_refused_whole(self) -> bool:
        """Whether the client may read none of the partitions. A fetch with others waits for these, as in Kafka, so that a client
        that goes on after a refusal does not send one fetch after another."""
        return len(self.reads) == self.context.size and all(read.error is _DENIED for read in self.reads.values())

    def _read(self, wanted: FetchPartition) -> PartitionRead:
        partition = wanted.partition
        wanted.stale = False
        if partition is None or partition.deleted:
            located = self._manager.hosted.locate(wanted)
            if isinstance(located, ErrorCode):
                return self._refused(wanted, located)
            partition = wanted.partition = located
        if self._gate is not None and self._gate.refuses(wanted.topic):
            return self._refused(wanted, _DENIED)
        log = partition.log
        if log is not None and not self._warm and reading.may_block(log, wanted.fetch_offset, committed=self._committed):
            self.cold.append(wanted)
            return PartitionRead(ErrorCode.NONE)
        if self._rack and partition.is_leader:
            elsewhere = preferred_replica(partition, self._rack, wanted.fetch_offset)
            if elsewhere >= 0:
                self.has_news = True
                return send_elsewhere(partition, elsewhere, wanted.current_leader_epoch)
        left = min(self._max_bytes - self.bytes_read, wanted.max_bytes)
        caller = self.context.caller
        quota = self._manager.throttles.leader if caller is not None else None
        held_up = False
        if caller is None or quota is None or not quota.applies(partition.topic, partition.index):
            quota = None
        elif caller.broker_id not in partition.isr and quota.wait_ms(caller.last_fetch_ms) > 0:
            held_up = True
        read = read_partition(
            partition,
            wanted.fetch_offset,
            0 if held_up else left,
            min_one=self.bytes_read == 0 and not held_up,
            committed=self._committed,
            leader_epoch=wanted.current_leader_epoch,
            last_fetched_epoch=wanted.last_fetched_epoch,
            caller=caller,
            follower_start=wanted.follower_start,
            any_replica=self._any_replica,
        )
        wanted.read_stable_offset = read.last_stable_offset
        wanted.held_back = read.last_stable_offset < read.high_watermark
        if caller is not None:
            # The follower's own position may have moved the high watermark; this answer reports it.
            wanted.stale = False
            if self._manager.rack_aware and read.high_watermark > wanted.sent_high_watermark:
                self.has_news = True
        if read.is_news:
            self.has_news = True
        if quota is not None and caller is not None:
            quota.record(read.size, caller.last_fetch_ms)
        self.bytes_read += read.size
        return read

    def _refused(self, wanted: FetchPartition, error: ErrorCode) -> PartitionRead:
        """Permissions come before existence, but an unknown id has no name to ask for."""
        wanted.partition = None
        if self._gate is not None and self._gate.refuses(wanted.topic):
            return PartitionRead(_DENIED)
        self.has_news = True
        return PartitionRead(error)

    def park(self, deadline_ms: int) -> ParkedFetch:
        """Wait for the missing bytes. The caller must finish the returned wait in any case."""
        parked = ParkedFetch(deadline_ms, self._min_bytes - self.bytes_read, committed=self._committed)
        self.context.watch(parked, self.reads)
        return parked

    def read_again(self, changed: Iterable[FetchPartition]) -> None:
        """Read again the partitions that changed while the fetch was parked; the other results are kept unless the client's
        permissions have changed."""
        if self.context.is_superseded:
            self.has_news = True
            return
        if self._gate is not None and self._gate.renew():
            self.context.decide_by(self._gate.decider)
            changed = self.context.due
        for wanted in changed:
            before = self.reads.get(wanted)
            if before is not None:
                self.bytes_read -= before.size
            self.reads[wanted] = self._read(wanted)
        if self.context.caller is not None:
            self._look_back()

    def warm_up(self) -> None:
        """Load what reading the ``cold`` partitions needs. Blocks: run it in a thread."""
        for wanted in self.cold:
            log = wanted.partition.log if wanted.partition is not None else None
            if log is not None:
                reading.warm_up(log, wanted.fetch_offset, committed=self._committed)

    def read_warm(self) -> None:
        """Read everything once more: the ``cold`` partitions, and the others, because nothing watched them meanwhile."""
        self.cold = []
        self._warm = True
        self.read_again(self.context.due)
        self._warm = False

    def finish(self, even_ms: Callable[[], int]) -> FetchAnswer:
        """The answer. Call it once. ``even_ms``: the even clock, which only a new session asks."""
        return self.context.finish(self.reads, even_ms)
