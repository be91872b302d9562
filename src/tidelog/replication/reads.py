"""Reading one partition for a fetch: who may read what, and the result before the bytes are loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tidelog.model import ids
from tidelog.model.errors import ErrorCode, StorageFailure
from tidelog.model.ports import FileSlice
from tidelog.replication.offset_lookup import end_of_epoch
from tidelog.replication.partition_view import PartitionView
from tidelog.replication.replica import Caller
from tidelog.replication.topic_stats import TopicStats
from tidelog.replication.unmended import Unmended
from tidelog.storage import reading
from tidelog.storage.undecided import undecided_at
from tidelog.storage.unified_log import UnifiedLog

# Looking up an enum member costs more than looking up a global.
NONE = ErrorCode.NONE


class PartitionRead:
    """The result of reading one partition. On an error the offsets are -1 and there are no records.

    ``size`` counts the bytes of ``records``, a slice of the log that is not loaded yet. ``aborted`` is None unless the read was
    read_committed: then it lists (producer id, first offset) of each aborted transaction that overlaps it. ``preferred_replica``
    is the broker to read from instead (KIP-392), or -1. ``diverging`` is (epoch, end offset) where the follower's log leaves the
    leader's. ``caught_up``: there is nothing more until the partition wakes its watchers. ``is_news``: the answer must carry it
    even without bytes, because of an error, a divergence or another replica.
    """

    __slots__ = (
        "aborted",
        "caught_up",
        "diverging",
        "error",
        "high_watermark",
        "is_news",
        "last_stable_offset",
        "log_start_offset",
        "preferred_replica",
        "records",
        "size",
    )

    def __init__(
        self,
        error: ErrorCode,
        high_watermark: int = -1,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        records: FileSlice | None = None,
        size: int = 0,
    ) -> None:
        self.error = error
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.records = records
        self.size = size
        self.aborted: Sequence[tuple[int, int]] | None = None
        self.diverging: tuple[int, int] | None = None
        self.preferred_replica = -1
        self.caught_up = False
        self.is_news = error is not NONE


class Readable(PartitionView, Protocol):
    """A partition as reads need it."""

    @property
    def stats(self) -> TopicStats: ...
    @property
    def unmended(self) -> Unmended: ...
    def note_follower(
        self, log: UnifiedLog, caller: Caller, offset: int, log_start_offset: int, leader_epoch: int
    ) -> ErrorCode: ...


def read_partition(
    partition: Readable,
    fetch_offset: int,
    max_bytes: int,
    *,
    min_one: bool,
    committed: bool = False,
    leader_epoch: int = ids.NO_EPOCH,
    last_fetched_epoch: int = ids.NO_EPOCH,
    caller: Caller | None = None,
    follower_start: int = ids.NO_OFFSET,
    any_replica: bool = False,
) -> PartitionRead:
    """Whole batches from the one that holds ``fetch_offset``, up to ``max_bytes``; with ``min_one`` at least the first.

    Consumers see up to the high watermark, with ``committed`` up to the last stable offset, followers up to the log end.
    ``caller`` is a follower whose log starts at ``follower_start`` and holds everything below ``fetch_offset``.
    ``any_replica``: a consumer that may also read from a follower.
    """
    log = partition.log
    if log is None or not partition.is_leader or leader_epoch >= 0:
        error = partition.check_leader(leader_epoch, any_replica=any_replica)
        if error is not NONE:
            return PartitionRead(error)
        assert log is not None
    partition.stats.total_fetch_requests += 1
    high_watermark = log.high_watermark
    stable = log.last_stable_offset
    start = log.log_start_offset
    if last_fetched_epoch >= 0 and (diverging := _diverging(partition, log, fetch_offset, last_fetched_epoch)) is not None:
        return diverging
    if fetch_offset < start or fetch_offset > log.files.end_offset:
        return PartitionRead(ErrorCode.OFFSET_OUT_OF_RANGE)
    upto = stable if committed else high_watermark
    if caller is not None:
        error = partition.note_follower(log, caller, fetch_offset, follower_start, leader_epoch)
        if error is not NONE:
            return PartitionRead(error)
        # The follower learns at once what its fetch made safe.
        high_watermark, stable = log.high_watermark, log.last_stable_offset
        upto = log.log_end_offset
    found = PartitionRead(NONE, high_watermark, stable, start)
    if committed:
        found.aborted = ()
    found.caught_up = fetch_offset >= upto
    if found.caught_up or (max_bytes <= 0 and not min_one):
        return found
    if committed and log.files.undecided:
        unknown, bound = undecided_at(log, fetch_offset)
        if unknown:
            return _damaged(partition, log, fetch_offset)
        upto = upto if bound is None else min(upto, bound)
    try:
        result = reading.read(log, fetch_offset, max_bytes, upto=upto, min_one=min_one)
        if result.error is not NONE:
            is_damage = caller is None and result.error is ErrorCode.CORRUPT_MESSAGE
            return _damaged(partition, log, fetch_offset) if is_damage else PartitionRead(result.error)
        if result.slice is not None:
            found.records, found.size = result.slice, result.slice.length
            if committed and log.aborting:
                aborted = reading.aborted_in(log, fetch_offset, result.slice, upto)
                found.aborted = [(each.producer_id, each.first_offset) for each in aborted]
    except StorageFailure as failure:
        partition.host.storage_failed(failure)
        return PartitionRead(ErrorCode.KAFKA_STORAGE_ERROR)
    return found


def _damaged(partition: Readable, log: UnifiedLog, fetch_offset: int) -> PartitionRead:
    """The answer to a consumer whose read meets damage."""
    return PartitionRead(partition.unmended.error_for_consumers(partition.replicas, log, fetch_offset))


def _diverging(partition: PartitionView, log: UnifiedLog, fetch_offset: int, last_fetched_epoch: int) -> PartitionRead | None:
    """The answer to a follower whose last batch is of ``last_fetched_epoch`` and whose log leaves the leader's; None when it does
    not."""
    epoch, end_offset = end_of_epoch(partition, log, last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        return PartitionRead(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch >= last_fetched_epoch and end_offset >= fetch_offset:
        return None
    read = PartitionRead(ErrorCode.NONE, log.high_watermark, log.last_stable_offset, log.log_start_offset)
    read.diverging, read.is_news = (epoch, end_offset), True
    return read
