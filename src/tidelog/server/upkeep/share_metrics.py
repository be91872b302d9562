"""Metrics of share groups, read from what serves them. Imported at the first look at a node that has any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from tidelog.broker.shares.hosted_share import HostedShare, Phase
from tidelog.broker.shares.share_partitions import MINUTE_MS
from tidelog.coordinator.group.share.share_group import ShareGroup, ShareGroupState
from tidelog.coordinator.share.records import ShareKey
from tidelog.metrics.registry import Sample, Summary
from tidelog.model.errors import ErrorCode, StorageFailure
from tidelog.records.batch import DELETE_HORIZON_BIT, HEADER, HEADER_SIZE, LOG_APPEND_TIME_BIT
from tidelog.replication.share.record_state import AckType
from tidelog.storage import reading

if TYPE_CHECKING:
    from tidelog.broker.node import Broker
    from tidelog.replication.partition import Partition
    from tidelog.storage.log_view import LogView

LOOKS: Final = 500
"""Headers of batches that one scrape reads at most. A start that has not moved needs none; the rest are read by later scrapes."""
_ACK_TYPES: Final = (
    (AckType.ACCEPT, "Accept"),
    (AckType.RELEASE, "Release"),
    (AckType.REJECT, "Reject"),
    (AckType.RENEW, "Renew"),
)


class Progress(NamedTuple):
    """How far a group is with a partition that has a replica here. ``finished``: records beyond the start that are finished."""

    partition: Partition
    start_offset: int
    finished: int
    hosted: HostedShare | None = None


class ShareMetrics:
    """The metrics of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._times: dict[ShareKey, tuple[int, int]] = {}
        """A start offset, and the timestamp there."""

    def look(self) -> list[list[Sample]]:
        """In the order of ``catalog.SHARES``."""
        shares = self._broker.share_partitions
        sessions = shares.sessions
        return [
            *self.dead_letters(),
            self.groups(),
            [((), shares.counts.rebalances)],
            [((), len(sessions))],
            [((), sessions.partition_count)],
            [((), sessions.evictions)],
            self.acknowledgements(),
            [((), shares.counts.expired)],
            *self.requests(),
            *self.partitions(),
            self.pruned(),
        ]

    def load_times(self) -> list[Summary]:
        """Times of loads of share partitions."""
        times = self._broker.share_partitions.counts.load_times
        minute = self._broker.runtime.even_ms() // MINUTE_MS
        return [Summary((), times.recent(minute), times.count, times.sum_ns)]

    def dead_letters(self) -> list[list[Sample]]:
        """In the order of ``catalog.DEAD_LETTERS``."""
        counts = self._broker.share_partitions.dead_letters.counts
        return [
            [((group_id,), getattr(each, name)) for group_id, each in counts.items()] for name in ("records", "sent", "failed")
        ]

    def groups(self) -> list[Sample]:
        """Share groups whose coordinator is here, by state."""
        machines = self._broker.groups.machines()
        found = Counter(dict.fromkeys((ShareGroupState.EMPTY, ShareGroupState.STABLE), 0))
        for machine in [] if isinstance(machines, ErrorCode) else machines:
            found.update(group.state for group in machine.groups.values() if isinstance(group, ShareGroup))
        return [((state.value,), count) for state, count in found.items()]

    def acknowledgements(self) -> list[Sample]:
        """Records by type of acknowledgement."""
        counts = self._broker.share_partitions.counts.acknowledged
        return [((name,), counts[kind]) for kind, name in _ACK_TYPES]

    def requests(self) -> list[list[Sample]]:
        """In the order of ``catalog.SHARE_REQUESTS``. Topics that were deleted are forgotten."""
        topics = self._broker.share_partitions.counts.topics
        for name in [name for name in topics if name not in self._broker.image.topics.by_name]:
            del topics[name]
        return [[((name,), counts[at]) for name, counts in topics.items()] for at in range(4)]

    def pruned(self) -> list[Sample]:
        """Where the partitions of the state's topic begin that are led here."""
        shards = self._broker.shares.loaded()
        found: list[Sample] = []
        for shard in [] if isinstance(shards, ErrorCode) else shards:
            partition = shard.partition
            if partition.log is not None:
                found.append(((partition.topic, str(partition.index)), partition.log.log_start_offset))
        return found

    def partitions(self) -> list[list[Sample]]:
        """In the order of ``catalog.SHARE_PARTITIONS``."""
        in_flight: list[Sample] = []
        batches: list[Sample] = []
        timeouts: list[Sample] = []
        lags: list[Sample] = []
        ages: list[Sample] = []
        now_ms = self._broker.runtime.now_ms()
        times, looks = self._times, LOOKS
        self._times = {}
        for key, progress in self._progress():
            labels = (key.group_id, progress.partition.topic, str(progress.partition.index))
            log = progress.partition.log
            if progress.hosted is not None:
                in_flight.append((labels, progress.hosted.machine.in_flight))
                batches.append((labels, len(progress.hosted.machine.ranges)))
                timeouts.append((labels, progress.hosted.lock_timeouts))
            if log is None:
                continue
            start = max(progress.start_offset, log.log_start_offset)
            lag = max(0, log.high_watermark - start - progress.finished)
            lags.append((labels, lag))
            if not lag:
                ages.append((labels, 0))
                continue
            known = times.get(key)
            if known is None or known[0] != start:
                found = timestamp_at(log, start) if looks > 0 else None
                looks -= 1
                known = None if found is None else (start, found)
            if known is not None:
                self._times[key] = known
                ages.append((labels, max(0, now_ms - known[1]) / 1000))
        return [in_flight, batches, timeouts, lags, ages]

    def _progress(self) -> Iterator[tuple[ShareKey, Progress]]:
        """Of the partitions that are led here and loaded; else as it is stored, if the share coordinator is here and has a
        replica."""
        seen: set[ShareKey] = set()
        for hosted in self._broker.share_partitions:
            if hosted.phase is Phase.ACTIVE and hosted.is_current:
                seen.add(hosted.key)
                records = hosted.machine
                yield hosted.key, Progress(hosted.partition, records.start_offset, records.delivery_complete_count, hosted)
        machines = self._broker.shares.machines()
        for machine in [] if isinstance(machines, ErrorCode) else machines:
            for key, start, finished in machine.offsets():
                if start < 0 or finished < 0 or key in seen:
                    continue
                partition = self._broker.replicas.by_id(key.topic_id, key.partition)
                if not isinstance(partition, ErrorCode):
                    yield key, Progress(partition, start, finished)


def timestamp_at(log: LogView, offset: int) -> int | None:
    """The first timestamp of the batch that holds the record at ``offset``, or the next one, in ms. None when there is none, or
    the look would load an index."""
    try:
        if reading.may_block(log, offset):
            return None
        found = reading.read(log, offset, HEADER_SIZE, upto=log.high_watermark, min_one=True)
    except StorageFailure:
        return None  # who reads the records gets the error
    if found.error is not ErrorCode.NONE or found.slice is None or found.slice.length < HEADER_SIZE:
        return None
    header = HEADER.unpack(found.slice.file.read(found.slice.position, HEADER_SIZE))
    attributes, first, last = header[5], header[7], header[8]
    timestamp = last if attributes & (LOG_APPEND_TIME_BIT | DELETE_HORIZON_BIT) else first
    return None if timestamp < 0 else int(timestamp)
