"""Repair: which damaged batches are copied from another replica, and which answers are believed.

A damaged range of a closed segment is replaced, byte for byte, by what another replica holds at the same offsets (ADR 26). The
replica stays in the ISR, its log end does not move, and nothing is cut. That is right because of three rules:

- Only below the high watermark, here (the whole segment) and there (a consumer's fetch): what is committed is not truncated.
- Only batches of the leader epoch that this log has for their offsets, from a replica in the same leader epoch: one leader wrote
  each offset of an epoch once (KIP-101), so they are the same batches. Where only the damaged batches said when their epoch
  began, and a start could not read them (``unknown_epochs.py``), they have to be recognized in the damaged bytes.
- Only the same number of bytes, batch after batch, each with a right checksum: a replica that compaction has treated differently
  is refused.

A leader asks followers, a follower asks the leader first. A donor whose own copy is damaged answers KAFKA_STORAGE_ERROR or
CORRUPT_MESSAGE, or fails the checks, and the next one is asked.

Elsewhere: what readers get meanwhile (``unmended.py``), how the bytes get into the segment (``storage/splice.py``), requests
and pace (``server/replication/repairing.py``).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from tidelog.model.ports import Buffer
from tidelog.records.batch import BatchHeader, CorruptBatch, TruncatedBatch, crc_is_valid, iter_headers
from tidelog.replication.partition import Partition
from tidelog.replication.unknown_epochs import UnknownEpochs
from tidelog.storage import reading
from tidelog.storage.rotten_range import RottenRange
from tidelog.storage.segment import LogSegment
from tidelog.storage.unified_log import UnifiedLog


class Damage(NamedTuple):
    """A damaged range and its segment."""

    segment: LogSegment
    rotten: RottenRange


class Readiness(Enum):
    """What has to happen before a range can be replaced."""

    READY = "ready"
    ROLL = "its segment is the active one"
    FLUSH = "its segment is not flushed"
    WAIT = "its segment is not below the high watermark"


class Refusal(Exception):
    """This donor's batches do not replace the range; the message says why."""


class NotNow(Refusal):
    """Later it may succeed."""


def damages(log: UnifiedLog) -> list[Damage]:
    """The known damaged ranges that readers may meet, lowest offsets first."""
    for segment in log.files.segments.all:
        if segment.rotten:
            break
    else:  # nearly always, for thousands of logs every few seconds
        return []
    start = log.log_start_offset
    return [Damage(segment, each) for segment in log.segments for each in segment.rotten if each.next_offset > start]


def readiness(log: UnifiedLog, damage: Damage) -> Readiness:
    """Whether the range can be replaced now, or what is missing."""
    segment = damage.segment
    if not is_committed(log, damage.rotten.next_offset):
        return Readiness.WAIT
    if segment is log.active:
        return Readiness.ROLL
    if not is_committed(log, segment.next_offset):
        return Readiness.WAIT
    return Readiness.READY if segment.sealed else Readiness.FLUSH


def is_committed(log: UnifiedLog, end: int) -> bool:
    """Whether everything below ``end`` is below the high watermark."""
    return end <= log.high_watermark


def donors(partition: Partition) -> list[int]:
    """The replicas to ask, in this order: the leader, those in sync, the others."""
    others = [each for each in partition.replicas if each != partition.broker_id]
    return sorted(others, key=lambda each: (each != partition.leader, each not in partition.isr, others.index(each)))


class UnreadableThere(Refusal):
    """The donor's own copy is damaged, or what is aborted in it is undecided."""


class Replacement:
    """The bytes for one range, as one donor sends them. Ask for ``next_offset`` until ``complete``."""

    def __init__(self, log: UnifiedLog, rotten: RottenRange) -> None:
        self.next_offset = rotten.first_offset
        self.complete = False
        self.has_producers = False
        self._log = log
        self._rotten = rotten
        self._parts: list[bytes] = []
        self._length = 0
        self._aborted: set[tuple[int, int]] | None = set()
        self._unknown = UnknownEpochs(log, rotten)

    @property
    def missing_bytes(self) -> int:
        """Bytes still to come."""
        return self._rotten.end - self._rotten.position - self._length

    @property
    def data(self) -> bytes:
        """The bytes of the range; only once it is ``complete``."""
        assert self.complete
        return b"".join(self._parts)

    def take(self, records: Buffer, aborted: Iterable[tuple[int, int]] | None = ()) -> None:
        """Takes an answer: whole batches from ``next_offset`` on, and the aborted transactions among them (producer, first
        offset; None where the donor was not asked). Refusal when they do not fit."""
        view, before = memoryview(records), self.next_offset
        if aborted is None:
            self._aborted = None
        elif self._aborted is not None:
            self._aborted.update(each for each in aborted if each[1] < self._rotten.next_offset)
        try:
            for header in iter_headers(view):
                if header.base_offset >= self._rotten.next_offset:
                    self._end()
                    return
                self._take(header, view)
                if self.next_offset >= self._rotten.next_offset:
                    self._end()
                    return
        except TruncatedBatch:
            pass  # an answer may end within a batch
        except CorruptBatch as problem:
            raise Refusal(f"what it sends does not read: {problem}") from problem
        if self.next_offset == before:
            raise NotNow(f"it sends no batch from offset {before} on")

    def _take(self, header: BatchHeader, records: memoryview) -> None:
        offsets = f"offsets {header.base_offset} to {header.last_offset}"
        if not self.next_offset <= header.base_offset <= header.last_offset < self._rotten.next_offset:
            raise Refusal(f"its batch with {offsets} does not lie between {self.next_offset} and {self._rotten.next_offset - 1}")
        if not crc_is_valid(records, header):
            raise Refusal(f"its batch with {offsets} has a wrong checksum")
        batch = bytes(records[header.position : header.position + header.size])
        if not has_the_epoch(self._log, header) and not self._unknown.learn(header, batch, self._length):
            raise Refusal(f"its batch with {offsets} is of leader epoch {header.leader_epoch}, which is not the one here")
        if header.size > self.missing_bytes:
            raise Refusal("its batches are longer: compaction has treated the replicas differently")
        self.has_producers = self.has_producers or header.producer_id >= 0
        self._parts.append(batch)
        self._length += header.size
        self.next_offset = header.last_offset + 1

    def _end(self) -> None:
        if self.missing_bytes:
            raise Refusal("its batches are shorter: compaction has treated the replicas differently")
        self.complete = True

    def teach_epochs(self) -> None:
        """Adds the leader epochs that this log did not know, once the bytes are in place."""
        self._unknown.teach()

    def changes_state(self, segment: LogSegment) -> bool:
        """Whether producers and transactions must be rebuilt with the new bytes: a replay did without them, or the donor knows
        other aborted transactions, or was not asked for them."""
        if not self.has_producers:
            return False
        if self._aborted is None:
            return True
        first, end = self._rotten.first_offset, self._rotten.next_offset
        ours = {(each.producer_id, each.first_offset) for each in reading.aborted_transactions(self._log, first, end)}
        return segment.aborted.incomplete or ours != self._aborted


def has_the_epoch(log: UnifiedLog, header: BatchHeader) -> bool:
    """Whether all offsets of the batch are of its leader epoch in this log."""
    epoch_for = log.leader_epochs.epoch_for
    return epoch_for(header.base_offset) == header.leader_epoch == epoch_for(header.last_offset)
